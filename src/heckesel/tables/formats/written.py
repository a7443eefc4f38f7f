"""Columns whose values have several types, as one type per column."""

from collections.abc import Sequence
from numbers import Number

import pandas as pd


def as_written(values: Sequence) -> pd.Series:
    """Numbers, booleans or dates if all values that are there are; numbers beside strings become
    the strings that a CSV file would have."""
    kinds = {type(value) for value in values if value is not None}
    if str in kinds:
        values = [None if value is None else _spelled(value) for value in values]
        return pd.Series(values, dtype=object)
    if kinds and all(issubclass(kind, Number) and kind is not bool for kind in kinds):
        return pd.Series(values, dtype=float)
    return pd.Series(values, dtype=object).infer_objects()


def _spelled(value) -> str:
    """A whole number without decimals: workbooks hold every number as a float."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
