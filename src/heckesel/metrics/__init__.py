"""How good is a predictive? Functions of (y, Predictive), and `evaluate` for the whole row."""

from __future__ import annotations

import numpy as np

from heckesel.metrics.bias import bias, mean_error, rmse, root_mean_square
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
from heckesel.predictive.distribution import Predictive

__all__ = [
    "bias",
    "calibration_error",
    "central_calibration_error",
    "coverage",
    "crps",
    "evaluate",
    "gaussian_nll",
    "interval_score",
    "regions",
    "rmse",
    "sharpness",
]

LEVEL = 0.9  # of the intervals in a row


def evaluate(y, predictive: Predictive, *, f0=None, propensity_x=None) -> dict[str, float]:
    """Every metric as one flat row: over all points, then by region with the region as suffix.

    y : (m,) outcomes of the population, selected or not
    f0 : (m,) the true regression function; without it the row has no bias and no rmse
    propensity_x : (m,) true P(s = 1 | x); without it the row has no regions. `n_against`,
        `n_mid`, `n_well` count their points; a region of fewer than ten has no keys at all.
    """
    y = points_of(y, "y", predictive)
    f0 = None if f0 is None else points_of(f0, "f0", predictive)
    judged = _judged(y, predictive, f0)
    row = _means(judged, slice(None))
    if propensity_x is None:
        return row
    propensity_x = points_of(propensity_x, "propensity_x", predictive)
    for name, rows in regions(propensity_x).items():
        row |= {f"{metric}_{name}": value for metric, value in _means(judged, rows).items()}
        row[f"n_{name}"] = len(rows)
    return row


def _judged(y, predictive, f0) -> dict[str, np.ndarray]:
    """(m,) what each point adds to the metrics of all points and of its region: quantiles and
    distribution functions, which may cost a search, are then asked for once."""
    lower, upper = predictive.interval(LEVEL).T
    judged = {
        "coverage90": covered(y, lower, upper),
        "width90": upper - lower,
        "nll": gaussian_losses(y, predictive),
        "crps": crps_at_points(y, predictive),
        "interval_score90": interval_scores(y, lower, upper, LEVEL),
        "transform": predictive.cdf(y),
    }
    return judged if f0 is None else judged | {"error": predictive.mean - f0}


def _means(judged: dict[str, np.ndarray], rows) -> dict[str, float]:
    """The metrics over some of the points."""
    judged = {name: values[rows] for name, values in judged.items()}
    u, error = judged.pop("transform"), judged.pop("error", None)
    row = {name: float(np.mean(values)) for name, values in judged.items()}
    row |= {"ece": mean_gap(u), "ece_central": mean_gap(central(u))}
    if error is not None:
        row |= {"bias_f0": mean_error(error), "rmse_f0": root_mean_square(error)}
    return row
