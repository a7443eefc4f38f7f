r"""Calibration errors: how far predicted probabilities are from observed frequencies.

Let u_i = F_i(y_i) be the probability integral transform (PIT) of y_i. It is uniform if the
predictive is right, and y_i lies below the predicted p-quantile exactly if u_i <= p. Both errors
are means over the 19 levels .05, ..., .95. They differ from the error of Kuleshov et al., which is
a weighted sum of *squared* gaps.
"""

import numpy as np

from heckesel.metrics.points import points_of
from heckesel.predictive import Predictive

LEVELS = np.arange(1, 20) / 20
# The band contains all points of this share of right models. A pointwise band of 90 % would fail
# 56 % of them, and a joint one of 90 % one in ten, too many for a check that changes advice.
JOINT_LEVEL = 0.99
DRAWS = 20_000  # of right models: the width of the band then has an error of 1 %
SEED = 1307  # the same data give the same band


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


def half_band(m: int) -> np.ndarray:
    r"""(19,) half the width of the band for m transforms.

    The share below level p has sd :math:`\sqrt{p(1-p)/m}` if the model is right. The largest of the
    19 correlated deviations, in sd, is simulated, because with few points it is far from normal at
    the outer levels.
    """
    sd = np.sqrt(LEVELS * (1 - LEVELS) / m)
    bins = np.full(len(LEVELS) + 1, 1 / (len(LEVELS) + 1))  # the levels are evenly spaced
    counts = np.random.default_rng(SEED).multinomial(m, bins, size=DRAWS)
    shares = counts.cumsum(axis=1)[:, :-1] / m
    furthest = np.abs((shares - LEVELS) / sd).max(axis=1)
    return np.quantile(furthest, JOINT_LEVEL) * sd


def class_half_band(probability: np.ndarray, count: np.ndarray) -> np.ndarray:
    r"""(j,) half the width of the band for the shares of a class among `count` (j,) units.

    probability : (j,) mean predicted probability of each group. Within a group probabilities are
    taken as equal, which makes the variance :math:`p(1-p)/n` slightly too large.
    """
    sd = np.sqrt(probability * (1 - probability) / count)
    rng = np.random.default_rng(SEED)
    shares = rng.binomial(count, probability, size=(DRAWS, len(count))) / count
    gaps = np.abs(shares - probability) / np.where(sd > 0, sd, np.inf)
    return np.quantile(gaps.max(axis=1), JOINT_LEVEL) * sd
