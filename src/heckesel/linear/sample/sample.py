"""Standardised rows of selected and unselected units, in memory or read again for every sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from heckesel.data import SelectionData
from heckesel.linear.sample.blocks import cross_products, do_all, slices, sum_over
from heckesel.linear.sample.shared_columns import SharedColumns, shared_columns
from heckesel.linear.sample.standardise import (
    ColumnScale,
    column_scale,
    column_scale_by,
    gathered,
    moments_in_blocks,
)

if TYPE_CHECKING:
    from heckesel.linear.sample.stream import StreamedRows

FEWEST_KEPT = 2000
ALL_ROWS_UP_TO = 50_000
SCAN_ROWS = 20_000
SCAN_SEED = 20_790  # fixed, so that the same data always gives the same modes


# What a likelihood needs of its rows, in memory or in files: `sum(function)`, which adds up
# function(block) over blocks that are small `Sample`s; `part()`, all rows while they are few, else
# the fixed-seed subsample of SCAN_ROWS; n rows; mass and mass_selected, their weights added up;
# nonzero, rows of positive weight; p, q and k columns of x, w and log sigma(x).
Rows: TypeAlias = "Sample | StreamedRows"


@dataclass(frozen=True)
class Sample:
    """Rows in memory.

    w_selected : (n1, q), residuals : (n1, p + 1) = [-x, y], w_unselected : (n0, q), whose columns
    are best each in one piece: numpy runs along thousands of rows, not a dozen columns
    start : of a block, the places of its first selected and its first unselected row among all
    shared : columns that both equations have, if known; `residuals` of long tables hold the others
    scale_columns : (n1, k) of log sigma(x), where it is not constant
    groups : codes of the selected and of the unselected rows, where they may depend on one another
    """

    w_selected: np.ndarray
    residuals: np.ndarray
    weight_selected: np.ndarray
    w_unselected: np.ndarray
    weight_unselected: np.ndarray
    start: tuple[int, int] = (0, 0)
    shared: SharedColumns | None = None
    scale_columns: np.ndarray | None = None
    groups: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def q(self) -> int:
        return self.w_selected.shape[1]

    @property
    def p(self) -> int:
        return self.expand.shape[1] - self.q - 1

    @property
    def k(self) -> int:
        return 0 if self.scale_columns is None else self.scale_columns.shape[1]

    @property
    def n(self) -> int:
        return len(self.w_selected) + len(self.w_unselected)

    @property
    def mass_selected(self) -> float:
        return float(self.weight_selected.sum())

    @property
    def mass(self) -> float:
        return self.mass_selected + float(self.weight_unselected.sum())

    @property
    def nonzero(self) -> int:
        return int(
            np.count_nonzero(self.weight_selected) + np.count_nonzero(self.weight_unselected)
        )

    @property
    def _without_shared(self) -> bool:
        return self.shared is not None and self.residuals.shape[1] == len(self.shared.own)

    @property
    def residual_columns(self) -> np.ndarray:
        """(n1, p + 1)"""
        if self.shared is not None and self._without_shared:
            return self.shared.residual_columns(self.w_selected, self.residuals)
        return self.residuals

    @cached_property
    def residual_gram(self) -> np.ndarray:
        """Weighted cross products of the residual columns."""
        expand = self.expand[:, self.q :]
        gram, _ = weighted_products(self.weight_selected, self.w_selected, self.own_columns)
        return expand.T @ gram @ expand

    @cached_property
    def own_columns(self) -> np.ndarray:
        """Residual columns that w does not hold."""
        if self.shared is None or self._without_shared:
            return self.residuals
        return np.asfortranarray(self.residuals[:, self.shared.own])

    @cached_property
    def expand(self) -> np.ndarray:
        """Turns sums over [w, own columns] to sums over [w, residual columns]."""
        if self.shared is None:
            return np.eye(self.q + self.residuals.shape[1])
        return self.shared.expand

    @cached_property
    def blocks(self) -> list[Sample]:
        """Selected rows block by block, then unselected ones."""
        none, (inside, outside) = slice(0, 0), self.start
        pairs = [(block, none) for block in slices(len(self.w_selected), self.q)]
        pairs += [(none, block) for block in slices(len(self.w_unselected), self.q)]
        return [
            replace(self.take(one, other), start=(inside + one.start, outside + other.start))
            for one, other in pairs
        ]

    def sum(self, function: Callable[[Sample], tuple]) -> list:
        return sum_over(function, self.blocks, self.n)

    def part(self) -> Sample:
        return self if self.n <= ALL_ROWS_UP_TO else self._part

    @cached_property
    def _part(self) -> Sample:
        return self.subsample(SCAN_ROWS, SCAN_SEED)

    def subsample(self, rows: int, seed: int) -> Sample:
        drawn = draw_rows(len(self.w_selected), len(self.w_unselected), rows, seed)
        some = self.take(drawn.selected, drawn.unselected)
        in_columns: dict = {
            "w_selected": np.asfortranarray(some.w_selected),
            "residuals": np.asfortranarray(some.residual_columns),
            "w_unselected": np.asfortranarray(some.w_unselected),
        }
        return drawn.reweighted(replace(some, **in_columns))

    def __getstate__(self) -> dict:
        """Without what can be computed again, for another process."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def group_codes(self) -> np.ndarray | None:
        """(n,) of all rows, selected ones first."""
        return None if self.groups is None else np.concatenate(self.groups)

    def take(self, selected, unselected) -> Sample:
        groups = self.groups
        return Sample(
            self.w_selected[selected],
            self.residuals[selected],
            self.weight_selected[selected],
            self.w_unselected[unselected],
            self.weight_unselected[unselected],
            shared=self.shared,
            scale_columns=None if self.scale_columns is None else self.scale_columns[selected],
            groups=None if groups is None else (groups[0][selected], groups[1][unselected]),
        )


