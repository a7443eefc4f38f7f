"""Columns that both equations have, usually all of x, so that sums use each only once."""

from dataclasses import dataclass

import numpy as np

from heckesel.data import SelectionData
from heckesel.linear.sample.standardise import ColumnScale

LARGEST_MIXING = 10.0  # one digit


@dataclass(frozen=True)
class SharedColumns:
    """[w, r] = [w, r[:, own]] @ expand, for residual columns r of which some are columns of w on
    another scale: sums over fewer columns give the same.

    own : (k,) positions; expand : (q + k, q + p + 1)
    """

    own: np.ndarray
    expand: np.ndarray


def shared_columns(data: SelectionData, w: ColumnScale, x: ColumnScale) -> SharedColumns | None:
    """Which standardised columns of x are among those of w, for selected rows; w, x : how they
    were standardised.

    With the same values v, w = (v - c)/s and r = -(v - d)/t, so r = -(s w + (c - d))/t, the second
    term times the constant of w. Where s/t or (c - d)/t is large that would lose digits.
    """
    if w.constant is None:
        return None
    p, q = data.x.shape[1], data.w.shape[1]
    inside = np.flatnonzero(data.s)
    mixing, own = np.zeros((q, p + 1)), [p]
    for j in range(p):
        if j == x.constant:
            mixing[w.constant, j] = -1.0
            continue
        k = _same_column(data, inside, j)
        if k is not None and k != w.constant:
            slope, level = w.scale[k] / x.scale[j], (w.centre[k] - x.centre[j]) / x.scale[j]
            if max(slope, abs(level)) <= LARGEST_MIXING:
                mixing[[k, w.constant], j] = -slope, -level
                continue
        own.insert(-1, j)
    below = np.zeros((len(own), q + p + 1))
    below[np.arange(len(own)), q + np.array(own)] = 1.0
    return SharedColumns(np.array(own), np.vstack([np.hstack([np.eye(q), mixing]), below]))


def _same_column(data: SelectionData, inside, j: int) -> int | None:
    """The position in w of a column that equals column j of x on the rows `inside`."""
    column = data.x[inside, j]
    for k in np.flatnonzero(data.w[inside[0]] == column[0]):
        if np.array_equal(data.w[inside, k], column):
            return int(k)
    return None
