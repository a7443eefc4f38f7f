"""The truth behind generated data, and what their generators accept."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from heckesel.errors import DataError


@dataclass(frozen=True)
class Truth:
    """The truth about simulated units, with one entry per row of the frame.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Outcome of every unit, selected or not.
    f0 : ndarray of shape (n,) or None
        E[y | x]; None if it is unknown.
    propensity : ndarray of shape (n,) or None
        P(s = 1 | x, z); None if no z was drawn.
    propensity_x : ndarray of shape (n,)
        P(s = 1 | x), which defines the regions of the population.

    Examples
    --------
    >>> import heckesel as hk
    >>> truth = hk.datasets.make_controlled(100, rho=0.5, alpha=1.0, seed=0).truth
    >>> truth.y.shape
    (100,)
    """

    y: np.ndarray
    f0: np.ndarray | None
    propensity: np.ndarray | None
    propensity_x: np.ndarray


def check_draw(rho, seed, *, sizes, alpha=0.0, sigma=1.0):
    """Refuse arguments that a generator cannot draw from; sizes : name -> number of rows."""
    for name, size in sizes.items():
        if not (isinstance(size, Integral) and size >= 1):
            raise DataError(f"{name} is {size!r} but must be a positive integer")
    if not (isinstance(rho, Real) and -1 < rho < 1):
        raise DataError(f"rho is {rho!r} but must lie strictly between -1 and 1")
    if not (isinstance(alpha, Real) and np.isfinite(alpha)):
        raise DataError(f"alpha is {alpha!r} but must be a finite number")
    if not (isinstance(sigma, Real) and 0 < sigma < np.inf):
        raise DataError(f"sigma is {sigma!r} but must be a positive number")
    if not (isinstance(seed, Integral) and seed >= 0):
        raise DataError(f"seed is {seed!r} but must be a non-negative integer")
