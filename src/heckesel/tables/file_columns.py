"""The columns of a table file as numbers and categories, and its outcome as one of them."""

import re
import shlex
import warnings
from collections.abc import Callable, Container, Iterable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from heckesel.errors import DataError
from heckesel.tables.column_kinds import (
    first_code,
    has_decimal_commas,
    is_text,
    mostly_words,
    parsed_numbers,
    stripped,
    with_points,
)
from heckesel.tables.columns import Columns
from heckesel.tables.preparation.column_plan import CATEGORY, MEANS
from heckesel.tables.preparation.raw_values import MOST_GAP_WORDS, parsed
from heckesel.tables.table_file import TableFile

YES_NO = {"true": "1", "false": "0", "yes": "1", "no": "0"}
DATES = dict.fromkeys(("Timestamp", "Timedelta", "datetime", "date"), "dates")
NAMES = DATES | {"ndarray": "lists", "list": "lists", "dict": "records"}
# A string column with more levels than a tenth of its rows, and than this, is a name or a note.
MANY_LEVELS = 20
WHOLE = r"[+-]?\d{1,18}"  # digits that 64 bits hold


def without_empty_rows(table: TableFile) -> TableFile:
    """The table without rows in which no column has a value, which a note counts."""
    absent = [
        stripped(column)[1] if is_text(column) else column.isna().to_numpy()
        for _, column in table.frame.items()
    ]
    empty = np.all(absent, axis=0)
    if not empty.any() or empty.all():
        return table
    said = f"{int(empty.sum()):,} rows of {table.path} have no value in any column and are ignored"
    return replace(table, frame=table.frame[~empty], notes=(*table.notes, said))


def with_codes(table: TableFile, names: list[str], used: Container[str]) -> TableFile:
    """The table with these columns as categories, whatever their values.

    used : columns that are regressors or instruments
    """
    found = {}
    for name in names:
        table.check(name, "category")
        if name not in used:
            raise DataError(f"{name!r} is neither a regressor nor an instrument; omit --categories")
        column = table.frame[name]
        if is_text(column):
            values, absent = stripped(column)
            column = values.where(~absent, None)
        found[name] = column.astype("category")
    return replace(table, frame=table.frame.assign(**found)) if found else table


def number_column(
    table: TableFile, name: str, role: str, *, yes_no: bool = False, formatted: bool = False
) -> pd.Series:
    """A column that must hold numbers, missing ones NaN.

    yes_no : also true and false; formatted : also $1,200.00 and 95%
    """
    table.check(name, role)
    column = table.frame[name]
    if not is_text(column):
        return check_typed(column, table, name).astype(float)
    values, absent = stripped(column)
    if yes_no:
        values = values.map(lambda value: YES_NO.get(value.lower(), value))
    numbers = parsed_numbers(values, table.decimal)
    if formatted:
        rest = np.isnan(numbers) & ~absent
        numbers[rest] = parsed(with_points(values[rest], table.decimal))
    bad = np.flatnonzero(np.isnan(numbers) & ~absent)
    if len(bad):
        words = values.iloc[bad].unique()
        meant = role == "outcome" and len(words) <= MOST_GAP_WORDS
        raise _not_a_number(table, name, values.iloc[bad[0]], bad[0], outcome=meant)
    return pd.Series(numbers, table.frame.index, name=name)


def fit_columns(
    table: TableFile,
    names: Iterable[str],
    *,
    missing: str = "indicator",
    note: Callable[[str], None] = warnings.warn,
) -> pd.DataFrame:
    """Columns to fit to, each numbers or a category.

    missing : with "error" a missing value is refused; note : receives decisions to report
    """
    found, problems = {}, []
    for name in names:
        try:
            found[name] = _fit_column(table, name, note)
            if missing == "error":
                _refuse_missing(table, {name: found[name]}, "take --missing indicator")
        except DataError as error:
            problems.append(str(error))
    if problems:
        more = len(problems) > 1
        fix = ". --on-problem fix would change or omit these columns"
        raise DataError(". ".join(problems) + fix * more)
    return pd.DataFrame(found, table.frame.index)


def given_columns(
    table: TableFile, names: Iterable[str], *, labels: Container[str] = ()
) -> pd.DataFrame:
    """Columns as numbers where all values are, else as strings, which a `ColumnPlan` can read.

    labels : columns that are strings even if all values are numbers
    """
    found = {}
    for name in names:
        table.check(name)
        column = table.frame[name]
        if is_text(column):
            values, absent = stripped(column)
            numbers = parsed_numbers(values, table.decimal)
            words = (np.isnan(numbers) & ~absent).any() or first_code(values) is not None
            if words or absent.all() or name in labels:
                column = with_points(values, table.decimal).astype(object).where(~absent, None)
            else:
                column = pd.Series(numbers, column.index)
        found[name] = column
    return pd.DataFrame(found, table.frame.index)


