"""How the columns of X become the numbers of x and w: learned once, applied at prediction.

x holds every column but the instruments, w holds all of them. Categories (text, pandas or polars
categoricals, booleans) become one 0/1 column per level; what enters linearly (w, and x of a linear
outcome) goes without the first level. A level the fit has not seen is an error.

A missing value is an error too, or on request it is filled with the mean of the fit (a category:
with no level) and pointed out by a 0/1 column `name[missing]` beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from heckesel.data import term_names
from heckesel.errors import DataError, as_list, did_you_mean, is_one_of
from heckesel.linear.estimable import GAPS
from heckesel.numeric_input import unmasked
from heckesel.tables.frames import as_pandas, holds_objects, numbers_of

MISSING = ("error", "indicator")
DATES = ("date", "datetime", "datetime64", "timedelta", "timedelta64")  # as pandas calls them


@dataclass(frozen=True)
class Columns:
    """names : the columns of X in order; levels : the categories of those that have any

    linear : whether x, too, goes without the first level
    fill : for columns with missing values, what stands in for them (NaN for a category: no level)
    indicators : columns that were missing together in the fit, and so share one 0/1 column
    """

    names: tuple[str, ...]
    instruments: tuple[str, ...]
    levels: dict[str, tuple]
    from_frame: bool
    linear: bool = False
    fill: dict[str, float] = field(default_factory=dict)
    indicators: tuple[tuple[str, ...], ...] = ()

    @property
    def outcome_names(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name not in self.instruments)

    @property
    def x_names(self) -> tuple[str, ...]:
        return self._expanded(self.outcome_names, int(self.linear))

    @property
    def w_names(self) -> tuple[str, ...]:
        return self._expanded((*self.outcome_names, *self.instruments), 1)

    def _expanded(self, names, skipped: int) -> tuple[str, ...]:
        labels = [
            label
            for name in names
            for label in (
                [f"{name}[{level}]" for level in self.levels[name][skipped:]]
                if name in self.levels
                else [name]
            )
        ]
        shared = [f"{group[0]}{GAPS}" for group in self.indicators if group[0] in names]
        return term_names((*labels, *shared))

    def x(self, table) -> np.ndarray:
        """(m, p) without the instruments, which a frame may lack."""
        return self._numbers(table, self.outcome_names, int(self.linear))

    def w(self, table) -> np.ndarray:
        """(m, q): outcome columns, then instruments."""
        return self._numbers(table, (*self.outcome_names, *self.instruments), 1)

    def _numbers(self, table, names, skipped: int) -> np.ndarray:
        frame = self._frame(table)
        parts = []
        for name in names:
            if name not in frame.columns:
                hint = did_you_mean(name, frame.columns)
                role = "instrument " if name in self.instruments else "column "
                raise DataError(f"X lacks the {role}{name!r} of the fit{hint}")
            part = self._encode(frame[name], name)
            parts.append(part[:, skipped:] if name in self.levels else part)
        for group in self.indicators:
            if group[0] in names:
                absent = frame[list(group)].isna().to_numpy().any(axis=1)
                parts.append(absent.astype(float)[:, None])
        return np.concatenate(parts, axis=1)

    def _frame(self, table) -> pd.DataFrame:
        if self.from_frame and hasattr(table, "columns"):
            return _named(table)
        values = as_pandas(table, "X") if hasattr(table, "columns") else _two_dimensional(table)
        if values.shape[1] != len(self.names):
            raise DataError(
                f"X has {values.shape[1]} features, but heckesel is expecting {len(self.names)} "
                "features as input: an array must have all of them, instruments included"
            )
        return pd.DataFrame(np.asarray(values), columns=list(self.names))

    def _encode(self, column: pd.Series, name: str) -> np.ndarray:
        absent = column.isna().to_numpy()
        if absent.any() and name not in self.fill:
            _refuse_missing(absent, name, indicated=bool(self.fill))
        if name not in self.levels:
            values = numbers_of(column, name)
            values = np.where(absent, self.fill[name], values) if absent.any() else values
            infinite = np.flatnonzero(~np.isfinite(values))
            if len(infinite):
                row = infinite[0]
                raise DataError(f"column {name!r} is {values[row]} in row {row}; remove the row")
            return values[:, None]
        levels = self.levels[name]
        codes = pd.Index(levels).get_indexer(column)
        unseen = (codes < 0) & ~absent
        if unseen.any():
            row = int(np.flatnonzero(unseen)[0])
            raise DataError(
                f"column {name!r} has the level {column.iloc[row]!r} (row {row}), which the fit "
                "has not seen"
            )
        return (codes[:, None] == np.arange(len(levels))).astype(float)


def learn_columns(table, instruments, *, missing: str = "error", linear: bool = False) -> Columns:
    """Names, categories and which columns are instruments, given by name or position."""
    if not is_one_of(missing, MISSING):
        raise DataError(f"missing must be one of {', '.join(MISSING)}, got {missing!r}")
    from_frame = hasattr(table, "columns")
    if from_frame:
        frame = _named(table)
        names = tuple(frame.columns)
    else:
        array = _two_dimensional(table)
        names = tuple(f"x{j}" for j in range(array.shape[1]))
        frame = pd.DataFrame(array, columns=list(names))
    chosen = _instrument_names(instruments, names, from_frame)
    if not names:
        raise DataError(
            f"X has 0 feature(s) (shape={frame.shape}) while a minimum of 1 is required."
        )
    if len(chosen) == len(names):
        raise DataError("every column of X is an instrument; the outcome needs at least one other")
    levels = {name: column_levels(frame[name]) for name in names if _is_category(frame[name])}
    columns = Columns(names, chosen, levels, from_frame, linear)
    return _with_missing(columns, frame) if missing == "indicator" else columns


def _with_missing(columns: Columns, frame: pd.DataFrame) -> Columns:
    """What fills each column that has gaps, and which of them need a 0/1 column of their own.

    Columns that are missing in the same rows share one, or it would stand in w twice; an
    instrument shares with the outcome columns, so that x never needs it.
    """
    fill: dict[str, float] = {}
    outcome_groups: dict[bytes, list[str]] = {}
    instrument_groups: dict[bytes, list[str]] = {}
    for name in (*columns.outcome_names, *columns.instruments):
        absent = frame[name].isna().to_numpy()
        if not absent.any():
            continue
        if absent.all():
            raise DataError(f"column {name!r} is missing in all {len(frame)} rows; drop it")
        category = name in columns.levels
        fill[name] = np.nan if category else float(numbers_of(frame[name][~absent], name).mean())
        pattern = absent.tobytes()
        if name not in columns.instruments:
            outcome_groups.setdefault(pattern, []).append(name)
        elif pattern not in outcome_groups:
            instrument_groups.setdefault(pattern, []).append(name)
    groups = (*outcome_groups.values(), *instrument_groups.values())
    return replace(columns, fill=fill, indicators=tuple(tuple(group) for group in groups))


def _refuse_missing(absent, name: str, *, indicated: bool) -> None:
    rows = np.flatnonzero(absent)
    way_out = "fill or drop them, or fit with missing='indicator'"
    if indicated:
        way_out = "the fit saw no gap in it, so nothing stands in for one; fill or drop them"
    raise DataError(
        f"column {name!r} is missing (NaN) in {len(rows)} row{'s' * (len(rows) > 1)} (first: row "
        f"{rows[0]}); {way_out}"
    )


def _named(table) -> pd.DataFrame:
    frame = as_pandas(table, "X")
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _two_dimensional(table) -> np.ndarray:
    if hasattr(table, "toarray"):
        raise DataError("X is a sparse matrix, which is not supported; pass X.toarray()")
    array = unmasked(table, "X")
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported; pass real and imaginary parts as columns")
    if array.dtype.names is not None:
        raise DataError("X is a structured array; pass pd.DataFrame(X)")
    if array.ndim != 2:
        raise DataError(
            f"X must be a table of rows and columns but has shape {array.shape}. Reshape your "
            "data: a single column is X.reshape(-1, 1), a single row X.reshape(1, -1)"
        )
    return array


def _instrument_names(instruments, names, from_frame) -> tuple[str, ...]:
    if instruments is None:
        return ()
    found = []
    for item in as_list("instruments", instruments):
        if isinstance(item, int | np.integer):
            if not -len(names) <= item < len(names):
                raise DataError(f"instrument {item} is beyond the {len(names)} columns of X")
            found.append(names[item])
        elif item in names:
            found.append(item)
        elif not from_frame:
            raise DataError(
                f"instrument {item!r} is a name but X has none; give its position, or pass a "
                "frame (in a Pipeline, set_output(transform='pandas') keeps names)"
            )
        else:
            raise DataError(f"the instrument {item!r} is no column of X{_hint(item, names)}")
    repeated = [name for name in found if found.count(name) > 1]
    if repeated:
        raise DataError(f"the instrument {repeated[0]!r} is given twice")
    return tuple(found)


def _hint(item, names) -> str:
    prefixed = [name for name in names if name.endswith(f"__{item}")]
    if prefixed:
        return (
            f"; a ColumnTransformer made it {prefixed[0]!r}, which "
            "verbose_feature_names_out=False would not"
        )
    return did_you_mean(item, names)


def _is_category(column: pd.Series) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(column):
        return True
    if pd.api.types.is_numeric_dtype(column):
        return False
    if pd.api.types.infer_dtype(column, skipna=True) in DATES:
        return False  # refused as numbers, by a sentence of its own
    if holds_objects(column):
        return False  # likewise
    return pd.to_numeric(column.dropna(), errors="coerce").isna().mean() > 0.5


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
            f"column {column.name!r} holds {' and '.join(kinds)} values, which are no categories; "
            "make them all strings or all numbers"
        ) from None
