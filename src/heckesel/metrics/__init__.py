"""How good is a predictive? Functions of (y, Predictive), and `evaluate` for the whole row."""

from __future__ import annotations

import numpy as np

from heckesel.errors import DataError
from heckesel.metrics.bias import bias, rmse
from heckesel.metrics.calibration import calibration_error, central_calibration_error
from heckesel.metrics.coverage import coverage, sharpness
from heckesel.metrics.regions import regions, take
from heckesel.metrics.scores import crps, gaussian_nll, interval_score
from heckesel.predictive import Predictive

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
    "take",
]


def evaluate(y, predictive: Predictive, *, f0=None, propensity_x=None) -> dict[str, float]:
    """Every metric as one flat row: over all points, then by region with the region as suffix.

    y : (m,) outcomes of the population, selected or not
    f0 : (m,) the true regression function; without it the row has no bias and no rmse
    propensity_x : (m,) true P(s = 1 | x); without it the row has no regions. `n_against`,
        `n_mid`, `n_well` count their points; a region of fewer than ten has no keys at all.
    """
    y = _points(y, "y", len(predictive))
    f0 = None if f0 is None else _points(f0, "f0", len(predictive))
    row = _metrics(y, predictive, f0)
    if propensity_x is None:
        return row
    propensity_x = _points(propensity_x, "propensity_x", len(predictive))
    for name, rows in regions(propensity_x).items():
        part = _metrics(y[rows], take(predictive, rows), None if f0 is None else f0[rows])
        row |= {f"{metric}_{name}": value for metric, value in part.items()}
        row[f"n_{name}"] = len(rows)
    return row


def _metrics(y, predictive, f0) -> dict[str, float]:
    row = {
        "coverage90": coverage(y, predictive, level=0.9),
        "width90": sharpness(predictive, level=0.9),
        "nll": gaussian_nll(y, predictive),
        "crps": crps(y, predictive),
        "interval_score90": interval_score(y, predictive, level=0.9),
        "ece": calibration_error(y, predictive),
        "ece_central": central_calibration_error(y, predictive),
    }
    if f0 is not None:
        row |= {"bias_f0": bias(f0, predictive), "rmse_f0": rmse(f0, predictive)}
    return row


def _points(values, name: str, m: int) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.shape != (m,):
        raise DataError(f"{name} has shape {values.shape} but the predictive has {m} points")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(
            f"{name} is {values[row]} in row {row}; metrics need a value at every point, so "
            "evaluate on the rows that have one"
        )
    return values
