"""Columns that both equations have, usually all of x, so that sums use each only once."""

from dataclasses import dataclass

import numpy as np

from heckesel.data import SelectionData
from heckesel.linear.sample.blocks import slices
from heckesel.linear.sample.standardise import ColumnScale

LARGEST_MIXING = 10.0  # one digit
GLANCE_ROWS = 64  # that distinguish most columns


@dataclass(frozen=True)
class SharedColumns:
    """[w, r] = [w, r[:, own]] @ expand, for residual columns r of which some are columns of w on
    another scale: sums over fewer columns give the same.

    own : (k,) positions; expand : (q + k, q + p + 1)
    """

    own: np.ndarray
    expand: np.ndarray

    def residual_columns(self, w: np.ndarray, own: np.ndarray) -> np.ndarray:
        """(n, p + 1) r from w and the columns of x only."""
        q = w.shape[1]
        mixing = self.expand[:q, q:]
        r = np.empty((len(w), mixing.shape[1]), order="F")
        r[:, self.own] = own
        for j in np.flatnonzero(mixing.any(axis=0)):
            first, *others = np.flatnonzero(mixing[:, j])
            np.multiply(w[:, first], mixing[first, j], out=r[:, j])
            for k in others:
                r[:, j] += mixing[k, j] * w[:, k]
        return r


def shared_columns(
    data: SelectionData, w: ColumnScale, x: ColumnScale, *, of_a_part: bool = False
) -> SharedColumns | None:
    """Which standardised columns of x are among those of w, for selected rows; w, x : how they
    were standardised; of_a_part : whether there are other rows, so that names must be equal too.

    With the same values v, w = (v - c)/s and r = -(v - d)/t, so r = -(s w + (c - d))/t, the second
    term times the constant of w. Where s/t or (c - d)/t is large that would lose digits.
    """
    if w.constant is None:
        return None
    p, q = data.x.shape[1], data.w.shape[1]
    mixing, own, same = np.zeros((q, p + 1)), [p], _same_columns(data)
    if of_a_part:
        same = {j: k for j, k in same.items() if data.x_names[j] == data.w_names[k]}
    for j in range(p):
        if j == x.constant:
            mixing[w.constant, j] = -1.0
            continue
        k = same.get(j)
        if k is not None and k != w.constant:
            slope, level = w.scale[k] / x.scale[j], (w.centre[k] - x.centre[j]) / x.scale[j]
            if max(slope, abs(level)) <= LARGEST_MIXING:
                mixing[[k, w.constant], j] = -slope, -level
                continue
        own.insert(-1, j)
    below = np.zeros((len(own), q + p + 1))
    below[np.arange(len(own)), q + np.array(own)] = 1.0
    return SharedColumns(np.array(own), np.vstack([np.hstack([np.eye(q), mixing]), below]))


def _same_columns(data: SelectionData) -> dict[int, int]:
    """Columns of x with the position of an equal column of w, in the selected rows."""
    few = np.flatnonzero(data.s)[:GLANCE_ROWS]
    alike = (data.x[few][:, :, None] == data.w[few][:, None, :]).all(axis=0)
    pairs = [(int(j), int(k)) for j, k in np.argwhere(alike)]
    if data.x_starts_w:
        return {j: k for j, k in pairs if j == k}
    for block in slices(data.n):
        x, w, outside = data.x[block], data.w[block], ~data.s[block]
        pairs = [(j, k) for j, k in pairs if ((x[:, j] == w[:, k]) | outside).all()]
    return dict(reversed(pairs))
