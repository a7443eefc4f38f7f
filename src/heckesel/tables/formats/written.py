"""Columns whose values have several types, as one type per column."""

from collections.abc import Sequence
from numbers import Integral, Number

import pandas as pd


def as_written(values: Sequence) -> pd.Series:
    """Numbers, booleans or dates if all values that are there are; numbers beside strings become
    the strings that a CSV file would have.

    Whole numbers stay whole: as floats they would lose digits from 2**53 on.
    """
    kinds = {type(value) for value in values if value is not None}
    if str in kinds:
        values = [None if value is None else str(value) for value in values]
        return pd.Series(values, dtype=object)
    if kinds and all(issubclass(kind, Number) and kind is not bool for kind in kinds):
        whole = all(issubclass(kind, Integral) for kind in kinds)
        some_missing = any(value is None for value in values)
        return pd.Series(values, dtype=float if not whole else "Int64" if some_missing else "int64")
    return pd.Series(values, dtype=object).infer_objects()
