"""Does the interval hold what it promises, and how wide must it be to do so?"""

from __future__ import annotations

import numpy as np

from heckesel.metrics.points import points_of
from heckesel.predictive.distribution import Predictive


def coverage(y: np.ndarray, predictive: Predictive, *, level: float = 0.9) -> float:
    r"""Share of outcomes inside the central interval; `level` is what was promised.

    .. math:: \frac1m \sum_i 1\{l_i \le y_i \le u_i\},
              \qquad l_i, u_i = F_i^{-1}\big((1 \mp \text{level})/2\big)

    A share near the level over all points can hide a shortfall in one region and an excess in
    another: read it by region.
    """
    lower, upper = predictive.interval(level).T
    return float(np.mean(covered(points_of(y, "y", predictive), lower, upper)))


def sharpness(predictive: Predictive, *, level: float = 0.9) -> float:
    """Mean width of the central interval, in units of y: of two that cover, prefer the narrower."""
    lower, upper = predictive.interval(level).T
    return float(np.mean(upper - lower))


def covered(y, lower, upper) -> np.ndarray:
    """(m,) bool: the interval holds y."""
    return (lower <= y) & (y <= upper)
