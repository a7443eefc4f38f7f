"""What a metric compares a predictive with: one number for each of its points."""

from __future__ import annotations

import numpy as np

from heckesel.data import numeric
from heckesel.errors import DataError
from heckesel.predictive.distribution import Predictive


def points_of(values, name: str, predictive: Predictive) -> np.ndarray:
    """(m,) checked; a value that is missing or masked is refused."""
    values, m = numeric(values, name), len(predictive)
    if values.shape != (m,):
        raise DataError(f"{name} has shape {values.shape} but the predictive has {m} points")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(
            f"{name} is {values[row]} in row {row}; metrics need a value at every point, so "
            "evaluate on the rows that have one"
        )
    return values