def _refuse_missing(table: TableFile, found: dict[str, pd.Series], way_out: str) -> None:
    for name, column in found.items():
        rows = np.flatnonzero(column.isna())
        if len(rows):
            raise DataError(
                f"column {name!r} of {table.path} is missing in {len(rows)} "
                f"row{'s' * (len(rows) > 1)} (first: {table.where(rows[0])}); fill or drop them, "
                f"or {way_out}"
            )


def _fit_column(table: TableFile, name: str, note: Callable[[str], None]) -> pd.Series:
    table.check(name)
    column = table.frame[name]
    if not is_text(column):
        return check_typed(column, table, name)
    values, absent = stripped(column)
    labels = values.astype(object).where(~absent, None)
    code = first_code(values)
    if code is not None:
        _refuse_many_levels(table, name, labels, ", or write it without leading zeros for a number")
        levels = sorted(labels.dropna().unique())
        note(
            f"{name} has values with leading zeros ({code}), so it is treated as a category with "
            f"{len(levels)} levels (without leading zeros it would be a number)"
        )
        return pd.Series(pd.Categorical(labels, levels), column.index)  # strings would be numbers
    numbers = parsed_numbers(values, table.decimal)
    bad = np.flatnonzero(np.isnan(numbers) & ~absent)
    if not len(bad):
        return pd.Series(numbers, column.index)
    if not mostly_words(numbers, absent) or has_decimal_commas(values.iloc[bad]):
        raise _not_a_number(table, name, values.iloc[bad[0]], bad[0])
    _refuse_many_levels(table, name, labels)
    return labels


def _refuse_many_levels(table: TableFile, name: str, values: pd.Series, or_else: str = "") -> None:
    levels = values.nunique()
    if levels > max(MANY_LEVELS, len(values) / 10):
        raise DataError(
            f"column {name!r} of {table.path} has {levels} different strings in {len(values)} "
            f"rows, too many for a category; drop it with --exclude {name!r}{or_else}"
        )


def read_outcome(
    table: TableFile,
    name: str,
    kind: str,
    selected: pd.Series | None,
    *,
    formatted: bool = False,
) -> tuple[pd.Series, tuple | None]:
    """Numbers and None, or labels (None where missing) and the two classes in order.

    There are two classes if the selected rows have two strings that are not numbers (yes and no),
    two booleans, or the numbers 0 and 1 and no other. Everything else is a number, unless `kind`
    says otherwise.

    formatted : whether $1,200.00 is a number
    """
    table.check(name, "outcome")
    as_number = partial(number_column, table, name, "outcome", formatted=formatted)
    if kind == "regression":
        return as_number(yes_no=_is_boolean(table, name)), None
    labels, numeric = _labels(table, name)
    seen = labels.notna() if selected is None else labels.notna() & (selected == 1.0)
    found = list(dict.fromkeys(labels[seen]))
    if kind == "auto":
        two = set(found) == {0, 1} if numeric else len(found) == 2
        if not two or (not numeric and any(_is_number(each, table.decimal) for each in found)):
            return as_number(), None
    return labels.rename(name), tuple(sorted(found))


def _labels(table: TableFile, name: str) -> tuple[pd.Series, bool]:
    """The column as labels, None where missing, and whether they are numbers."""
    column = table.frame[name]
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if is_text(column):
        values, absent = stripped(column)
        numbers = parsed_numbers(values, table.decimal)
        if (np.isnan(numbers) & ~absent).any():
            return values.astype(object).where(~absent, None), False
        column = pd.Series(numbers, column.index)
    present = column.dropna()
    if all(isinstance(value, bool | np.bool_) for value in present):
        return column.astype(object).where(column.notna(), None), False
    check_typed(column, table, name)
    whole = pd.api.types.is_numeric_dtype(column) and (present % 1 == 0).all()  # inf % 1 is NaN
    labels = [None if pd.isna(each) else int(each) if whole else each for each in column]
    return pd.Series(labels, column.index, dtype=object), True


def _is_boolean(table: TableFile, name: str) -> bool:
    """Whether a column of booleans was asked for as numbers: true is 1 and false 0."""
    column = table.frame[name]
    return is_text(column) and set(stripped(column)[0].str.lower()) <= {"true", "false", ""}


def _is_number(label, decimal: str) -> bool:
    return isinstance(label, str) and bool(
        np.isfinite(parsed_numbers(pd.Series([label]), decimal)[0])
    )


