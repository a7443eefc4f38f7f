"""Groups of dependent rows: `groups=`, a column of X or one value per row, as integer codes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from heckesel.errors import DataError, as_list, did_you_mean
from heckesel.numeric_input import unmasked
from heckesel.tables.frames import as_pandas, check_same_order
from heckesel.tables.preparation.raw_values import CATEGORY, DATE, NUMBER, ORDERED, raw_kind

# Names of columns that identify the unit of a row.
UNIT_NAME = re.compile(
    r"(^|[_. ])(id|key|uuid|guid|unit|person|patient|subject|household|firm|company|customer|client"
    r"|user|student|employee)([_ ]?(id|no|nr|number))?$"
    r"|^(nr|pid|seqn|caseid)$",
    re.IGNORECASE,
)
CAMEL_CASE_ID = re.compile(r"[a-z]I[dD]$")  # customerID
FEWEST_UNITS = 20  # a column with fewer values is a category
MOST_ROWS = 50_000  # are compared, the first ones
# Codes of letters and digits as on aircraft, and numbers of five digits as of stations.
UNIT_CODE = r"(?=.*[A-Za-z])(?=.*\d)[A-Za-z0-9-]{5,}"
LEAST_NUMBER = 10_000
FIRST_YEAR, LAST_YEAR = 1900, 2100
LEAST_FILLED = 0.5  # of all pairs of a unit and a period, in a panel
USABLE = (NUMBER, CATEGORY, ORDERED)


@dataclass(frozen=True)
class Groups:
    """name : of the column, None if it has none; codes : (n,) integers from 0"""

    name: str | None
    codes: np.ndarray


def group_codes(values, n: int | None = None) -> np.ndarray:
    """(n,) integer codes of labels, from 0 in the order of their first rows."""
    values = unmasked(values, "groups")
    n = len(values) if n is None and values.ndim else n
    if values.shape != (n,):
        raise DataError(f"groups have shape {values.shape} but there are {n} rows")
    if pd.isna(values).any():
        raise DataError("groups have missing values; every row needs a group")
    if values.dtype == object:
        values = np.array([str(value) for value in values])
    codes, labels = pd.factorize(values)
    if len(labels) < 2:
        raise DataError("all rows are in one group; standard errors and folds need at least two")
    return codes


def split_groups(X, groups, model):
    """X without the column that `groups` names, and the `Groups`, or None.

    model : has `instruments` and perhaps `scale`, which must not name that column
    """
    if groups is None:
        return X, None
    columns = list(getattr(X, "columns", ()))
    if isinstance(groups, list | tuple) and all(
        isinstance(each, str) and each in columns for each in groups
    ):
        raise DataError(
            f"groups must be one column, got {groups!r}; give one label per row, such as those of "
            "two columns joined as text"
        )
    if not isinstance(groups, str):
        check_same_order(X, groups=groups)
        name = getattr(groups, "name", None)
        return X, Groups(None if name is None else str(name), group_codes(groups))
    if not (hasattr(X, "columns") or isinstance(X, dict)):
        raise DataError(f"groups={groups!r} is a name but X has none; pass one value per row")
    frame = as_pandas(X, "X")
    names = [str(name) for name in frame.columns]
    if groups not in names:
        hint = did_you_mean(groups, names)
        raise DataError(f"X has no column {groups!r}, given as groups{hint}")
    _check_roles(groups, model)
    position = names.index(groups)
    codes = group_codes(frame.iloc[:, position])
    return frame.drop(columns=frame.columns[position]), Groups(groups, codes)


def _check_roles(name: str, model) -> None:
    """Refuse an instrument or a column of sigma that is the group, or that is given by position."""
    for option in ("instruments", "scale"):
        given = getattr(model, option, None)
        for item in [] if given is None else as_list(option, given):
            if item == name:
                raise DataError(f"{name!r} is given both as {option} and as groups")
            if not isinstance(item, str):
                raise DataError(
                    f"groups={name!r} is not used as a regressor, which shifts the positions of "
                    f"columns; give names in {option} instead of positions"
                )


def repeated_units(frame: pd.DataFrame) -> str:
    """The question whether rows belong together; empty if no column names the units of rows.

    A column does by its name, or else by its values: they look like numbers of units, they have one
    row in each period, or other columns are constant among the rows of each.
    """
    columns = [(str(name), frame.iloc[:, place]) for place, name in enumerate(frame.columns)]
    for name, column in columns:
        if UNIT_NAME.search(name) or CAMEL_CASE_ID.search(name):
            asked = _question(name, column)
            if asked:
                return asked
    usable = [pair for pair in columns if raw_kind(pair[1].iloc[:MOST_ROWS]).kind in USABLE]
    codes = [pd.factorize(column.iloc[:MOST_ROWS])[0] for _, column in usable]
    first_rows = [column.iloc[:MOST_ROWS] for _, column in columns]
    periods = [pd.factorize(column)[0] for column in first_rows if _is_period(column)]
    for place, (name, column) in enumerate(usable):
        if _has_fractions(column) or not _several(np.bincount(codes[place] + 1)[1:]):
            continue
        if (
            _looks_like_units(column)
            or any(_one_row_in_each(codes[place], period) for period in periods)
            or _constant_within(place, usable, codes)
        ):
            return _question(name, column)
    return ""


def _question(name: str, column: pd.Series) -> str:
    """The question about one column; empty if it does not name units that have several rows."""
    if _has_fractions(column):
        return ""
    counts = column.value_counts().to_numpy()
    if not _several(counts):
        return ""
    return (
        f"column {name!r} repeats {int((counts > 1).sum()):,} values; if rows with the same {name} "
        f"belong to one unit, pass groups={name!r} (--groups {name} in the shell)"
    )


def _has_fractions(column: pd.Series) -> bool:
    return pd.api.types.is_float_dtype(column.dtype) and bool((column.dropna() % 1 != 0).any())


def _several(counts: np.ndarray) -> bool:
    """Whether there are enough units, and most of them have several rows."""
    return len(counts) >= FEWEST_UNITS and 2 * int((counts > 1).sum()) >= len(counts)


def _looks_like_units(column: pd.Series) -> bool:
    """Whether values are codes such as N14228, or numbers such as 20417 that are not amounts."""
    levels = pd.Series(column.dropna().unique())
    if pd.api.types.is_numeric_dtype(levels):
        same_length = levels.min() >= LEAST_NUMBER and levels.max() < 10 * LEAST_NUMBER
        return bool(same_length and (levels % 5 == 0).mean() < 0.5)  # amounts are round
    return len(levels) > 0 and bool(levels.astype(str).str.fullmatch(UNIT_CODE).mean() >= 0.95)


def _is_period(column: pd.Series) -> bool:
    """Whether values are years or dates."""
    kind = raw_kind(column).kind
    if kind == NUMBER and pd.api.types.is_numeric_dtype(column.dtype):
        years = column.dropna().between(FIRST_YEAR, LAST_YEAR)
        return bool(years.all()) and not _has_fractions(column)
    return kind == DATE


def _one_row_in_each(unit: np.ndarray, period: np.ndarray) -> bool:
    """Whether no unit has two rows in one period, though most pairs of both have a row."""
    shape = unit.max() + 1, period.max() + 1
    if shape[1] < 2 or shape[0] * shape[1] * LEAST_FILLED > len(unit):
        return False
    known = (unit >= 0) & (period >= 0)
    pairs = np.bincount(unit[known] * shape[1] + period[known])
    return bool(pairs.max(initial=0) == 1)


def _constant_within(place: int, columns: list, codes: list[np.ndarray]) -> bool:
    """Whether at least two other columns are constant among the rows of each value.

    A column that could be so by chance does not count, nor one that repeats the values under other
    names, nor one that groups neighbouring values, as an age group does.

    codes : of the first rows of each column
    """
    unit = codes[place]
    levels = pd.factorize(columns[place][1].iloc[:MOST_ROWS])[1]
    order = np.argsort(levels.astype(str) if levels.dtype == object else levels, kind="stable")
    found = 0
    for other, own in enumerate(codes):
        if other == place or (unit < 0).any() or (own < 0).any():
            continue
        first = np.zeros(len(levels), dtype=int)
        first[unit[::-1]] = own[::-1]
        if (first[unit] != own).any():
            continue
        shares = np.bincount(own) / len(own)
        by_chance = (len(own) - len(levels)) * (1 - np.sum(shares**2))  # rows that would differ
        # also where each value has its own
        neighbours = np.count_nonzero(np.diff(first[order])) == len(shares) - 1
        found += int(by_chance >= FEWEST_UNITS and not neighbours)
    return found >= 2
