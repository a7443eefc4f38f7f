r"""Calibration errors: how far predicted probabilities are from observed frequencies.

Let u_i = F_i(y_i) be the probability integral transform (PIT) of y_i. It is uniform if the
predictive is right, and y_i lies below the predicted p-quantile exactly if u_i <= p. Both errors
are means over the 19 levels .05, ..., .95. They differ from the error of Kuleshov et al., which is
a weighted sum of *squared* gaps.
"""

import numpy as np

from heckesel.metrics.points import points_of
from heckesel.predictive.distribution import Predictive

LEVELS = np.arange(1, 20) / 20


def calibration_error(y: np.ndarray, predictive: Predictive) -> float:
    r"""One-sided calibration error: mean gap between quantile levels and observed shares below.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Outcomes.
    predictive : Predictive
        Predictions for the same points.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \frac1{19} \sum_p \Big| \frac1m \sum_i 1\{u_i \le p\} - p \Big|

    It detects errors of location and of scale: a biased predictive misses at every level. Computed
    on the points of one region it is the region ECE. With m points its expectation under the right
    predictive is about .33/sqrt(m), not 0.

    Examples
    --------
    >>> import heckesel as hk
    >>> import numpy as np
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> calibration_error(y, hk.Predictive.normal(np.zeros(1000), 0.0, 1.0)) < 0.02
    True
    """
    return mean_gap(predictive.cdf(points_of(y, "y", predictive)))


def central_calibration_error(y: np.ndarray, predictive: Predictive) -> float:
    r"""Mean gap between the levels of central intervals and their coverage.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Outcomes.
    predictive : Predictive
        Predictions for the same points.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \frac1{19} \sum_p \Big| \frac1m \sum_i 1\{|2u_i - 1| \le p\} - p \Big|

    It detects errors of scale and can hide bias: a biased predictive that is too wide by the right
    amount has the right coverage at every level. Most libraries call this one the calibration
    error.

    Examples
    --------
    >>> import heckesel as hk
    >>> import numpy as np
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> central_calibration_error(y, hk.Predictive.normal(np.zeros(1000), 0.0, 4.0)) > 0.1
    True
    """
    return mean_gap(central(predictive.cdf(points_of(y, "y", predictive))))


def reliability(u: np.ndarray) -> np.ndarray:
    """(19,) share of the transforms u (m,) at or below each level.

    These are the points of a reliability diagram, on the diagonal if the predictive is right.
    """
    return (u[:, None] <= LEVELS).mean(axis=0)


def central(u: np.ndarray) -> np.ndarray:
    """(m,) the level of the central interval that ends at y, from the transforms u (m,)."""
    return np.abs(2 * u - 1)


def mean_gap(u: np.ndarray) -> float:
    """Mean distance from the diagonal of the reliability diagram."""
    return float(np.mean(np.abs(reliability(u) - LEVELS)))
