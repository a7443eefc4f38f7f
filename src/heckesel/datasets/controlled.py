"""A population with one covariate and one instrument, of which everything is known."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
import pandas as pd

from heckesel.datasets.error_draws import (
    DEGREES,
    draw_errors,
    probability_given_x,
    selection_probability,
)
from heckesel.datasets.truth import Truth
from heckesel.errors import DataError

INDEX_SLOPE = -1.8 / 3
# x reaches 3, so without z the chance of selection runs from Phi(1.8) = .96 down to .04.


@dataclass(frozen=True)
class Controlled:
    """n units: `frame` with columns x, z, y (NaN where not selected), and their `truth`."""

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
    r"""Draw units whose selection depends on x, on an instrument z and on their own error.

    .. math::
        x \sim U[-3, 3], \quad z \sim N(0, 1), \quad
        y = \sin(1.5 x) + x/2 + \varepsilon, \quad
        s = 1[-1.8\,x/3 + \alpha z + u > 0]

    with sd ε = σ, Var u = 1, corr(ε, u) = ρ. With α = 0 the instrument is still a column, and
    says nothing. Large x is selected against. `errors` of kind "t" or "chi2" have the same
    variances and correlation (see `draw_errors`); df > 2 are the degrees of freedom of the t.

    `default_rng(seed)` draws x, then z, then the (n, 2) standard normals that the Cholesky factor
    of the covariance of (ε, u) turns into errors; this order makes the draws those of the
    published experiment. Its test set is `make_controlled(3000, seed=10000 + seed, ...)`, of which
    it uses `truth.y`.
    """
    check_draw(n, rho, alpha, seed, sigma)
    if not (isinstance(df, Real) and df > 2):
        raise DataError(f"df is {df!r} but must exceed 2, or the errors have no variance")
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, size=n)
    z = rng.normal(size=n)
    epsilon, u = draw_errors(rng, n, rho=rho, sigma=sigma, errors=errors, df=df)
    f0 = controlled_f0(x)
    y = f0 + epsilon
    index = INDEX_SLOPE * x + alpha * z
    frame = pd.DataFrame({"x": x, "z": z, "y": np.where(index + u > 0, y, np.nan)})
    propensity = selection_probability(index, errors, df)
    return Controlled(
        frame, Truth(y, f0, propensity, probability_given_x(INDEX_SLOPE * x, alpha, errors, df))
    )


def controlled_f0(x: np.ndarray) -> np.ndarray:
    """(n,) the regression function at x (n,)."""
    return np.sin(1.5 * x) + x / 2


def check_draw(n, rho, alpha, seed, sigma):
    """Refuse what no generator here can draw from."""
    if not (isinstance(n, Integral) and n >= 1):
        raise DataError(f"n is {n!r} but must be a positive whole number")
    if not (isinstance(rho, Real) and -1 < rho < 1):
        raise DataError(f"rho is {rho!r} but must lie strictly between -1 and 1")
    if not (isinstance(alpha, Real) and np.isfinite(alpha)):
        raise DataError(f"alpha is {alpha!r} but must be a finite number")
    if not (isinstance(sigma, Real) and 0 < sigma < np.inf):
        raise DataError(f"sigma is {sigma!r} but must be a positive number")
    if not (isinstance(seed, Integral) and seed >= 0):
        raise DataError(f"seed is {seed!r} but must be a whole number, 0 or above")
