"""Changes of a frame for marginal effects: columns to vary, values to set, groups of rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from heckesel.errors import DataError, did_you_mean
from heckesel.tables.frames import as_pandas
from heckesel.tables.values import column_levels, is_number

STEP = 1e-4  # of central differences, in standard deviations of the column


@dataclass(frozen=True)
class Move:
    """A change of one column, from `down` to `up`, that is `width` wide.

    is_number : whether up and down are added to the column, and do not replace it
    """

    name: str
    label: str
    up: Any
    down: Any
    width: float
    is_number: bool

    def sides(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The frame after the change up and after the change down."""
        column = frame[self.name]
        if self.is_number:
            high, low = (frame.assign(**{self.name: column + by}) for by in (self.up, self.down))
            return high, low
        high, low = (with_value(frame, self.name, value) for value in (self.up, self.down))
        return high, low


def moves_of(column: pd.Series, *, contrast_indicators: bool = False) -> list[Move]:
    """A number moves by a central difference; a category from its first level to each other one,
    and so do 0 and 1 with `contrast_indicators`."""
    name = str(column.name)
    if contrast_indicators and is_number(column) and set(column.dropna().unique()) == {0, 1}:
        return [Move(name, f"{name}[1]", 1.0, 0.0, 1.0, is_number=False)]
    if is_number(column):
        step = STEP * (float(column.std(ddof=0)) or 1.0)
        return [Move(name, name, step, -step, 2 * step, is_number=True)]
    first, *others = column_levels(column)
    return [Move(name, f"{name}[{each}]", each, first, 1.0, is_number=False) for each in others]


def with_value(frame: pd.DataFrame, name: str, value) -> pd.DataFrame:
    """The frame with one value in all rows of a column, which keeps its type."""
    column = frame[name]
    if is_number(column):
        return frame.assign(**{name: float(value)})
    return frame.assign(**{name: pd.Series([value] * len(frame), frame.index, column.dtype)})


@dataclass(frozen=True)
class HeldValues:
    """names : the columns that are held; frames : for each combination of values, these and the
    frame with them"""

    names: tuple[str, ...]
    frames: tuple[tuple[tuple, pd.DataFrame], ...]


def held_values(frame: pd.DataFrame, at) -> HeldValues:
    """The frame for each combination of the values in `at`, a dict of columns; None holds none."""
    if at is None:
        return HeldValues((), (((), frame),))
    if not isinstance(at, Mapping) or not at:
        raise DataError(f"at must be a dict of columns and values, such as {{'age': 40}}: {at!r}")
    names = tuple(map(str, at))
    values = [
        _values_of(frame, name, given) for name, given in zip(names, at.values(), strict=True)
    ]
    frames = []
    for chosen in product(*values):
        held = frame
        for name, value in zip(names, chosen, strict=True):
            held = with_value(held, name, value)
        frames.append((chosen, held))
    return HeldValues(names, tuple(frames))


def _values_of(frame: pd.DataFrame, name: str, given) -> list:
    """The values of a column in `at`, each checked."""
    check_has(frame, name, "at")
    listed = isinstance(given, list | tuple | range | np.ndarray | pd.Series | pd.Index)
    values = list(given) if listed else [given]
    if not values:
        raise DataError(f"at gives no value for the column {name!r}; give one, or omit the column")
    column = frame[name]
    if is_number(column):
        for value in values:
            if (
                isinstance(value, bool)
                or not isinstance(value, Real)
                or not np.isfinite(float(value))
            ):
                raise DataError(f"at needs numbers for the column {name!r}, got {value!r}")
        return [float(value) for value in values]
    levels = column_levels(column)
    for value in values:
        if value not in levels:
            shown = ", ".join(map(repr, levels[:8]))
            raise DataError(f"the column {name!r} has no level {value!r}; it has {shown}")
    return values


def check_has(frame: pd.DataFrame, name: str, role: str) -> None:
    if name not in frame.columns:
        hint = did_you_mean(name, frame.columns)
        shown = ", ".join(map(repr, frame.columns[:20]))
        raise DataError(f"{role} names {name!r}, but the columns are {shown}{hint}")


@dataclass(frozen=True)
class Groups:
    """labels : (g,), None where all rows are one group; n : (g,) rows of each
    share : (g, m) weights of the rows of each group, which add up to one
    """

    labels: pd.Index | None
    n: np.ndarray
    share: sparse.csr_array

    def mean(self, values: np.ndarray) -> np.ndarray:
        """(g,) or (g, P) the mean over the rows of each group of values (m,) or (m, P)."""
        return self.share @ values


def groups_of(frame: pd.DataFrame, by, weight=None) -> Groups:
    """The rows of each value of the column `by`; weight : (m,), by default the same for all."""
    m = len(frame)
    weight = np.ones(m) if weight is None else weight
    labels, codes = None, np.zeros(m, dtype=int)
    if by is not None:
        column = _grouping_column(frame, by)
        codes, labels = pd.factorize(column, sort=True)
        labels = pd.Index(labels, name=column.name)
    total = np.bincount(codes, weight)
    empty = np.flatnonzero(total == 0)
    if len(empty):
        where = "every row" if labels is None else f"every row with {by!r} = {labels[empty[0]]!r}"
        raise DataError(f"{where} has weight zero, so there is no average")
    rows = np.arange(m)
    share = sparse.csr_array((weight / total[codes], (codes, rows)), (len(total), m))
    return Groups(labels, np.bincount(codes), share)


def _grouping_column(frame: pd.DataFrame, by) -> pd.Series:
    if not isinstance(by, str):
        raise DataError(f"by must be the name of a column, got {by!r}")
    check_has(frame, by, "by")
    column = frame[by]
    missing = np.flatnonzero(column.isna())
    if len(missing):
        raise DataError(
            f"by names the column {by!r}, which is missing in {len(missing)} rows (first: row "
            f"{missing[0]}); fill it or drop the rows"
        )
    return column


def frame_of_rows(table, names) -> pd.DataFrame:
    """`table` as a frame with string names; an array has the columns `names`."""
    if hasattr(table, "columns") or isinstance(table, dict):
        frame = as_pandas(table, "X")
        return frame.set_axis([str(name) for name in frame.columns], axis=1)
    values = np.asarray(table)
    if values.ndim != 2 or values.shape[1] != len(names):
        raise DataError(
            f"X must have {len(names)} columns, {', '.join(map(repr, names))}, but has shape "
            f"{values.shape}"
        )
    return pd.DataFrame(values, columns=list(names))
