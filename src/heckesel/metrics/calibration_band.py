"""Simultaneous bands for the shares of a reliability diagram, under a right model."""

import numpy as np

from heckesel.metrics.calibration import LEVELS

# The band contains all points of this share of right models. A pointwise band of 90 % would fail
# 56 % of them, and a joint one of 90 % one in ten, too many for a check that changes advice.
JOINT_LEVEL = 0.99
DRAWS = 20_000  # of right models: the width of the band then has an error of 1 %
SEED = 1307  # the same data give the same band


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
