"""Metrics of a `Predictive`, and `evaluate`, which computes all of them."""

import numpy as np

from heckesel.metrics.bias import bias, rmse
from heckesel.metrics.binary_scores import calibration_table, gini, ks, swap_set
from heckesel.metrics.calibration import (
    calibration_error,
    central,
    central_calibration_error,
    mean_gap,
)
from heckesel.metrics.coverage import coverage, covered, sharpness
from heckesel.metrics.points import points_of
from heckesel.metrics.regions import regions
from heckesel.metrics.scores import (
    crps,
    crps_at_points,
    gaussian_losses,
    gaussian_nll,
    interval_score,
    interval_scores,
)
from heckesel.predictive import Predictive

__all__ = [
    "bias",
    "calibration_error",
    "calibration_table",
    "central_calibration_error",
    "coverage",
    "crps",
    "evaluate",
    "gaussian_nll",
    "gini",
    "interval_score",
    "ks",
    "regions",
    "rmse",
    "sharpness",
    "swap_set",
]

LEVEL = 0.9  # of the intervals


def evaluate(y, predictive: Predictive, *, f0=None, propensity_x=None) -> dict[str, float]:
    """Compute every metric, over all points and by region.

    Parameters
    ----------
    y : array-like of shape (m,)
        Outcomes of the population, selected or not.
    predictive : Predictive
        Predictions for the same points.
    f0 : array-like of shape (m,), optional
        The true regression function. Without it there are no ``bias_f0`` and ``rmse_f0``.
    propensity_x : array-like of shape (m,), optional
        True P(s = 1 | x). Without it there are no metrics by region.

    Returns
    -------
    dict of str to float
        The metrics over all points, then those of each region with the region as suffix, as in
        ``coverage90_against``. ``n_against``, ``n_mid`` and ``n_well`` count the points; a region
        with fewer than ten has no keys.

    Raises
    ------
    DataError
        If an array does not have one finite value per point.

    Examples
    --------
    >>> import heckesel as hk
    >>> row = evaluate([0.0, 1.0], hk.Predictive.normal([0.0, 0.0], 0.0, 1.0), f0=[0.0, 0.0])
    >>> row["coverage90"], row["bias_f0"]
    (1.0, 0.0)
    """
    y = points_of(y, "y", predictive)
    f0 = None if f0 is None else points_of(f0, "f0", predictive)
    per_point = _per_point(y, predictive, f0)
    row = _averages(per_point, slice(None))
    if propensity_x is None:
        return row
    propensity_x = points_of(propensity_x, "propensity_x", predictive)
    for name, rows in regions(propensity_x).items():
        averages = _averages(per_point, rows)
        row |= {f"{metric}_{name}": value for metric, value in averages.items()}
        row[f"n_{name}"] = len(rows)
    return row


def _per_point(y, predictive, f0) -> dict[str, np.ndarray]:
    """(m,) the term of each point in every metric.

    Quantiles and distribution functions, which can be slow, are computed once for all regions.
    """
    lower, upper = predictive.interval(LEVEL).T
    terms = {
        "coverage90": covered(y, lower, upper),
        "width90": upper - lower,
        "nll": gaussian_losses(y, predictive),
        "crps": crps_at_points(y, predictive),
        "interval_score90": interval_scores(y, lower, upper, LEVEL),
        "transform": predictive.cdf(y),
    }
    return terms if f0 is None else terms | {"error": predictive.mean - f0}


def _averages(per_point: dict[str, np.ndarray], rows) -> dict[str, float]:
    """The metrics over some of the points."""
    terms = {name: values[rows] for name, values in per_point.items()}
    u, error = terms.pop("transform"), terms.pop("error", None)
    row = {name: float(np.mean(values)) for name, values in terms.items()}
    row |= {"ece": mean_gap(u), "ece_central": mean_gap(central(u))}
    if error is not None:
        row |= {"bias_f0": float(np.mean(error)), "rmse_f0": float(np.sqrt(np.mean(error**2)))}
    return row
