"""Columns given as arrays or frames, without a formula: an intercept is added to each equation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckesel.data import check_complete
from heckesel.errors import DataError
from heckesel.numeric_input import numeric
from heckesel.tables.formula import number_column
from heckesel.tables.frames import as_pandas


@dataclass(frozen=True)
class ArrayDesign:
    """x : (n, p) and w : (n, q) as the user gave them, without intercepts."""

    x: np.ndarray
    w: np.ndarray
    x_names: tuple[str, ...]
    w_names: tuple[str, ...]

    def given(self, data, x, w) -> tuple[np.ndarray, np.ndarray | None]:
        if data is not None:
            raise DataError("this fit was made from arrays; pass x=... (and w=...), not a frame")
        if x is None:
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

    def moves(self, target: str):
        """As `FormulaDesign.moves`; a name that stands in both equations moves in both."""
        names = dict.fromkeys(self.x_names)
        if target != "population":
            names |= dict.fromkeys(self.w_names)
        moves = {}
        for name in names:
            values, position = (
                (self.x, self.x_names.index(name))
                if name in self.x_names
                else (self.w, self.w_names.index(name))
            )
            step = 1e-4 * (float(np.nanstd(values[:, position])) or 1.0)
            moves[name] = [(name, step, -step, 2 * step)]

        check_complete(self.x, self.x_names, np.arange(len(self.x)))

        def rows_of(name, change):
            shifted = []
            for values, labels in ((self.x, self.x_names), (self.w, self.w_names)):
                values = values.copy()
                if name in labels:
                    values[:, labels.index(name)] += change
                shifted.append(with_intercept(values))
            return tuple(shifted)

        return moves, rows_of


def array_design(x, w) -> ArrayDesign:
    """Columns of w that carry no name take that of an equal column of x, so that what is left
    over is recognised as an instrument."""
    x_values, x_names = columns_of(x, "x")
    w_values, w_names = columns_of(w, "w")
    if len(x_values) != len(w_values):
        raise DataError(f"x has {len(x_values)} rows but w has {len(w_values)}")
    if x_names is None and w_names is not None:
        x_names = tuple(
            _equal_column(column, w_values, w_names) or f"x{j}"
            for j, column in enumerate(x_values.T)
        )
    if w_names is None:
        known = x_names or tuple(f"x{j}" for j in range(x_values.shape[1]))
        w_names = tuple(
            _equal_column(column, x_values, known) or f"w{j}" for j, column in enumerate(w_values.T)
        )
    x_names = x_names or tuple(f"x{j}" for j in range(x_values.shape[1]))
    return ArrayDesign(x_values, w_values, x_names, w_names)


def _equal_column(column, others, names) -> str | None:
    for j, name in enumerate(names):
        same = (column[:64] == others[:64, j]) | np.isnan(others[:64, j])
        if not same.all():  # a glance at the first rows rules out most
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
    matrix[:, 0] = 1.0
    matrix[:, 1:] = values
    return matrix
