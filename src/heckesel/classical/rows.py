r"""Standardised rows of selected and unselected units, in memory, and sums over blocks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from heckesel.data import SelectionData
from heckesel.io import in_threads
from heckesel.math.moments import Moments, moments_of

# Threads take turns between two operations of numpy, so these should not be short.
BLOCK_ROWS, FEWEST_ROWS = 32_768, 8192
BLOCK_NUMBERS = 400_000  # 3.2 MB
# Below so many results numpy lets no other thread run during a product, however long it takes.
FREE_RESULTS = 512
# Below this a pass takes a few milliseconds, and handing out blocks would cost as much.
SEVERAL_CORES_FROM = 100_000


def slices(rows: int, columns: int = 1) -> list[slice]:
    """Blocks of rows that cover a table; fewer rows each if it has many columns."""
    size = min(BLOCK_ROWS, max(FEWEST_ROWS, BLOCK_NUMBERS // columns))
    return [slice(first, first + size) for first in range(0, rows, size)]


def threads_of_blocks(rows: int) -> AbstractContextManager:
    """One thread for the products of each block: if they had several, too, and other programs
    compete for the cores, threads that wait for one another take up to 30 times as long."""
    several = rows >= SEVERAL_CORES_FROM
    return threadpool_limits(1, user_api="blas") if several else nullcontext()


def sum_over(function: Callable, blocks: Sequence, rows: int) -> list:
    """Sum of function(block) over all blocks, each a tuple of numbers or arrays.

    rows : how many the blocks hold together; few are summed in this thread.
    """
    return add_up((in_threads if rows >= SEVERAL_CORES_FROM else map)(function, blocks))


def cross_products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """left @ right, of a few rows left (k, n) and a few columns right (n, q), as the sum of so many
    products side by side that other threads run meanwhile."""
    (k, n), q = left.shape, right.shape[1]
    parts = 1 << (FREE_RESULTS // (k * q)).bit_length()
    rows = n // parts
    if rows < parts:
        return left @ right
    whole = rows * parts
    above = left[:, :whole].reshape(k, parts, rows).swapaxes(0, 1)
    total = (above @ right[:whole].reshape(parts, rows, q)).sum(axis=0)
    return total + left[:, whole:] @ right[whole:] if whole < n else total


def do_all(tasks: Sequence[Callable], rows: int) -> list:
    """The results of tasks that do not depend on one another."""
    return list((in_threads if rows >= SEVERAL_CORES_FROM else map)(lambda task: task(), tasks))


def add_up(parts: Iterable[Sequence]) -> list:
    """Tuples added entry by entry in the order they come, so that the sum does not depend on
    how many cores, or machines, computed them."""
    total: list = []
    for part in parts:
        if not len(part):  # a part without a row that counts
            continue
        total = [np.add(a, b) for a, b in zip(total, part, strict=True)] if total else list(part)
    return total


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
    return column_scale_by(moments_of(values))


def moments_in_blocks(values: np.ndarray, rows: np.ndarray) -> Moments:
    """Of these rows of a long table, on several cores."""

    def moments(block: slice) -> Moments:
        return moments_of(gathered(values, rows[block]))

    run = in_threads if len(rows) >= SEVERAL_CORES_FROM else map
    return reduce(Moments.joined, run(moments, slices(len(rows))), moments_of(values[:0]))


def gathered(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """values[rows]; `take` is faster, and would first copy the whole of a table that is a view."""
    if values.flags.f_contiguous:
        return values.T.take(rows, axis=1).T
    return values.take(rows, axis=0) if values.flags.c_contiguous else values[rows]


def column_scale_by(moments: Moments) -> ColumnScale:
    """As `column_scale`, from moments without weights."""
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


if TYPE_CHECKING:
    from heckesel.classical.stream import StreamedRows

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
    def weight(self) -> np.ndarray:
        """(n,) of all rows, selected ones first."""
        return np.concatenate([self.weight_selected, self.weight_unselected])

    @property
    def nonzero(self) -> int:
        return int(np.count_nonzero(self.weight))

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

    def take(self, selected, unselected) -> Self:
        groups = self.groups
        return replace(
            self,
            w_selected=self.w_selected[selected],
            residuals=self.residuals[selected],
            weight_selected=self.weight_selected[selected],
            w_unselected=self.w_unselected[unselected],
            weight_unselected=self.weight_unselected[unselected],
            start=(0, 0),
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
    inside, outside = np.flatnonzero(data.s), np.flatnonzero(~data.s)
    of_w = of_x = moments_in_blocks(data.w, inside)
    w_scaling = column_scale_by(of_w.joined(moments_in_blocks(data.w, outside)))
    if not data.x_starts_w:  # else each column is read once
        of_x = moments_in_blocks(data.x, inside)
    x_scaling = column_scale_by(of_x.of_first(data.x.shape[1]))
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


def weighted_sums(units, columns, mass):
    """Weighted value, score and Hessian of a block, given its jets and their columns."""
    own = len(columns)
    sizes = [part.shape[1] for part in columns]
    shared = len(units.gradient) - own
    total = sum(sizes) + shared
    starts = np.cumsum([0, *sizes])
    score, hessian = np.empty(total), np.empty((total, total))
    gradient, bend = units.gradient * mass, units.hessian * mass
    for i, part in enumerate(columns):
        here = slice(starts[i], starts[i + 1])
        score[here] = part.T @ gradient[i]
        for j in range(i, own):
            there = slice(starts[j], starts[j + 1])
            hessian[here, there] = part.T @ (columns[j] * bend[i, j][:, None])
            hessian[there, here] = hessian[here, there].T
        hessian[here, starts[-1] :] = part.T @ bend[i, own:].T
        hessian[starts[-1] :, here] = hessian[here, starts[-1] :].T
    score[starts[-1] :] = gradient[own:].sum(axis=1)
    hessian[starts[-1] :, starts[-1] :] = bend[own:, own:].sum(axis=2)
    return float(mass @ units.value), score, hessian
