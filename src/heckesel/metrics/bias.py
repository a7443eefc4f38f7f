"""Errors of the predicted mean against a known regression function, as in simulations."""

import numpy as np

from heckesel.metrics.points import points_of
from heckesel.predictive import Predictive


def bias(f0: np.ndarray, predictive: Predictive) -> float:
    r"""Mean error of the predicted mean.

    Parameters
    ----------
    f0 : ndarray of shape (m,)
        The true regression function at each point.
    predictive : Predictive
        Predictions for the same points.

    Returns
    -------
    float
        Positive if predictions are too high on average.

    Notes
    -----
    .. math:: \frac1m \sum_i (\mu_i - f_0(x_i))

    Positive and negative errors cancel.

    Examples
    --------
    >>> import heckesel as hk
    >>> predictive = hk.Predictive.normal([1.0, 2.0], 0.0, 1.0)
    >>> bias([0.5, 2.0], predictive)
    0.25
    """
    return float(np.mean(predictive.mean - points_of(f0, "f0", predictive)))


def rmse(f0: np.ndarray, predictive: Predictive) -> float:
    r"""Root mean squared error of the predicted mean.

    Parameters
    ----------
    f0 : ndarray of shape (m,)
        The true regression function at each point.
    predictive : Predictive
        Predictions for the same points.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \sqrt{\frac1m\sum_i(\mu_i - f_0(x_i))^2}

    Examples
    --------
    >>> import heckesel as hk
    >>> predictive = hk.Predictive.normal([1.0, 2.0], 0.0, 1.0)
    >>> rmse([0.0, 1.0], predictive)
    1.0
    """
    return float(np.sqrt(np.mean((predictive.mean - points_of(f0, "f0", predictive)) ** 2)))