def weighted_products(weight, left, right, others=()) -> tuple[np.ndarray, np.ndarray]:
    """Sums over rows of weight z z' and of other z', where z is the row of both tables side by
    side; others : (j, n)."""
    n, q = left.shape
    size = q + right.shape[1]
    rows = np.empty((size + len(others), n))
    np.multiply(left.T, weight, out=rows[:q])
    np.multiply(right.T, weight, out=rows[q:size])
    for row, other in zip(rows[size:], others, strict=True):
        row[:] = other
    sums = np.empty((len(rows), size))
    sums[:, :q] = cross_products(rows, left)
    sums[:q, q:] = sums[q:size, :q].T
    sums[q:, q:] = rows[q:] @ right
    return sums[:size], sums[size:]


def empty_sample(selected: int, unselected: int, residuals: int, q: int) -> Sample:
    """Memory for that many rows, not filled: asking for it again and again costs more than
    filling it."""
    return Sample(
        np.empty((selected, q), order="F"),
        np.empty((selected, residuals), order="F"),
        np.empty(selected),
        np.empty((unselected, q), order="F"),
        np.empty(unselected),
    )


@dataclass(frozen=True)
class Drawn:
    """Which of the selected and of the unselected rows are in a subsample, in ascending order,
    and the factors of their weights."""

    selected: np.ndarray
    unselected: np.ndarray
    factors: tuple[float, float]

    def reweighted(self, sample: Sample) -> Sample:
        return replace(
            sample,
            weight_selected=sample.weight_selected * self.factors[0],
            weight_unselected=sample.weight_unselected * self.factors[1],
        )


def draw_rows(selected: int, unselected: int, rows: int, seed: int) -> Drawn:
    """About `rows` units drawn without replacement, but of each kind at least FEWEST_KEPT;
    weights make up for a kind that is kept more often than the other."""
    rng = np.random.default_rng(seed)
    share = rows / (selected + unselected)
    chosen, factors = [], []
    for count in (selected, unselected):
        kept = max(round(share * count), min(count, FEWEST_KEPT))
        chosen.append(np.sort(rng.choice(count, kept, replace=False, shuffle=False)))
        factors.append(share * count / kept if kept else 1.0)
    return Drawn(chosen[0], chosen[1], (factors[0], factors[1]))


