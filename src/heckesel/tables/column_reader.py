"""Parquet files as buffers of rows for networks, with row groups in random order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from heckesel.data import SelectionData, batch_of, concatenate
from heckesel.errors import DataError
from heckesel.math.moments import Moments, moments_of
from heckesel.tables.columns import Columns, learn_columns
from heckesel.tables.formula import check_variables
from heckesel.tables.stream import HEAD_ROWS, Part, frame_of, read_frames, read_part, sides_of
from heckesel.tables.values import column_levels, label_of, merged_levels

# Rows shuffled together. With a dozen columns they take 30 MB; a step takes some thousand of them.
BUFFER_ROWS = 131_072
KEPT_ROWS = 10_000  # for the verdict, which looks at no more
KEPT_SEED = 20_790  # fixed, so that the same files always get the same verdict
BUFFERS_KEY = 5  # of the random stream for row groups; members use the four before

Run = Callable[[Callable, Iterable], Iterable]


@dataclass(frozen=True)
class TableReader:
    """Which columns are x and w, the outcome, and the columns that mark selection and weigh rows.

    size : rows of a buffer at most; log : whether the outcome is fitted on the log scale
    """

    columns: Columns
    y: str
    selected: str | None
    weights: str | None
    size: int
    log: bool = False

    @property
    def names(self) -> list[str]:
        sides = [name for name in (self.y, self.selected, self.weights) if name is not None]
        return [*self.columns.names, *sides]

    def read(self, item: tuple[Part, ...]) -> Iterator[SelectionData]:
        """Buffers of the rows with positive weight."""
        held: list[SelectionData] = []
        for part in item:
            for data in read_part(part, self.names, self.size, self._rows):
                held.append(data)
                if sum(data.n for data in held) >= self.size:
                    yield concatenate(held)
                    held = []
        if held:
            yield concatenate(held)

    def read_selection(self, item: tuple[Part, ...]) -> Iterator[SelectionData]:
        """The same for a probit: a constant behind the columns of w, and nothing else in x."""
        for data in self.read(item):
            one = np.ones((data.n, 1))
            names = (*data.w_names, "Intercept")
            w = np.hstack([data.w, one])
            excluded = data.instruments
            yield replace(
                data, x=one, x_names=("Intercept",), w=w, w_names=names, excluded=excluded
            )

    def _rows(self, batch) -> SelectionData:
        frame = frame_of(batch)
        y, s, weight = sides_of(frame, self.y, self.selected, self.weights)
        return batch_of(
            self.columns.x(frame),
            self.columns.w(frame),
            s,
            self._on_scale(y, s),
            weight,
            x_names=self.columns.x_names,
            w_names=self.columns.w_names,
            y_name=self.y,
        )

    def _on_scale(self, y, s) -> np.ndarray:
        if not self.log:
            return y
        bad = np.flatnonzero(s & ~(y > 0))
        if len(bad):
            raise DataError(
                f"the outcome {self.y!r} is {y[bad[0]]:g} in row {bad[0]}, and its logarithm needs "
                "positive values; use another transformation, or leave the outcome missing"
            )
        return np.log(y, where=s, out=np.full(len(y), np.nan))


def learn_table(
    parts: Sequence[Part], sides: dict, columns, instruments, *, size: int, log: bool, run: Run
) -> TableReader:
    """Kinds of columns from the first rows; the levels of categories from all of them.

    sides : the columns of y, selected and sample_weight, None where there is none
    """
    for role, name in sides.items():
        if not isinstance(name, str) and (role == "y" or name is not None):
            raise DataError(f"X names files, so {role}= must be the name of one of their columns")
    head = next(read_part(parts[0], None, HEAD_ROWS, frame_of))
    taken = [name for name in sides.values() if name is not None]
    names = [name for name in head.columns if name not in taken] if columns is None else columns
    check_variables([*taken, *names], head)
    if set(taken) & set(names):
        raise DataError(f"{min(set(taken) & set(names))!r} cannot be a column of X as well")
    learned = learn_columns(head[list(names)], instruments)
    if learned.levels:
        known = list(learned.levels)
        found = read_frames(parts, known, BUFFER_ROWS, partial(_levels, names=known), run)
        levels = {name: merged_levels(each[name] for each in found) for name in known}
        steps = [
            replace(step, levels=tuple(map(label_of, levels.get(step.name, ()))))
            for step in learned.steps
        ]
        learned = replace(learned, steps=tuple(steps))
    side = sides["y"], sides["selected"], sides["sample_weight"]
    return TableReader(learned, *side, size, log)


def _levels(frame, *, names: list[str]) -> dict[str, tuple]:
    return {name: column_levels(frame[name]) for name in names}


def split_row_groups(
    parts: Sequence[Part], *, size: int, seed: int
) -> tuple[tuple[Part, ...], ...]:
    """Row groups drawn at random into items of at most `size` rows, so that a file in some order
    is not read in that order; a larger row group is a separate item.

    parts : one row group each. Inside an item they keep the order of the files.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(0, 0, 0, 0, BUFFERS_KEY))
    items: list[list[int]] = []
    room = 0
    for place in np.random.default_rng(sequence).permutation(len(parts)):
        rows = parts[place].rows
        if rows <= room:
            items[-1].append(int(place))
            room -= rows
        else:
            items.append([int(place)])
            room = size - rows
    return tuple(tuple(parts[place] for place in sorted(item)) for item in items)


@dataclass(frozen=True)
class Seen:
    """One pass: rows of each buffer, moments of x, w and y, and a sample of rows."""

    counts: tuple[tuple[int, int], ...]
    x: Moments
    w: Moments
    y: Moments
    kept: SelectionData


def survey(reader: TableReader, items, run: Run) -> list[Seen]:
    """The findings on each item; see `together`."""
    share = KEPT_ROWS / sum(part.rows for item in items for part in item)
    task = partial(_survey_item, reader=reader, share=share)
    return list(run(task, list(enumerate(items))))


def _survey_item(numbered, *, reader: TableReader, share: float) -> Seen:
    number, item = numbered
    rng = np.random.default_rng([KEPT_SEED, number])
    found = []
    for data in reader.read(item):
        s, weight = data.s, data.weight
        found.append(
            Seen(
                ((int(s.sum()), int((~s).sum())),),
                moments_of(data.x, weight),
                moments_of(data.w, weight),
                moments_of(data.y[s, None], weight[s]),
                data.take(rng.random(data.n) < share),
            )
        )
    return together(found)


def together(found: list[Seen]) -> Seen:
    """Of all items, or of all buffers of one."""
    x, w, y = (reduce(Moments.joined, (getattr(seen, name) for seen in found)) for name in "xwy")
    counts = tuple(pair for seen in found for pair in seen.counts)
    return Seen(counts, x, w, y, concatenate([seen.kept for seen in found]))
