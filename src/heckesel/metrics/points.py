"""Validation of what a metric compares with a predictive: one number per point."""

import numpy as np

from heckesel.errors import DataError
from heckesel.numeric_input import numeric
from heckesel.predictive import Predictive


def points_of(values, name: str, predictive: Predictive) -> np.ndarray:
    """(m,) values, none of them missing or masked."""
    values, m = numeric(values, name), len(predictive)
    if values.shape != (m,):
        raise DataError(f"{name} has shape {values.shape} but the predictive has {m} points")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(
            f"{name} is {values[row]} in row {row}; metrics need a finite value at every point, so "
            "evaluate only the rows that have one"
        )
    return values