@dataclass(frozen=True)
class SampleScale:
    """How the columns of a `Sample` are standardised: x over the selected (the rows it is needed
    on), w over all, y and the columns of log sigma(x) over the selected."""

    w: ColumnScale
    x: ColumnScale
    y_centre: float
    y_scale: float
    scale: ColumnScale | None = None

    def apply(
        self,
        data: SelectionData,
        room: Sample | None = None,
        shared: SharedColumns | None = None,
    ) -> Sample:
        """The rows of `data` standardised; room : a sample to overwrite, see `empty_sample`;
        shared : columns of both equations, to be kept once."""
        inside, outside = np.flatnonzero(data.s), np.flatnonzero(~data.s)
        own = np.arange(data.x.shape[1] + 1) if shared is None else shared.own
        given = room is not None
        room = room or empty_sample(len(inside), len(outside), len(own), data.w.shape[1])
        sample = replace(
            room.take(slice(len(inside)), slice(len(outside))),
            weight_selected=data.weight[inside],
            weight_unselected=data.weight[outside],
            shared=shared,
        )
        tasks = [
            partial(self._selected, data, inside, own[:-1], sample, at)
            for at in slices(len(inside))
        ]
        tasks += [
            partial(_fill, sample.w_unselected[block], data.w, outside[block], self.w)
            for block in slices(len(outside))
        ]
        # with room given this is a batch of a stream, whose parts are read in parallel already
        do_all(tasks, 0 if given else data.n)
        if self.scale is None or data.scale is None:
            return sample
        return replace(sample, scale_columns=self.scale.apply(data.scale[inside]))

    def _selected(self, data, inside, own_x, sample: Sample, block: slice) -> None:
        rows, residuals = inside[block], sample.residuals[block]
        _fill(sample.w_selected[block], data.w, rows, self.w)
        if len(own_x):
            minus = ColumnScale(self.x.centre[own_x], -self.x.scale[own_x], None)
            x = data.x if len(own_x) == data.x.shape[1] else data.x[:, own_x]
            _fill(residuals[:, :-1], x, rows, minus)
        residuals[:, -1] = (data.y[rows] - self.y_centre) / self.y_scale


def _fill(out: np.ndarray, values: np.ndarray, rows: np.ndarray, scale: ColumnScale) -> None:
    """Standardised rows into `out`, whose columns are each in one piece."""
    columns = out.T
    if values.flags.f_contiguous:
        for column, of_all in zip(columns, values.T, strict=True):
            of_all.take(rows, out=column, mode="clip")  # without the copy of mode="raise"
    else:
        out[:] = gathered(values, rows)
    columns -= scale.centre[:, None]
    columns /= scale.scale[:, None]


def standardised_sample(data: SelectionData) -> tuple[Sample, SampleScale]:
    """All rows of `data`, standardised by their own moments."""
    y, is_long = data.y[data.s], data.n > ALL_ROWS_UP_TO
    if is_long:
        inside, outside = np.flatnonzero(data.s), np.flatnonzero(~data.s)
        of_w = moments_in_blocks(data.w, inside)
        w_scaling = column_scale_by(of_w.joined(moments_in_blocks(data.w, outside)))
        same = data.x_starts_w  # so that each column is read once
        of_x = of_w.of_first(data.x.shape[1]) if same else moments_in_blocks(data.x, inside)
        x_scaling = column_scale_by(of_x)
    else:
        w_scaling, x_scaling = column_scale(data.w), column_scale(data.x[data.s])
    y_centre = float(y.mean()) if x_scaling.constant is not None else 0.0
    y_scale = float(np.sqrt(np.mean((y - y_centre) ** 2))) or 1.0
    varying = None
    if data.scale is not None:
        columns = data.scale[data.s]
        varying = ColumnScale(columns.mean(axis=0), columns.std(axis=0), None)
    scalings = SampleScale(w_scaling, x_scaling, y_centre, y_scale, varying)
    shared = shared_columns(data, w_scaling, x_scaling)
    if is_long:
        sample = scalings.apply(data, shared=shared)
    else:  # other likelihoods need all residual columns again and again
        sample = replace(scalings.apply(data), shared=shared)
    if data.groups is not None:
        sample = replace(sample, groups=(data.groups[data.s], data.groups[~data.s]))
    return sample, scalings
