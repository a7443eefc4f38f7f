r"""Do predicted probabilities come true? Both errors are means over the 19 levels .05, ..., .95.

With the probability integral transform u_i = F_i(y_i), uniform when the predictive is right,
y_i lies below the predicted quantile at level p exactly when u_i <= p. Neither error is the one
of Kuleshov et al., a weighted sum of *squared* gaps: numbers from libraries that compute that
one are not comparable.
"""

from __future__ import annotations

import numpy as np

from heckesel.metrics.points import points_of
from heckesel.predictive.distribution import Predictive

LEVELS = np.arange(1, 20) / 20


def calibration_error(y: np.ndarray, predictive: Predictive) -> float:
    r"""One-sided calibration error: mean gap between quantile levels and the shares below.

    .. math:: \frac1{19} \sum_p \Big| \frac1m \sum_i 1\{u_i \le p\} - p \Big|

    It sees location and scale: a predictive shifted by a bias misses at every level. Computed
    on the points of one region this is the region-ECE. A right predictive does not reach 0 on
    m points: it expects about .33/sqrt(m).
    """
    return mean_gap(predictive.cdf(points_of(y, "y", predictive)))


def central_calibration_error(y: np.ndarray, predictive: Predictive) -> float:
    r"""Mean gap between the levels of central intervals and their coverage.

    .. math:: \frac1{19} \sum_p \Big| \frac1m \sum_i 1\{|2u_i - 1| \le p\} - p \Big|

    It sees scale and can hide bias: a shifted predictive that is too wide by the right amount
    covers every level. Most libraries mean this one by "calibration error".
    """
    return mean_gap(central(predictive.cdf(points_of(y, "y", predictive))))


def reliability(u: np.ndarray) -> np.ndarray:
    """(19,) share of the transforms u (m,) at or below each level: the points of a reliability
    plot, on the diagonal when the predictive is right."""
    return (u[:, None] <= LEVELS).mean(axis=0)


def central(u: np.ndarray) -> np.ndarray:
    """(m,) the level of the central interval that ends at y, from the transforms u (m,)."""
    return np.abs(2 * u - 1)


def mean_gap(u: np.ndarray) -> float:
    """Mean distance from the diagonal of a reliability plot."""
    return float(np.mean(np.abs(reliability(u) - LEVELS)))
