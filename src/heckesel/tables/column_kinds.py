"""Which kind of values a column holds: the rules for frames, formulas and files.

Strings are categories if more than half of them are not numbers. Otherwise the column is meant to
hold numbers, and a string that is not a number is an error. Booleans and categoricals are
categories, and so are strings of which some are whole numbers with leading zeros.
"""

import re
from collections.abc import Iterable
from numbers import Number

import numpy as np
import pandas as pd

from heckesel.errors import DataError

NUMBERS, CATEGORIES, NUMERALS, NEITHER = "numbers", "categories", "numbers as strings", "neither"
DATES = ("date", "datetime", "datetime64", "timedelta", "timedelta64")  # as pandas calls them
# 1.200,5 and 1.200, perhaps with a sign, a currency or a percent sign
WITH_COMMA = re.compile(
    r"^(?P<before>[^\w.,]*)(?P<whole>[1-9]\d{0,2}(?:\.\d{3})+|\d+)(?P<rest>,\d+)?(?P<after>\D*)$"
)
# How files write that a value is missing, in lower case.
MISSING = ("", "na", "n/a", "nan", "null", "none", "#n/a", ".")


def kind_of(column: pd.Series) -> str:
    """One of the four kinds; dates, lists and records are neither."""
    if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(column):
        return CATEGORIES
    if pd.api.types.is_numeric_dtype(column):
        return NUMBERS
    inferred = pd.api.types.infer_dtype(column, skipna=True)
    if inferred == "boolean":  # objects, because some are missing
        return NUMBERS
    if inferred in DATES or _holds_objects(column):
        return NEITHER
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    coded = first_code(column.astype(object)) is not None
    return CATEGORIES if coded or mostly_words(numbers, column.isna().to_numpy()) else NUMERALS


def mostly_words(numbers: np.ndarray, absent: np.ndarray) -> bool:
    """Whether more than half of the strings that are there are not numbers.

    numbers : (n,) the strings as numbers, NaN for words; absent : (n,) bool
    """
    return bool((np.isnan(numbers) & ~absent).sum() > 0.5 * (~absent).sum())


def is_number(column: pd.Series) -> bool:
    """Whether a formula treats the column as a number and not as a category."""
    return pd.api.types.is_numeric_dtype(column) and column.dtype != bool


def is_text(column: pd.Series) -> bool:
    """Whether every value that is there is a string."""
    if column.dtype == object:
        return pd.api.types.infer_dtype(column, skipna=True) in ("string", "empty")
    return isinstance(column.dtype, pd.StringDtype)


def column_levels(column: pd.Series) -> tuple:
    """The categories of a column, in their order."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return tuple(column.cat.categories)
    present = column.dropna()
    try:
        return tuple(sorted(present.unique()))
    except TypeError:  # lists and dicts, or strings among numbers
        kinds = sorted({type(value).__name__ for value in present})
        raise DataError(
            f"column {column.name!r} holds {' and '.join(kinds)} values, not categories; "
            "convert all of them to strings or to numbers"
        ) from None


def merged_levels(found: Iterable[tuple]) -> tuple:
    """The levels of a column of which several parts were read.

    If all parts agree, their order is kept, as that of an ordered category; else they are sorted.
    """
    different = [levels for levels in dict.fromkeys(found) if levels]
    if len(different) == 1:
        return different[0]
    return tuple(sorted({level for levels in different for level in levels}))


def _holds_objects(column: pd.Series) -> bool:
    """Whether values are neither numbers, booleans nor strings: lists, arrays, periods."""
    if column.dtype != object:
        return isinstance(column.dtype, pd.PeriodDtype | pd.IntervalDtype)
    return not all(isinstance(value, str | bytes | Number | np.bool_) for value in column.dropna())


def stripped(column: pd.Series) -> tuple[pd.Series, np.ndarray]:
    """Strings of a file without surrounding blanks, and where they mean a missing value."""
    codes, levels = pd.factorize(column.astype(object))
    different = pd.Series([*levels, ""], dtype=object).str.strip()  # the last one: no value
    absent = different.str.lower().isin(MISSING).to_numpy()
    values = pd.Series(different.to_numpy()[codes], column.index, dtype=object, name=column.name)
    return values, absent[codes]


def first_code(values: pd.Series) -> str | None:
    """The first whole number with a leading zero: such a column of a file holds codes."""
    values = pd.Series([each for each in values.unique() if isinstance(each, str)], dtype=object)
    codes = values[values.str.fullmatch(r"0\d+", na=False)]
    return codes.iloc[0] if len(codes) else None


def parsed_numbers(values: pd.Series, decimal: str) -> np.ndarray:
    """(n,) strings of a file as numbers, NaN for words and missing values."""
    if decimal == ",":
        pointed = with_points(values, decimal)
        values = pointed.where((pointed != values) | ~values.str.contains(".", regex=False), "x")
    return np.array(pd.to_numeric(values, errors="coerce"), dtype=float)


def with_points(values: pd.Series, decimal: str) -> pd.Series:
    """Numbers such as 1.200,5 as 1200.5, where the decimal mark is a comma; others unchanged."""
    if decimal == ".":
        return values
    return values.str.replace(WITH_COMMA, _pointed, regex=True)


def _pointed(found: re.Match) -> str:
    whole = found["whole"].replace(".", "")
    return found["before"] + whole + (found["rest"] or "").replace(",", ".") + found["after"]


def has_decimal_commas(values: pd.Series) -> bool:
    return bool(values.str.fullmatch(r"[+-]?\d+,\d+").all())
