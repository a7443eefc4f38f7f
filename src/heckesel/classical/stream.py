r"""Fits of more rows than memory holds: every sum is a pass over the rows, read in parts.

A part is whatever `read` turns into batches of rows (a few row groups of a file). The mode search
is that of rows in memory, on a sample that is collected in the first pass; after it each
evaluation of the likelihood is one pass. Parts are mapped over cores or over a cluster by `run`
and added up in their order, so that the numbers do not depend on which worker read which part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import accumulate
from typing import Any

import numpy as np

from heckesel.classical import rows as limits
from heckesel.classical.checks import (
    check_constant,
    check_rows,
    check_scale,
    first_dependent,
    refuse,
    refuse_dependent,
    separating_range,
)
from heckesel.classical.ml import solve_at
from heckesel.classical.rows import (
    ColumnScale,
    Drawn,
    Sample,
    SampleScale,
    SharedColumns,
    add_up,
    column_scale_by,
    draw_rows,
    empty_sample,
    gathered,
    shared_columns,
)
from heckesel.data import RowSummary, SelectionData, concatenate, row_summary
from heckesel.errors import DataError
from heckesel.io import in_threads
from heckesel.math.moments import Moments, moments_of


@dataclass(frozen=True)
class Stream:
    """parts : handed to workers, so small; run : a `map`
    read : part -> batches of its rows, whose arrays may be overwritten by the next batch
    starts : for each part the places of its first selected and first unselected row among all
    """

    parts: tuple
    read: Callable[[Any], Iterator[SelectionData]]
    run: Callable[[Callable, Iterable], Iterable] = in_threads
    starts: tuple[tuple[int, int], ...] = ()

    def sum(self, function: Callable[[Sample], tuple], blocks: Callable) -> list:
        task = partial(_sum_part, blocks=partial(blocks, read=self.read), function=function)
        return add_up(self.run(task, list(zip(self.parts, self.starts, strict=True))))


def _sum_part(placed, *, blocks, function) -> list:
    return add_up(function(block) for block in blocks(*placed))


def _blocks(part, start, *, read, scalings: SampleScale, shared) -> Iterator[Sample]:
    """Standardised blocks of a part, each valid until the next batch is read."""
    room, capacity = None, 0
    inside, outside = start
    for data in read(part):
        if data.n > capacity:
            capacity = data.n
            own = data.x.shape[1] + 1 if shared is None else len(shared.own)
            room = empty_sample(capacity, capacity, own, data.w.shape[1])
        sample = replace(scalings.apply(data, room, shared), start=(inside, outside))
        inside, outside = inside + len(sample.w_selected), outside + len(sample.w_unselected)
        yield from sample.blocks


@dataclass(frozen=True)
class StreamedRows:
    """`Rows` that are read again for every sum.

    kept : the sample that modes are searched on, while it is needed
    """

    stream: Stream
    scalings: SampleScale
    p: int
    q: int
    n: int
    mass: float
    mass_selected: float
    nonzero: int
    kept: Sample | None
    k: int = 0
    shared: SharedColumns | None = None

    def sum(self, function: Callable[[Sample], tuple]) -> list:
        blocks = partial(_blocks, scalings=self.scalings, shared=self.shared)
        return self.stream.sum(function, blocks)

    @property
    def run(self) -> Callable[[Callable, Iterable], Iterable]:
        """The function that reads the parts, for work that is not a sum over them."""
        return self.stream.run

    def part(self) -> Sample:
        assert self.kept is not None  # dropped only when the fit is done
        return self.kept


@dataclass(frozen=True)
class StreamedData:
    """Summary of rows that a fit does not hold; the names are those of `SelectionData`."""

    rows: StreamedRows
    scalings: SampleScale
    x_names: tuple[str, ...]
    w_names: tuple[str, ...]
    y_name: str
    instruments: tuple[str, ...]
    n_selected: int
    has_selection: bool = True
    scale_names: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        return self.rows.n

    def units(self, weight_kind: str, *, selected: bool = False) -> int:
        """Units, or the selected among them; rows of weight zero were not read."""
        if weight_kind == "frequency":
            return round(self.rows.mass_selected if selected else self.rows.mass)
        return self.n_selected if selected else self.rows.nonzero

    def to_saved(self) -> RowSummary:
        """What the file of a fit holds of its rows."""
        return row_summary(self)

    def without_rows(self) -> StreamedData:
        return replace(self, rows=replace(self.rows, kept=None))


def loglik_at_zero(data: StreamedData, start: np.ndarray) -> float:
    """Log-likelihood at rho = 0, probit plus least squares, by a few passes from `start`."""
    value = solve_at(data.rows, 0.0, start).value
    return value - data.rows.mass_selected * float(np.log(data.scalings.y_scale))


@dataclass(frozen=True)
class Survey:
    """Moments of w among selected and unselected rows and of [x, y] and the columns of log sigma(x)
    among the selected, of a batch, a part or all rows; fraction : a weight that is no whole number,
    if there is one."""

    w_selected: Moments
    w_unselected: Moments
    xy: Moments
    z: Moments
    mass_selected: float
    mass_unselected: float
    fraction: float | None

    def joined(self, other: Survey) -> Survey:
        return Survey(
            self.w_selected.joined(other.w_selected),
            self.w_unselected.joined(other.w_unselected),
            self.xy.joined(other.xy),
            self.z.joined(other.z),
            self.mass_selected + other.mass_selected,
            self.mass_unselected + other.mass_unselected,
            other.fraction if self.fraction is None else self.fraction,
        )

    def scalings(self) -> SampleScale:
        xy = self.xy
        scaling = column_scale_by(xy.of_first(len(xy.mean) - 1))
        variance = xy.squares[-1] / xy.weight
        if scaling.constant is None:
            variance += xy.mean[-1] ** 2
        centre = 0.0 if scaling.constant is None else float(xy.mean[-1])
        w = column_scale_by(self.w_selected.joined(self.w_unselected))
        varying = None
        if len(self.z.mean):
            deviation = np.sqrt(self.z.squares / self.z.weight)
            deviation[deviation == 0] = 1.0  # a constant, which `check_stream` refuses
            varying = ColumnScale(self.z.mean, deviation, None)
        return SampleScale(w, scaling, centre, float(np.sqrt(variance)) or 1.0, varying)


def open_stream(
    stream: Stream, counts: Sequence[tuple[int, int]]
) -> tuple[StreamedRows, Survey, SelectionData]:
    """One pass: moments, and the rows (also as they were read) that the search for modes uses.

    counts : rows and selected rows of each part
    """
    rows, chosen = (sum(column) for column in zip(*counts, strict=True))
    if rows <= limits.ALL_ROWS_UP_TO:
        drawn = Drawn(np.arange(chosen), np.arange(rows - chosen), (1.0, 1.0))
    else:
        drawn = draw_rows(chosen, rows - chosen, limits.SCAN_ROWS, limits.SCAN_SEED)
    inside = _by_part(drawn.selected, [n1 for _, n1 in counts])
    outside = _by_part(drawn.unselected, [n - n1 for n, n1 in counts])
    items = list(zip(stream.parts, inside, outside, strict=True))
    found = list(stream.run(partial(_survey_part, read=stream.read), items))
    survey = reduce(Survey.joined, (part for part, _ in found))
    kept = concatenate([held for _, held in found])
    scalings = survey.scalings()
    shared = shared_columns(kept, scalings.w, scalings.x, of_a_part=True)
    unselected = [n - n1 for n, n1 in counts]
    starts = zip(_starts([n1 for _, n1 in counts]), _starts(unselected), strict=True)
    streamed = StreamedRows(
        stream=replace(stream, starts=tuple(starts)),
        scalings=scalings,
        p=kept.x.shape[1],
        q=kept.w.shape[1],
        n=rows,
        mass=survey.mass_selected + survey.mass_unselected,
        mass_selected=survey.mass_selected,
        nonzero=rows,
        k=len(survey.z.mean),
        kept=drawn.reweighted(replace(scalings.apply(kept), shared=shared)),
        shared=shared,
    )
    return streamed, survey, kept


def _starts(counts: list[int]) -> list[int]:
    """Rows before each part."""
    return [0, *accumulate(counts[:-1])]


def _by_part(positions: np.ndarray, counts: list[int]) -> list[np.ndarray]:
    """Positions in the whole table as positions in each part."""
    ends = list(accumulate(counts))
    cuts = np.searchsorted(positions, [0, *ends])
    return [
        positions[low:high] - (end - count)
        for low, high, end, count in zip(cuts[:-1], cuts[1:], ends, counts, strict=True)
    ]


def _survey_part(item, *, read) -> tuple[Survey, SelectionData]:
    part, inside, outside = item
    found, kept, seen_in, seen_out = [], [], 0, 0
    for data in read(part):
        found.append(_survey_batch(data))
        selected, unselected = np.flatnonzero(data.s), np.flatnonzero(~data.s)
        wanted = [_within(selected, inside, seen_in), _within(unselected, outside, seen_out)]
        kept.append(data.take(np.sort(np.concatenate(wanted))))
        seen_in, seen_out = seen_in + len(selected), seen_out + len(unselected)
    return reduce(Survey.joined, found), concatenate(kept)


def _survey_batch(data: SelectionData) -> Survey:
    s, weight = data.s, data.weight
    inside, outside = np.flatnonzero(s), np.flatnonzero(~s)
    odd = np.flatnonzero(weight != np.round(weight))
    of_w, of_y = moments_of(gathered(data.w, inside)), moments_of(data.y[inside, None])
    of_x = of_w.of_first(data.x.shape[1])
    if not data.x_starts_w:
        of_x = moments_of(gathered(data.x, inside))
    return Survey(
        of_w,
        moments_of(gathered(data.w, outside)),
        of_x.beside(of_y),
        moments_of(np.empty((len(inside), 0)) if data.scale is None else data.scale[inside]),
        float(weight[s].sum()),
        float(weight[~s].sum()),
        float(weight[odd[0]]) if len(odd) else None,
    )


def _within(here: np.ndarray, wanted: np.ndarray, seen: int) -> np.ndarray:
    """Rows of a batch among `wanted`, which counts from the first row of the part."""
    low, high = np.searchsorted(wanted, [seen, seen + len(here)])
    return here[wanted[low:high] - seen]


def check_selection(selected: int, rows: int, y_name: str) -> None:
    """Refuse files in which no row, or every row, has an outcome."""
    if not selected:
        raise DataError(f"no row is selected: the outcome {y_name!r} is missing in all {rows} rows")
    if rows == selected:
        raise DataError(
            f"all {rows} rows have an outcome, so every unit was selected and there is nothing to "
            "correct; for a selection model leave the outcome of unselected rows missing"
        )


def check_stream(rows: StreamedRows, survey: Survey, kept: SelectionData) -> None:
    """As `check_estimable`: the rows that were kept clear the table, or all rows are asked."""
    try:
        check_scale(kept)
        return check_rows(kept, slice(None))
    except DataError:
        if kept.n == rows.n:
            raise
    _check_all_rows(rows, survey, kept)


def _check_all_rows(rows: StreamedRows, survey: Survey, names: SelectionData) -> None:
    selected = f"among the {survey.xy.weight} selected rows"
    check_constant(survey.z.low, survey.z.high, names.scale_names, selected)
    check_constant(survey.xy.low, survey.xy.high, (*names.x_names, names.y_name), selected)
    w = survey.w_selected.joined(survey.w_unselected)
    everywhere = f"over all {rows.n} rows"
    check_constant(w.low, w.high, names.w_names, everywhere)
    low, high = (
        (values - rows.scalings.w.centre) / rows.scalings.w.scale for values in (w.low, w.high)
    )
    gram_x, gram_w, between = rows.sum(partial(_faults, low=low, high=high))
    for gram, labels, where in (
        (gram_x, (*names.x_names, names.y_name), selected),
        (gram_w, names.w_names, everywhere),
    ):
        refuse_dependent(*first_dependent(gram), labels, where)
    inside, outside = survey.w_selected, survey.w_unselected
    ends = inside.low, inside.high, outside.low, outside.high
    refuse(separating_range(*ends, names.w_names, lambda j, *_: between[j] == 0))


def _faults(block: Sample, *, low, high) -> tuple:
    """Cross products of [x, y] and of w, and how often a column of w is at neither end."""
    w = np.concatenate([block.w_selected, block.w_unselected])
    # an end standardised in a batch and here may differ in its last digit
    inner = (w > low + 1e-9 * (high - low)) & (w < high - 1e-9 * (high - low))
    return block.residual_columns.T @ block.residual_columns, w.T @ w, inner.sum(axis=0)
