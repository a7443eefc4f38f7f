"""Coverage and width of the central intervals."""

import numpy as np

from heckesel.metrics.points import points_of
from heckesel.predictive import Predictive


def coverage(y: np.ndarray, predictive: Predictive, *, level: float = 0.9) -> float:
    r"""Share of outcomes inside the central interval.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Outcomes.
    predictive : Predictive
        Predictions for the same points.
    level : float, default 0.9
        Nominal coverage.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \frac1m \sum_i 1\{l_i \le y_i \le u_i\},
              \qquad l_i, u_i = F_i^{-1}\big((1 \mp \text{level})/2\big)

    Overall coverage close to the level can hide undercoverage in one region and overcoverage in
    another, so also look at coverage by region.

    Examples
    --------
    >>> import heckesel as hk
    >>> predictive = hk.Predictive.normal([0.0, 0.0], 0.0, 1.0)
    >>> coverage([1.0, 2.0], predictive)
    0.5
    """
    y = points_of(y, "y", predictive)
    return float(np.mean(covered(y, *predictive.interval(level).T)))


def sharpness(predictive: Predictive, *, level: float = 0.9) -> float:
    """Mean width of the central interval, in units of y.

    Parameters
    ----------
    predictive : Predictive
    level : float, default 0.9
        Nominal coverage.

    Returns
    -------
    float
        Of two predictives with the right coverage, prefer the one with the smaller width.

    Examples
    --------
    >>> import heckesel as hk
    >>> round(sharpness(hk.Predictive.normal([0.0, 5.0], 0.0, 1.0)), 3)
    3.29
    """
    lower, upper = predictive.interval(level).T
    return float(np.mean(upper - lower))


def covered(y, lower, upper) -> np.ndarray:
    """(m,) bool: whether y lies inside the interval."""
    return (lower <= y) & (y <= upper)
