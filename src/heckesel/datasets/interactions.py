"""A simulated population with five covariates that interact and one instrument."""

import numpy as np
import pandas as pd

from heckesel.datasets.controlled import Controlled, draw_sample
from heckesel.datasets.truth import check_draw

INDEX_SLOPE = -1.2  # in x1 and x4: without z P(s = 1) ranges from .99 to .01


def make_interactions(
    n: int = 4000,
    *,
    rho: float,
    alpha: float,
    seed: int,
    sigma: float = 0.5,
    errors: str = "normal",
) -> Controlled:
    r"""Simulate units whose outcome is not additive in its five covariates.

    Parameters
    ----------
    n : int, default 4000
        Number of units.
    rho : float
        Correlation of the two errors, strictly between -1 and 1.
    alpha : float
        Effect of the instrument on selection.
    seed : int
    sigma : float, default 0.5
        Standard deviation of the outcome error.
    errors : {"normal", "t", "chi2"}, default "normal"
        As in `make_controlled`.

    Returns
    -------
    Controlled
        The columns of its ``frame`` are ``x1`` to ``x5``, ``z`` and ``y``.

    Raises
    ------
    DataError
        If an argument is out of range.

    Notes
    -----
    .. math::
        x \sim U[-1, 1]^5, \quad
        f_0 = \sin(\pi x_1 x_2) + x_3 x_4 + x_5^2 + x_1/2, \quad
        s = 1[-1.2\,(x_1 + x_4) + \alpha z + u > 0]

    Examples
    --------
    >>> import heckesel as hk
    >>> hk.datasets.make_interactions(100, rho=0.5, alpha=1.0, seed=0).frame.shape
    (100, 7)
    """
    check_draw(rho, seed, sizes={"n": n}, alpha=alpha, sigma=sigma)
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 5))
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(1, 6)])
    f0, index = interactions_f0(x), INDEX_SLOPE * (x[:, 0] + x[:, 3])
    return draw_sample(rng, frame, f0, index, alpha=alpha, rho=rho, sigma=sigma, errors=errors)


def interactions_f0(x: np.ndarray) -> np.ndarray:
    """(n,) the regression function at x (n, 5)."""
    x1, x2, x3, x4, x5 = x.T
    return np.sin(np.pi * x1 * x2) + x3 * x4 + x5**2 + x1 / 2
