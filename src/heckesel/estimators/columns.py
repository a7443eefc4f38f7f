"""How the columns of X become the numbers of x and w: learned once, applied at prediction.

x holds every column but the instruments, w holds all of them. Categories (text, pandas or polars
categoricals, booleans) become one 0/1 column per level; w, which enters linearly, goes without the
first level. A level the fit has not seen is an error.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

import numpy as np
import pandas as pd

from heckesel.data import numeric
from heckesel.errors import DataError
from heckesel.estimators.frames import as_pandas


@dataclass(frozen=True)
class Columns:
    """names : the columns of X in order; levels : the categories of those that have any."""

    names: tuple[str, ...]
    instruments: tuple[str, ...]
    levels: dict[str, tuple]
    from_frame: bool

    @property
    def outcome_names(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name not in self.instruments)

    @property
    def x_names(self) -> tuple[str, ...]:
        return self._expanded(self.outcome_names, 0)

    @property
    def w_names(self) -> tuple[str, ...]:
        return self._expanded((*self.outcome_names, *self.instruments), 1)

    def _expanded(self, names, skipped: int) -> tuple[str, ...]:
        return tuple(
            label
            for name in names
            for label in (
                [f"{name}[{level}]" for level in self.levels[name][skipped:]]
                if name in self.levels
                else [name]
            )
        )

    def x(self, table) -> np.ndarray:
        """(m, p) without the instruments, which a frame may lack."""
        return self._numbers(table, self.outcome_names, 0)

    def w(self, table) -> np.ndarray:
        """(m, q): outcome columns, then instruments."""
        return self._numbers(table, (*self.outcome_names, *self.instruments), 1)

    def _numbers(self, table, names, skipped: int) -> np.ndarray:
        frame = self._frame(table)
        parts = []
        for name in names:
            if name not in frame.columns:
                close = difflib.get_close_matches(name, [str(c) for c in frame.columns], 1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                role = "instrument " if name in self.instruments else "column "
                raise DataError(f"X lacks the {role}{name!r} of the fit{hint}")
            part = self._encode(frame[name], name)
            parts.append(part[:, skipped:] if name in self.levels else part)
        return np.concatenate(parts, axis=1)

    def _frame(self, table) -> pd.DataFrame:
        if hasattr(table, "columns"):
            return as_pandas(table, "X")
        array = _two_dimensional(table)
        if array.shape[1] != len(self.names):
            raise DataError(
                f"X has {array.shape[1]} columns but the fit had {len(self.names)}; an array must "
                "have all of them, instruments included"
            )
        return pd.DataFrame(array, columns=list(self.names))

    def _encode(self, column: pd.Series, name: str) -> np.ndarray:
        if column.isna().any():
            rows = np.flatnonzero(column.isna())
            raise DataError(
                f"column {name!r} is missing in {len(rows)} rows (first: row {rows[0]}); "
                "fill or drop them"
            )
        if name not in self.levels:
            values = _number(column, name)
            infinite = np.flatnonzero(~np.isfinite(values))
            if len(infinite):
                row = infinite[0]
                raise DataError(f"column {name!r} is {values[row]} in row {row}; remove the row")
            return values[:, None]
        levels = self.levels[name]
        codes = pd.Index(levels).get_indexer(column)
        if (codes < 0).any():
            row = int(np.flatnonzero(codes < 0)[0])
            raise DataError(
                f"column {name!r} has the level {column.iloc[row]!r} (row {row}), which the fit "
                "has not seen"
            )
        return (codes[:, None] == np.arange(len(levels))).astype(float)


def learn_columns(table, instruments) -> Columns:
    """Names, categories and which columns are instruments, given by name or position."""
    from_frame = hasattr(table, "columns")
    if from_frame:
        frame = as_pandas(table, "X")
        names = tuple(str(name) for name in frame.columns)
        frame = frame.set_axis(list(names), axis=1)
    else:
        array = _two_dimensional(table)
        names = tuple(f"x{j}" for j in range(array.shape[1]))
        frame = pd.DataFrame(array, columns=list(names))
    chosen = _instrument_names(instruments, names, from_frame)
    if len(chosen) == len(names):
        raise DataError("every column of X is an instrument; the outcome needs at least one other")
    levels = {name: _levels(frame[name]) for name in names if _is_category(frame[name])}
    return Columns(names, chosen, levels, from_frame)


def _two_dimensional(table) -> np.ndarray:
    array = np.asarray(table)
    if array.ndim != 2:
        raise DataError(
            f"X must be a table of rows and columns but has shape {array.shape}; "
            "a single column is X.reshape(-1, 1)"
        )
    return array


def _instrument_names(instruments, names, from_frame) -> tuple[str, ...]:
    if instruments is None:
        return ()
    given = [instruments] if isinstance(instruments, str | int) else list(instruments)
    found = []
    for item in given:
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
            close = difflib.get_close_matches(str(item), names, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise DataError(f"the instrument {item!r} is no column of X{hint}")
    repeated = [name for name in found if found.count(name) > 1]
    if repeated:
        raise DataError(f"the instrument {repeated[0]!r} is given twice")
    return tuple(found)


def _is_category(column: pd.Series) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(column):
        return True
    if pd.api.types.is_numeric_dtype(column):
        return False
    return pd.to_numeric(column, errors="coerce").isna().mean() > 0.5


def _levels(column: pd.Series) -> tuple:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return tuple(column.cat.categories)
    return tuple(sorted(column.dropna().unique()))


def _number(column: pd.Series, name: str) -> np.ndarray:
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=float)
    return numeric(column.to_numpy(dtype=object), name)
