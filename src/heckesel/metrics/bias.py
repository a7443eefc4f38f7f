"""Errors of the predicted mean against a known regression function, as in simulations."""

from __future__ import annotations

import numpy as np

from heckesel.metrics.points import points_of
from heckesel.predictive.distribution import Predictive


def bias(f0: np.ndarray, predictive: Predictive) -> float:
    r"""Mean of predicted minus true, signed: :math:`\frac1m \sum_i (\mu_i - f_0(x_i))`.

    Positive and negative errors cancel, across points and, when averaged again, across seeds.
    """
    return mean_error(predictive.mean - points_of(f0, "f0", predictive))


def rmse(f0: np.ndarray, predictive: Predictive) -> float:
    r"""Root mean squared error of the mean: :math:`\sqrt{\frac1m\sum_i(\mu_i - f_0(x_i))^2}`."""
    return root_mean_square(predictive.mean - points_of(f0, "f0", predictive))


def mean_error(error: np.ndarray) -> float:
    return float(np.mean(error))


def root_mean_square(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(error**2)))