def prediction_columns(table: TableFile, columns: Columns, target: str) -> pd.DataFrame:
    """The columns a model predicts `target` from, each of the kind that it had in the fit."""
    if columns.plan is not None:
        return _planned_columns(table, columns, target)
    needed = list(columns.outcome_names)
    needed += [] if target == "population" else list(columns.instruments)
    for name in columns.instruments:
        if name in needed:
            _check_instrument(table, name, target)
    found = {}
    for name in needed:
        if name in columns.levels:
            found[name] = _as_levels(table, name, columns.levels[name])
        else:
            found[name] = _known_number(table, name)
    if not columns.fill:  # otherwise the model determines which columns may have missing values
        _refuse_missing(table, found, "predict with a model fitted with --missing indicator")
    return pd.DataFrame(found, table.frame.index)


def _planned_columns(table: TableFile, columns: Columns, target: str) -> pd.DataFrame:
    """The columns of the table that a plan needs, as it can read them."""
    assert columns.plan is not None
    steps = [
        step
        for step in columns.plan.steps
        if target != "population" or step.name not in columns.instruments
    ]
    for step in steps:
        if step.name in columns.instruments:
            _check_instrument(table, step.source, target)
    strings = {step.source for step in steps if step.kind in (CATEGORY, MEANS)}
    return given_columns(table, dict.fromkeys(step.source for step in steps), labels=strings)


def _check_instrument(table: TableFile, name: str, target: str) -> None:
    if name not in table.frame.columns:
        raise DataError(
            f"target {target!r} needs the instrument {name!r}, which {table.path} lacks; add it, "
            "or predict the population"
        )


def _known_number(table: TableFile, name: str) -> pd.Series:
    """A column that was numbers in the fit; codes would have been categories there."""
    numbers = number_column(table, name, "column")
    column = table.frame[name]
    code = first_code(stripped(column)[0]) if is_text(column) else None
    if code is not None:
        raise DataError(
            f"column {name!r} of {table.path} has values with leading zeros ({code}), but the "
            "model was fitted to numbers in this column; write them without leading zeros"
        )
    return numbers


def _as_levels(table: TableFile, name: str, levels: tuple) -> pd.Series:
    """The levels of the fit, recognised by their spelling; others are unchanged."""
    table.check(name)
    column = table.frame[name]
    known = {str(level): level for level in levels}
    if is_text(column):
        values, absent = stripped(column)
    else:
        absent = column.isna().to_numpy()
        values = column.astype(object).map(str)
    found = values.map({value: known.get(value, value) for value in values.unique()})
    return found.astype(object).where(~absent, None)


def check_typed(column: pd.Series, table: TableFile, name: str) -> pd.Series:
    """A Parquet column, if it holds numbers, booleans or categories."""
    if pd.api.types.is_numeric_dtype(column) or isinstance(column.dtype, pd.CategoricalDtype):
        return column
    first = type(column.dropna().iloc[0]).__name__ if column.notna().any() else "None"
    raise DataError(
        f"column {name!r} of {table.path} holds {NAMES.get(first, f'values of type {first}')}; "
        f"convert it to numbers or strings, or drop it with --exclude {name!r}"
    )


def _not_a_number(
    table: TableFile, name: str, value: str, row: int, *, outcome: bool = False
) -> DataError:
    hint = ""
    if outcome and not re.search(r"\d", value):
        hint = f"; if it means a missing outcome, add --unobserved {shlex.quote(value)}"
    if table.decimal == "." and has_decimal_commas(pd.Series([value])):
        hint = "; for decimal commas give --decimal ,"
    return DataError(
        f"column {name!r} of {table.path} should hold numbers but {table.where(row)} has "
        f"{value!r:.60}{hint}"
    )


def with_numbers(frame: pd.DataFrame, decimal: str) -> pd.DataFrame:
    """The frame with columns of numerals as numbers, for a format that has types."""
    return pd.DataFrame({name: _or_number(frame[name], decimal) for name in frame.columns})


def _or_number(column: pd.Series, decimal: str) -> pd.Series:
    """Numbers, unless a leading zero shows that it is a label."""
    if not is_text(column):
        return column
    values, absent = stripped(column)
    numbers = parsed_numbers(values, decimal)
    if first_code(values) is not None or (np.isnan(numbers) & ~absent).any() or absent.all():
        return column
    if values[~absent].str.fullmatch(WHOLE).all():  # as floats they would lose digits from 2**53 on
        whole = [None if gap else int(value) for value, gap in zip(values, absent, strict=True)]
        return pd.Series(whole, column.index, dtype="Int64")
    return pd.Series(numbers, column.index)
