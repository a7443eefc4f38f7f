"""Columns given as arrays or frames, without a formula: an intercept is added to each equation."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from heckesel.errors import DataError
from heckesel.numeric_input import numeric
from heckesel.tables.cluster import in_threads
from heckesel.tables.formula import number_column
from heckesel.tables.frames import as_pandas

# Long tables are copied by several threads: touching new memory takes longer than copying.
ROWS_PER_THREAD = 1 << 16
GLANCE_ROWS = 64  # that distinguish most columns


@dataclass(frozen=True)
class ArrayDesign:
    """x : (n, p) and w : (n, q) as the user gave them, without intercepts.

    scale_names : columns of x that log sigma(x) depends on
    x_starts_w : whether the first columns of w equal those of x
    """

    x: np.ndarray
    w: np.ndarray
    x_names: tuple[str, ...]
    w_names: tuple[str, ...]
    scale_names: tuple[str, ...] = ()
    x_starts_w: bool = False

    def to_saved(self) -> "ArrayDesign":
        """The names without the rows."""
        return replace(self, x=self.x[:0], w=self.w[:0]) if len(self.x) else self

    def given(self, data, x, w) -> tuple[np.ndarray, np.ndarray | None]:
        if data is not None:
            raise DataError("this fit was made from arrays; pass x=... (and w=...), not a frame")
        if x is None:
            if not len(self.x):
                raise DataError("the file of a saved model holds no rows; pass x=... (and w=...)")
            return self.x, self.w
        return (
            columns_of(x, "x", self.x_names)[0],
            None if w is None else columns_of(w, "w", self.w_names)[0],
        )

    def outcome_matrix(self, given) -> np.ndarray:
        return with_intercept(given[0])

    def selection_matrix(self, given) -> np.ndarray:
        if given[1] is None:
            raise DataError("this target needs the selection columns too; pass w=...")
        if len(given[0]) != len(given[1]):
            raise DataError(f"x has {len(given[0])} rows but w has {len(given[1])}")
        return with_intercept(given[1])

    def scale_matrix(self, given) -> np.ndarray | None:
        """(m, k) columns of log sigma(x); None where sigma is constant."""
        if not self.scale_names:
            return None
        return given[0][:, [self.x_names.index(name) for name in self.scale_names]]

    def table(self, target: str) -> tuple[pd.DataFrame, list[str]]:
        """The columns that the target depends on, and their names; a name in both equations is one
        column."""
        needed = {name: self.w[:, j] for j, name in enumerate(self.w_names)}
        if target == "population":
            needed = {}
        if target != "selection":
            needed |= {name: self.x[:, j] for j, name in enumerate(self.x_names)}
        names = [name for name in (*self.x_names, *self.w_names) if name in needed]
        return pd.DataFrame(needed), list(dict.fromkeys(names))

    def matrices(self, frame: pd.DataFrame, target: str) -> tuple:
        """x, w and the columns of log sigma(x) of the rows of such a frame; None if not needed."""
        x, w, scale = None, None, None
        if target != "selection":
            x = frame[list(self.x_names)].to_numpy()
            scale = self.scale_matrix((x, None))
        if target != "population":
            w = with_intercept(frame[list(self.w_names)].to_numpy())
        return None if x is None else with_intercept(x), w, scale


def array_design(x, w, scale=None) -> ArrayDesign:
    """Columns of w without a name take that of an equal column of x, so that the others are
    recognised as instruments. scale : names of columns of x."""
    x_values, x_names = columns_of(x, "x")
    w_values, w_names = columns_of(w, "w")
    if len(x_values) != len(w_values):
        raise DataError(f"x has {len(x_values)} rows but w has {len(w_values)}")
    if x_names is None and w_names is not None:
        x_names = _matched(x_values, w_values, w_names, "x")
    x_names = x_names or tuple(f"x{j}" for j in range(x_values.shape[1]))
    first = _starts_with(w_values, x_values)
    known = x_names if first else ()
    rest = w_values[:, len(known) :]
    w_names = w_names or (*known, *_matched(rest, x_values, x_names, "w", len(known)))
    scale_names = _scale_names(scale, x_names)
    return ArrayDesign(x_values, w_values, x_names, w_names, scale_names, first)


def _starts_with(values: np.ndarray, first: np.ndarray) -> bool:
    """Whether the first columns of `values` equal `first`."""
    columns = values[:, : first.shape[1]]
    if not np.array_equal(columns[:GLANCE_ROWS], first[:GLANCE_ROWS]):
        return False
    blocks = _blocks(len(values))
    return all(in_threads(lambda rows: np.array_equal(columns[rows], first[rows]), blocks))


def _blocks(count: int) -> list[slice]:
    starts = range(0, count, ROWS_PER_THREAD)
    return [slice(start, start + ROWS_PER_THREAD) for start in starts]


def _scale_names(scale, x_names) -> tuple[str, ...]:
    """Those that log sigma(x) depends on; a formula needs a frame."""
    if scale is None:
        return ()
    if isinstance(scale, str):
        raise DataError(
            "with arrays, scale= is a list of names of columns of x, such as ['x0'], not a formula"
        )
    names = tuple(map(str, scale))
    for name in names:
        if name not in x_names:
            raise DataError(f"scale= names {name!r}, but x has no such column")
    if not names:
        raise DataError("scale= names no column of x; omit it")
    return names


def _matched(values, others, names, prefix: str, first: int = 0) -> tuple[str, ...]:
    """Each column's name: that of an equal column of the others, or its number from `first` on."""
    return tuple(
        _equal_column(column, others, names) or f"{prefix}{j}"
        for j, column in enumerate(values.T, first)
    )


def _equal_column(column, others, names) -> str | None:
    for j, name in enumerate(names):
        here = others[:GLANCE_ROWS, j]
        if not ((column[:GLANCE_ROWS] == here) | np.isnan(here)).all():
            continue
        if np.array_equal(column, others[:, j]):
            return name
        there = ~np.isnan(others[:, j])
        if there.any() and np.array_equal(column[there], others[there, j]):
            return name
    return None


def columns_of(values, role: str, expected: tuple[str, ...] | None = None):
    """(n, p) float64 and the names, or None where the input has none."""
    names: tuple[str, ...] | None = None
    if not hasattr(values, "columns"):
        array = numeric(values, role)
        if array.ndim not in (1, 2):
            raise DataError(f"{role} must be a table of rows and columns, got shape {array.shape}")
        if array.ndim == 1:
            array, name = array[:, None], getattr(values, "name", None)
            names = None if name is None else (str(name),)
    else:
        frame = as_pandas(values, role)
        names = tuple(str(name) for name in frame.columns)
        if expected is not None:
            missing = [name for name in expected if name not in names]
            if missing:
                raise DataError(f"{role} lacks the column {missing[0]!r} of the fit")
            names = expected
        array = np.column_stack([number_column(frame, name) for name in names])
    if expected is not None and array.shape[1] != len(expected):
        raise DataError(f"{role} has {array.shape[1]} columns but the fit had {len(expected)}")
    return array, names


def with_intercept(values: np.ndarray) -> np.ndarray:
    matrix = np.empty((len(values), values.shape[1] + 1))

    def fill(rows: slice) -> None:
        matrix[rows, 0] = 1.0
        matrix[rows, 1:] = values[rows]

    blocks = _blocks(len(values))
    for _ in (in_threads if len(blocks) > 1 else map)(fill, blocks):
        pass
    return matrix
