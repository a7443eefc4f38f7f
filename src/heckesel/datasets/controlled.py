"""A simulated population with one covariate and one instrument."""

from dataclasses import dataclass
from numbers import Real

import numpy as np
import pandas as pd

from heckesel.datasets.error_draws import (
    DEGREES,
    draw_errors,
    probability_given_x,
    selection_probability,
)
from heckesel.datasets.truth import Truth, check_draw
from heckesel.errors import DataError

INDEX_SLOPE = -1.8 / 3
# x ranges up to 3, so without z P(s = 1) falls from Phi(1.8) = .96 to .04.


@dataclass(frozen=True)
class Controlled:
    """A simulated sample and its truth.

    Attributes
    ----------
    frame : pandas.DataFrame
        n rows with the covariates, the instrument ``z`` and ``y``, which is NaN if the unit was not
        selected.
    truth : Truth
        The truth about the same rows.

    Examples
    --------
    >>> import heckesel as hk
    >>> list(hk.datasets.make_controlled(100, rho=0.5, alpha=1.0, seed=0).frame)
    ['x', 'z', 'y']
    """

    frame: pd.DataFrame
    truth: Truth


def make_controlled(
    n: int = 2000,
    *,
    rho: float,
    alpha: float,
    seed: int,
    sigma: float = 0.5,
    errors: str = "normal",
    df: float = DEGREES,
) -> Controlled:
    r"""Simulate units whose selection depends on x, on an instrument z and on the outcome error.

    Parameters
    ----------
    n : int, default 2000
        Number of units.
    rho : float
        Correlation of the two errors, strictly between -1 and 1.
    alpha : float
        Effect of the instrument on selection. With 0 the column ``z`` is irrelevant.
    seed : int
    sigma : float, default 0.5
        Standard deviation of the outcome error.
    errors : {"normal", "t", "chi2"}, default "normal"
        All have the same variances and correlation.
    df : float, default 3
        Degrees of freedom of t errors, above 2.

    Returns
    -------
    Controlled
        The columns of its ``frame`` are ``x``, ``z`` and ``y``.

    Raises
    ------
    DataError
        If an argument is out of range.

    Notes
    -----
    .. math::
        x \sim U[-3, 3], \quad z \sim N(0, 1), \quad
        y = \sin(1.5 x) + x/2 + \varepsilon, \quad
        s = 1[-1.8\,x/3 + \alpha z + u > 0]

    with sd ε = σ, Var u = 1 and corr(ε, u) = ρ. Units with large x are rarely selected.

    ``default_rng(seed)`` draws x, then z, then the (n, 2) standard normals that the Cholesky factor
    of the covariance of (ε, u) turns into errors. This order reproduces the draws of the published
    experiment. Its test set is ``make_controlled(3000, seed=10000 + seed, ...)``, of which it uses
    ``truth.y``.

    Examples
    --------
    >>> import heckesel as hk
    >>> draw = hk.datasets.make_controlled(1000, rho=0.5, alpha=1.0, seed=0)
    >>> int(draw.frame["y"].notna().sum())
    468
    """
    check_draw(rho, seed, sizes={"n": n}, alpha=alpha, sigma=sigma)
    if not (isinstance(df, Real) and df > 2):
        raise DataError(f"df is {df!r} but must exceed 2, so that the errors have a variance")
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, size=n)
    frame, f0, index = pd.DataFrame({"x": x}), controlled_f0(x), INDEX_SLOPE * x
    return draw_sample(
        rng, frame, f0, index, alpha=alpha, rho=rho, sigma=sigma, errors=errors, df=df
    )


def draw_sample(
    rng, frame: pd.DataFrame, f0, index_x, *, alpha, rho, sigma, errors, df=DEGREES
) -> Controlled:
    """Draws z, then the errors, and hides the outcomes of units that are not selected.

    frame : the covariates
    f0, index_x : (n,) the regression function, and the selection index without z
    """
    z = rng.normal(size=len(frame))
    epsilon, u = draw_errors(rng, len(frame), rho=rho, sigma=sigma, errors=errors, df=df)
    y, index = f0 + epsilon, index_x + alpha * z
    propensity = selection_probability(index, errors, df)
    given_x = probability_given_x(index_x, alpha, errors, df)
    frame = frame.assign(z=z, y=np.where(index + u > 0, y, np.nan))
    return Controlled(frame, Truth(y, f0, propensity, given_x))


def controlled_f0(x: np.ndarray) -> np.ndarray:
    """(n,) the regression function at x (n,)."""
    return np.sin(1.5 * x) + x / 2
