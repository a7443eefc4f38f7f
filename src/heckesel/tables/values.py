"""What the values of a column are: numbers, labels or dates, whatever type they have.

Strictly, strings are categories if more than half of them are not numbers, or if some are whole
numbers with leading zeros. Otherwise the column is meant to hold numbers, and a string that is not
a number is an error. Booleans and categoricals are categories (`kind_of`).

To fix a table, more is read (`raw_kind`): strings are numbers if all of them are: 12, $1,200.00 or
95%. Among numbers, words such as ? or unknown and a few others without digits mean a missing value.
Words with digits (V57 among 250, 414) are codes, and a column with codes is a category. Whole
numbers such as 20130131 are dates if all are.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Number

import numpy as np
import pandas as pd

from heckesel.errors import DataError

NUMBER, CATEGORY, ORDERED, DATE = "number", "category", "ordered", "date"
TEXT, IDENTIFIER, CONSTANT, DUPLICATE = "text", "identifier", "constant", "duplicate"
EMPTY, UNREADABLE = "empty", "unreadable"

CURRENCY = r"(?:[$€£¥]|USD|EUR|GBP|CHF)"
# $1,200.00, 95 %, 1 200 EUR, 1'200, and (300) for -300
FORMATTED = re.compile(
    rf"[-+(]?(?:{CURRENCY}\s?-?)?"
    r"(?P<number>(?:[1-9]\d{0,2}(?:[,'’ \u00a0\u202f]\d{3})+|\d+)(?:\.\d+)?)"
    rf"\s?(?:%|{CURRENCY})?\)?"
)
DATES = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?"  # 2013-01-31, 31.1.2013 12:00
    r"|\d{1,2}[- ][A-Za-z]{3,9}[- ,]+\d{2,4}"  # 31 Jan 2013
    r"|[A-Za-z]{3,9}\.? \d{1,2},? \d{4}"  # January 31, 2013
    r"|\d{4}-(0[1-9]|1[0-2])"  # 2013-01
)
FIRST_DATE, LAST_DATE = 19_000_101, 21_001_231  # of whole numbers that are dates
# Words among numbers mean a missing value if there are at most so many, in at most this share of
# the values; more of them would be answers, and their loss would matter.
MOST_GAP_WORDS, MOST_GAP_SHARE = 3, 0.1
# These mean one however frequent they are.
GAP_WORDS = (
    *("?", "-", "--", ".", "..", "*", "n.a.", "none", "unknown", "missing", "not available"),
    *("#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"),  # of workbooks
)
NUMERAL = re.compile(r"-?\d+(\.\d+)?")
# How tables write that a number is missing; and the rows and values that a range needs to show it.
CODES_OF_NINES = (
    99,
    999,
    9999,
    99999,
    999999,
    9999999,
    99999999,
    999999999,
    98,
    998,
    9998,
    97,
    997,
)
NEGATIVE_CODES = (-1, -9, -99, -999, -9999)
FEWEST_SENTINELS, LEAST_SENTINEL_SHARE, FEWEST_RANGE, SPIKE = 3, 0.002, 12, 3
# Columns that by their name hold codes of places, units or kinds.
PLACES = (
    "zip|plz|postal|post|fips|county|state|country|nation|region|province|district|dist|ward|tract"
    "|vill(?:age)?|site|zone|station|school|branch|store|shop|dealer|agent|clinic|hospital|provider"
    "|cluster|psu|strat(?:um|a)|naics|sic|isic|soc|isco|industry|occ(?:upation)?|race|ethnic(?:ity)?"
    "|religion|marital|course|dep(?:artmen)?t|major|sector|product|category|type|kind"
)
CODE_NAME = re.compile(
    rf"(?:^|[_. ])(?:{PLACES})(?:[_. ]?(?:id|no|nr|num|number|code|cd|status))?[_. ]?\d{{0,4}}$"
    r"|code\d{0,4}$|(?:^|[_. ])code[_. ]|_cd$",
    re.IGNORECASE,
)
DATES_PARSED = 0.95  # share of the strings that must be dates; the others are missing


@dataclass(frozen=True)
class RawKind:
    """The kind of values in a column.

    kind : number, category, ordered, date, empty or unreadable
    gaps : words and numbers that mean a missing value
    code : an example of why a column with numbers is a category: 007, or V57
    day_first : whether 1/2/2013 is in February
    """

    kind: str
    gaps: tuple[str, ...] = ()
    code: str = ""
    day_first: bool = False


def raw_kind(column: pd.Series) -> RawKind:
    """The kind of a column of any type."""
    if not column.notna().any():
        return RawKind(EMPTY)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return RawKind(ORDERED if column.dtype.ordered else CATEGORY)
    if pd.api.types.is_bool_dtype(column):
        return RawKind(CATEGORY)
    if pd.api.types.is_complex_dtype(column):
        return RawKind(UNREADABLE)
    if pd.api.types.is_numeric_dtype(column):
        return RawKind(DATE if _is_calendar(column) else NUMBER)
    inferred = pd.api.types.infer_dtype(column, skipna=True)
    if inferred in ("date", "datetime", "datetime64", "period"):
        return RawKind(DATE)
    if inferred in ("boolean", "integer", "floating", "mixed-integer-float", "decimal"):
        return RawKind(CATEGORY if inferred == "boolean" else NUMBER)
    if inferred in ("timedelta", "timedelta64") or not (inferred == "string" or _hashable(column)):
        return RawKind(UNREADABLE)
    return _string_kind(labels_of(column).value_counts())


def _is_calendar(column: pd.Series) -> bool:
    """Whether whole numbers are dates such as 20130131."""
    known = column.to_numpy(dtype=float, na_value=np.nan)
    known = known[~np.isnan(known)]
    if not (len(known) and known.min() >= FIRST_DATE and known.max() <= LAST_DATE):
        return False
    levels = pd.Series(np.unique(known))
    whole = len(levels) > 1 and (levels % 1 == 0).all()
    return bool(whole and _dates(levels, day_first=False).notna().all())


def _hashable(column: pd.Series) -> bool:
    """Whether values are strings or numbers and not lists, records or other objects."""
    return all(
        isinstance(each, str | int | float | np.number | np.bool_) for each in column.dropna()
    )


def _string_kind(counts: pd.Series) -> RawKind:
    """counts : of each string"""
    if not len(counts):
        return RawKind(EMPTY)
    strings = pd.Series(counts.index, dtype=object)
    code = first_code(strings)
    if code is not None:
        return RawKind(CATEGORY, code=code)
    numbers = parsed(strings)
    words = np.isnan(numbers)
    if not words.any():
        return RawKind(DATE if _is_calendar(pd.Series(numbers)) else NUMBER)
    found = strings[words]
    named = found.str.lower().isin(GAP_WORDS).to_numpy()
    other = found[~named]
    share = counts.to_numpy()[words][~named].sum() / counts.sum()
    few = len(other) <= MOST_GAP_WORDS and share <= MOST_GAP_SHARE
    if not words.all() and few and not other.str.contains(r"\d").any():
        return RawKind(NUMBER, gaps=tuple(sorted(found)))
    like_dates = strings.map(lambda each: DATES.fullmatch(each) is not None)
    if like_dates.mean() >= DATES_PARSED:
        day_first = _day_first(strings)
        if _dates(strings, day_first).notna().mean() >= DATES_PARSED:
            return RawKind(DATE, day_first=day_first)
    return RawKind(CATEGORY, code="" if words.all() else found.iloc[0])


def _day_first(strings: pd.Series) -> bool:
    """Whether some date like 31/1/2013 has a first part that is not a month."""
    first = strings.str.extract(r"^(\d{1,2})[-/.]\d{1,2}[-/.]\d{4}")[0].dropna()
    return bool((first.astype(int) > 12).any())


def parsed(strings: pd.Series) -> np.ndarray:
    """(n,) strings as numbers, NaN for words and missing values; 95% is 95."""
    numbers = np.array(pd.to_numeric(strings, errors="coerce"), dtype=float)
    rest = np.flatnonzero(np.isnan(numbers) & strings.notna().to_numpy())
    for row in rest:
        text = str(strings.iloc[row])
        found = FORMATTED.fullmatch(text)
        if found is not None and ("(" in text) == (")" in text):
            sign = -1 if "-" in text or "(" in text else 1
            numbers[row] = sign * float(re.sub(r"[^\d.]", "", found["number"]))
    return numbers


def labels_of(column: pd.Series) -> pd.Series:
    """The values as strings without surrounding blanks, None where missing or blank."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, levels = column.cat.codes.to_numpy(), column.cat.categories
    else:
        codes, levels = pd.factorize(column.astype(object))
    names = np.array([*(label_of(each) for each in levels), None], dtype=object)
    return pd.Series(names[codes], column.index, dtype=object)


