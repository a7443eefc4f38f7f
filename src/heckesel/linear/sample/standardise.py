"""Standardised columns, and the matrix that maps estimates back to the original scale.

The scale of a column must not change a fit, and exper and exper^2 together must not make it fail.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from heckesel.linear.sample.blocks import in_threads, slices
from heckesel.numerics.moments import Moments, moments_of


@dataclass(frozen=True)
class ColumnScale:
    """centre, scale : (q,); constant : position of the constant column, or None."""

    centre: np.ndarray
    scale: np.ndarray
    constant: int | None

    def apply(self, values: np.ndarray) -> np.ndarray:
        return (values - self.centre) / self.scale

    @property
    def back(self) -> np.ndarray:
        """(q, q) matrix T with coefficients = T @ standardised coefficients."""
        matrix = np.diag(1.0 / self.scale)
        if self.constant is not None:
            matrix[self.constant] -= self.centre / self.scale / self.scale[self.constant]
        return matrix


def column_scale(values: np.ndarray) -> ColumnScale:
    """Mean and sd of each column; without a constant column only scales, since a shift
    could not be mapped back."""
    n = len(values)
    constants = _constant_columns(values)
    squares = np.einsum("ij,ij->j", values, values) / n
    if not len(constants):
        return ColumnScale(
            np.zeros(values.shape[1]), np.sqrt(np.where(squares > 0, squares, 1.0)), None
        )
    constant = int(constants[0])
    centre = np.ones(n) @ values / n
    variance = squares - centre**2
    for j in np.flatnonzero(variance < 1e-6 * squares):  # too much cancelled to trust
        variance[j] = values[:, j].var()
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    centre[constant], scale[constant] = 0.0, values[0, constant]
    return ColumnScale(centre, scale, constant)


def _constant_columns(values) -> np.ndarray:
    """Columns that are one non-zero number; a glance at the first rows rules out most."""
    candidates = np.flatnonzero((values[:64] == values[0]).all(axis=0) & (values[0] != 0))
    return np.array([j for j in candidates if (values[:, j] == values[0, j]).all()], dtype=int)


def moments_in_blocks(values: np.ndarray, rows: np.ndarray) -> Moments:
    """Of these rows of a long table, on several cores."""

    def moments(block: slice) -> Moments:
        return moments_of(gathered(values, rows[block]))

    return reduce(Moments.joined, in_threads(moments, slices(len(rows))))


def gathered(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """values[rows]; `take` is faster, and would first copy the whole of a table that is a view."""
    if values.flags.f_contiguous:
        return values.T.take(rows, axis=1).T
    return values.take(rows, axis=0) if values.flags.c_contiguous else values[rows]


def column_scale_by(moments: Moments) -> ColumnScale:
    """As `column_scale` for all rows; moments without weights."""
    constants = np.flatnonzero((moments.low == moments.high) & (moments.low != 0))
    variance = moments.squares / moments.weight
    if not len(constants):
        mean_square = variance + moments.mean**2
        scale = np.sqrt(np.where(mean_square > 0, mean_square, 1.0))
        return ColumnScale(np.zeros_like(scale), scale, None)
    constant = int(constants[0])
    centre, scale = moments.mean.copy(), np.sqrt(np.where(variance > 0, variance, 1.0))
    centre[constant], scale[constant] = 0.0, moments.low[constant]
    return ColumnScale(centre, scale, constant)
