"""The columns of a table on disk as numbers and categories, for the columns that are used."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from heckesel.errors import DataError
from heckesel.tables.columns import Columns
from heckesel.tables.table_file import Table

MISSING = ("", "na", "n/a", "nan", "null", "none", "#n/a", ".")
YES_NO = {"true": "1", "false": "0", "yes": "1", "no": "0"}
DATES = dict.fromkeys(("Timestamp", "Timedelta", "datetime", "date"), "dates")
KINDS = DATES | {"ndarray": "lists", "list": "lists", "dict": "records"}
# A text column with more levels than a tenth of its rows, and than this, is a name or a note.
MANY_LEVELS = 20


def number_column(table: Table, name: str, role: str, *, yes_no: bool = False) -> pd.Series:
    """A column that must hold numbers, missing ones NaN; with `yes_no` also true and false."""
    table.check(name, role)
    column = table.frame[name]
    if not is_text(column):
        return typed(column, table, name).astype(float)
    values, absent = stripped(column)
    if yes_no:
        values = values.map(lambda value: YES_NO.get(value.lower(), value))
    numbers = numbers_of(values, table.decimal)
    bad = np.flatnonzero(np.isnan(numbers) & ~absent)
    if len(bad):
        raise _not_a_number(table, name, values.iloc[bad[0]], bad[0])
    return pd.Series(numbers, table.frame.index, name=name)


def fit_columns(table: Table, names: Iterable[str], *, missing: str = "indicator") -> pd.DataFrame:
    """Columns to fit to: numbers where most values are, else categories; with `missing` "error" a
    gap in one of them is refused."""
    found = {name: _fit_column(table, name) for name in names}
    if missing == "error":
        _refuse_gaps(table, found, "take --missing indicator")
    return pd.DataFrame(found, table.frame.index)


def _refuse_gaps(table: Table, found: dict[str, pd.Series], way_out: str) -> None:
    for name, column in found.items():
        rows = np.flatnonzero(column.isna())
        if len(rows):
            raise DataError(
                f"column {name!r} of {table.path} is missing in {len(rows)} "
                f"row{'s' * (len(rows) > 1)} (first: {table.where(rows[0])}); fill or drop them, "
                f"or {way_out}"
            )


def _fit_column(table: Table, name: str) -> pd.Series:
    table.check(name)
    column = table.frame[name]
    if not is_text(column):
        return typed(column, table, name)
    values, absent = stripped(column)
    code = first_code(values)
    if code is not None:
        return _codes(table, name, values.where(~absent, None), code)
    numbers = numbers_of(values, table.decimal)
    bad = np.flatnonzero(np.isnan(numbers) & ~absent)
    if not len(bad):
        return pd.Series(numbers, column.index)
    if len(bad) <= 0.5 * (~absent).sum() or _with_decimal_comma(values.iloc[bad]):
        raise _not_a_number(table, name, values.iloc[bad[0]], bad[0])
    values = values.astype(object).where(~absent, None)
    _refuse_many_levels(table, name, values)
    return values


def _codes(table: Table, name: str, values: pd.Series, code: str) -> pd.Series:
    """Categories, which they stay behind this door because their type says so."""
    from heckesel.cli.waiting import note

    _refuse_many_levels(table, name, values, ", or write it without leading zeros for a number")
    levels = sorted(values.dropna().unique())
    note(
        f"{name} has a leading zero ({code}), so it is taken for a category, of {len(levels)} "
        "levels (without leading zeros it would be a number)"
    )
    return pd.Series(pd.Categorical(values, levels), values.index)


def _refuse_many_levels(table: Table, name: str, values: pd.Series, or_else: str = "") -> None:
    levels = values.nunique()
    if levels > max(MANY_LEVELS, len(values) / 10):
        raise DataError(
            f"column {name!r} of {table.path} has {levels} different texts in {len(values)} rows, "
            f"too many for a category; leave it out with --exclude {name!r}{or_else}"
        )


def prediction_columns(table: Table, columns: Columns, target: str) -> pd.DataFrame:
    """The columns a model predicts `target` from, each as the kind of column it was fitted to."""
    needed = list(columns.outcome_names)
    needed += [] if target == "population" else list(columns.instruments)
    for name in columns.instruments:
        if name in needed and name not in table.frame.columns:
            raise DataError(
                f"target {target!r} needs the instrument {name!r}, which {table.path} lacks; add "
                "it, or predict the population"
            )
    found = {}
    for name in needed:
        if name in columns.levels:
            found[name] = _as_levels(table, name, columns.levels[name])
        else:
            found[name] = _known_number(table, name)
    if not columns.fill:  # else the model knows which columns may have gaps
        _refuse_gaps(table, found, "predict with a model fitted with --missing indicator")
    return pd.DataFrame(found, table.frame.index)


def _known_number(table: Table, name: str) -> pd.Series:
    """A column that was numbers in the fit; codes would have been categories there."""
    numbers = number_column(table, name, "column")
    column = table.frame[name]
    code = first_code(stripped(column)[0]) if is_text(column) else None
    if code is not None:
        raise DataError(
            f"column {name!r} of {table.path} has a leading zero ({code}), and the model was "
            "fitted to numbers there; write it without leading zeros"
        )
    return numbers


def _as_levels(table: Table, name: str, levels: tuple) -> pd.Series:
    """The levels of the fit, known by how they are written; others stay as they are."""
    table.check(name)
    column = table.frame[name]
    known = {str(level): level for level in levels}
    if is_text(column):
        values, absent = stripped(column)
    else:
        absent = column.isna().to_numpy()
        values = column.astype(object).map(str)
    return values.map(lambda value: known.get(value, value)).astype(object).where(~absent, None)


def is_text(column: pd.Series) -> bool:
    """Whether every value that is there is text."""
    if column.dtype == object:
        return all(isinstance(value, str) for value in column.dropna())
    return isinstance(column.dtype, pd.StringDtype)


def typed(column: pd.Series, table: Table, name: str) -> pd.Series:
    """A Parquet column that is number, truth or category."""
    if pd.api.types.is_numeric_dtype(column) or isinstance(column.dtype, pd.CategoricalDtype):
        return column
    first = type(column.dropna().iloc[0]).__name__ if column.notna().any() else "None"
    kind = KINDS.get(first, f"values of type {first}")
    raise DataError(
        f"column {name!r} of {table.path} holds {kind}; make it a number or text, or leave it out "
        f"with --exclude {name!r}"
    )


def stripped(column: pd.Series) -> tuple[pd.Series, np.ndarray]:
    """Text without blanks around it, and where it stands for a missing value."""
    absent = column.isna().to_numpy()
    values = column.astype(object).where(~absent, "").str.strip()
    return values, absent | values.str.lower().isin(MISSING).to_numpy()


def first_code(values: pd.Series) -> str | None:
    """The first whole number written with a leading zero: such a column holds codes."""
    codes = values[values.str.fullmatch(r"0\d+")]
    return codes.iloc[0] if len(codes) else None


def numbers_of(values: pd.Series, decimal: str) -> np.ndarray:
    if decimal == ",":
        values = values.where(~values.str.contains(".", regex=False), "x")
        values = values.str.replace(",", ".", regex=False)
    return pd.to_numeric(values, errors="coerce").to_numpy(dtype=float)


def _with_decimal_comma(values: pd.Series) -> bool:
    return bool(values.str.fullmatch(r"[+-]?\d+,\d+").all())


def _not_a_number(table: Table, name: str, value: str, row: int) -> DataError:
    hint = ""
    if table.decimal == "." and _with_decimal_comma(pd.Series([value])):
        hint = "; for decimal commas give --decimal ,"
    return DataError(
        f"column {name!r} of {table.path} should hold numbers but {table.where(row)} has "
        f"{value!r:.60}{hint}"
    )


def with_numbers(frame: pd.DataFrame, decimal: str) -> pd.DataFrame:
    """The frame with text that is all numbers as numbers, as a Parquet file should have it."""
    return pd.DataFrame({name: _or_number(frame[name], decimal) for name in frame.columns})


def _or_number(column: pd.Series, decimal: str) -> pd.Series:
    """Numbers, unless a leading zero says that it is a label."""
    if not is_text(column):
        return column
    values, absent = stripped(column)
    numbers = numbers_of(values, decimal)
    if first_code(values) is not None or (np.isnan(numbers) & ~absent).any() or absent.all():
        return column
    return pd.Series(numbers, column.index)