def label_of(value) -> str | None:
    """A level as a string, None where it is blank; 2 and 2.0 are the same level."""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value) if whole else value).strip() or None


def numbers_in(column: pd.Series, gaps: tuple[str, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """(n,) numbers, NaN where missing, and (n,) where a value is not a finite number.

    gaps : words and numbers that mean a missing value
    """
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        bad = np.isinf(values)
        return np.where(bad | _is_gap(values, gaps), np.nan, values), bad
    labels = labels_of(column)
    codes, strings = pd.factorize(labels)
    found = np.append(parsed(pd.Series(strings, dtype=object)), np.nan)
    known = np.append(np.isin(strings.astype(str), gaps), True)  # the last one is missing
    values = found[codes]
    bad = ~np.isfinite(values) & ~known[codes]
    return np.where(bad | _is_gap(values, gaps), np.nan, values), bad


def _is_gap(values: np.ndarray, gaps: tuple[str, ...]) -> np.ndarray:
    """(n,) whether numbers are among those that mean a missing value."""
    numbers = [float(each) for each in gaps if NUMERAL.fullmatch(each)]
    return np.isin(values, numbers) if numbers else np.zeros(len(values), dtype=bool)


def sentinels(values: np.ndarray) -> tuple[float, ...]:
    """Numbers that stand for a missing value: codes such as -1, 0 or 999, far from the rest.

    values : (n,) finite numbers

    A code of nines, or 0, must be as far from the rest as these are wide. A negative one must be
    the only negative number and frequent.
    """
    levels, counts = np.unique(values, return_counts=True)
    found: list[float] = []
    fewest = max(FEWEST_SENTINELS, LEAST_SENTINEL_SHARE * len(values))
    while len(levels) > FEWEST_RANGE:
        for end, (low, high) in ((0, levels[[1, -1]]), (-1, levels[[0, -2]])):
            value, width = levels[end], high - low
            distance = low - value if end == 0 else value - high
            if value < 0:
                good = value in NEGATIVE_CODES and low >= 0
                good &= bool(counts[end] >= SPIKE * np.median(counts))
            else:
                good = (value in CODES_OF_NINES and end == -1) or (value == 0 and end == 0)
                good &= bool(distance >= width)
            if good and counts[end] >= fewest:
                found.append(float(value))
                levels, counts = np.delete(levels, end), np.delete(counts, end)
                break
        else:
            break
    return tuple(sorted(found))


def is_code(name: str, values: np.ndarray) -> bool:
    """Whether whole numbers of a column of this name are codes of places, units or kinds, whose
    order and distances mean nothing.

    values : (n,) finite numbers
    """
    if CODE_NAME.search(name) is None or (values % 1 != 0).any() or values.min() < 0:
        return False
    return len(np.unique(values)) > 2


def dates_in(column: pd.Series, *, day_first: bool) -> tuple[pd.Series, np.ndarray]:
    """(n,) dates without time zone, NaT where missing, and (n,) where a value is not a date."""
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    codes, levels = pd.factorize(column.astype(object))
    dates = np.append(
        _dates(pd.Series(levels, dtype=object), day_first).to_numpy("datetime64[ns]"),
        np.datetime64("NaT"),
    )
    values = pd.Series(dates[codes], column.index)
    return values, values.isna().to_numpy() & (codes >= 0)


def _dates(values: pd.Series, day_first: bool) -> pd.Series:
    if pd.api.types.infer_dtype(values) in ("integer", "floating"):  # such as 20130131
        values = values.astype("int64").astype(str)
    found = pd.to_datetime(values, errors="coerce", utc=True, format="mixed", dayfirst=day_first)
    return found.dt.tz_localize(None)


NUMBERS, CATEGORIES, NUMERALS, NEITHER = "numbers", "categories", "numbers as strings", "neither"
DATE_KINDS = ("date", "datetime", "datetime64", "timedelta", "timedelta64")  # as pandas calls them
# 1.200,5 and 1.200, perhaps with a sign, a currency or a percent sign
WITH_COMMA = re.compile(
    r"^(?P<before>[^\w.,]*)(?P<whole>[1-9]\d{0,2}(?:\.\d{3})+|\d+)(?P<rest>,\d+)?(?P<after>\D*)$"
)
# How files write that a value is missing, in lower case.
MISSING_WORDS = ("", "na", "n/a", "nan", "null", "none", "#n/a", ".")


def kind_of(column: pd.Series) -> str:
    """One of the four kinds; dates, lists and records are neither."""
    if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(column):
        return CATEGORIES
    if pd.api.types.is_numeric_dtype(column):
        return NUMBERS
    inferred = pd.api.types.infer_dtype(column, skipna=True)
    if inferred == "boolean":  # objects, because some are missing
        return NUMBERS
    if inferred in DATE_KINDS or _holds_objects(column):
        return NEITHER
    words = pd.to_numeric(column, errors="coerce").isna() & column.notna()
    coded = first_code(column.astype(object)) is not None
    return CATEGORIES if coded or words.sum() > 0.5 * column.notna().sum() else NUMERALS


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
    absent = different.str.lower().isin(MISSING_WORDS).to_numpy()
    values = pd.Series(different.to_numpy()[codes], column.index, dtype=object, name=column.name)
    return values, absent[codes]


def first_code(values: pd.Series) -> str | None:
    """The first whole number with a leading zero: such a column of a file holds codes."""
    values = pd.Series([each for each in values.unique() if isinstance(each, str)], dtype=object)
    codes = values[values.str.fullmatch(r"0\d+", na=False)]
    return codes.iloc[0] if len(codes) else None


def with_points(values: pd.Series, decimal: str) -> pd.Series:
    """Numbers such as 1.200,5 as 1200.5, where the decimal mark is a comma; others unchanged."""
    if decimal == ".":
        return values
    return values.str.replace(WITH_COMMA, _pointed, regex=True)


def _pointed(found: re.Match) -> str:
    whole = found["whole"].replace(".", "")
    return found["before"] + whole + (found["rest"] or "").replace(",", ".") + found["after"]
