"""Is the outcome of a table a number or one of two classes? A plain rule, which is printed.

Two classes are two texts that are no numbers (yes and no, good and bad), truths, or the numbers 0
and 1 and no other, among the rows that were selected. Everything else is a number. `--kind`
overrules.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from heckesel.tables.column_kinds import is_text, number_column, numbers_of, stripped, typed
from heckesel.tables.table_file import Table


@dataclass(frozen=True)
class Outcome:
    """values : numbers, or labels with None where missing; classes : the two, in order, or None"""

    values: pd.Series
    classes: tuple | None


def read_outcome(table: Table, name: str, kind: str, selected: pd.Series | None) -> Outcome:
    table.check(name, "outcome")
    if kind == "regression":
        return Outcome(number_column(table, name, "outcome", yes_no=_is_truth(table, name)), None)
    labels, numeric = _labels(table, name)
    seen = labels.notna() if selected is None else labels.notna() & (selected == 1.0)
    found = list(dict.fromkeys(labels[seen]))
    if kind == "auto":
        two = set(found) == {0, 1} if numeric else len(found) == 2
        if not two or (not numeric and any(_is_number(each, table.decimal) for each in found)):
            return Outcome(number_column(table, name, "outcome"), None)
    return Outcome(labels.rename(name), tuple(sorted(found)))


def _labels(table: Table, name: str) -> tuple[pd.Series, bool]:
    """The column as labels, None where missing, and whether they are numbers."""
    column = table.frame[name]
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if is_text(column):
        values, absent = stripped(column)
        numbers = numbers_of(values, table.decimal)
        if (np.isnan(numbers) & ~absent).any():
            return values.astype(object).where(~absent, None), False
        column = pd.Series(numbers, column.index)
    present = column.dropna()
    if all(isinstance(value, bool | np.bool_) for value in present):
        return column.astype(object).where(column.notna(), None), False
    typed(column, table, name)
    whole = pd.api.types.is_numeric_dtype(column) and (present % 1 == 0).all()  # inf % 1 is NaN
    labels = [None if pd.isna(each) else int(each) if whole else each for each in column]
    return pd.Series(labels, column.index, dtype=object), True


def _is_truth(table: Table, name: str) -> bool:
    """Whether a column of truths was asked for as numbers: true is 1 and false 0."""
    column = table.frame[name]
    return is_text(column) and set(stripped(column)[0].str.lower()) <= {"true", "false", ""}


def _is_number(label, decimal: str) -> bool:
    return isinstance(label, str) and bool(np.isfinite(numbers_of(pd.Series([label]), decimal)[0]))
