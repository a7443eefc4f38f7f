"""Training on more rows than memory holds: every epoch reads them again, a buffer at a time.

Buffers come in an order of the epoch and rows in an order of epoch and member, both drawn from
the seed. A step is that of rows in memory, and a table that fits one buffer is cut into the same
steps as there, so that its networks are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from heckesel.data import SelectionData
from heckesel.deep.cells import Members, members_of, schedule_of, start_of
from heckesel.deep.config import DTYPES, NetworkConfig, torch_device
from heckesel.deep.losses import Loss
from heckesel.deep.rows import (
    Rows,
    Source,
    batch_generators,
    positions,
    rows_together,
    stack_cells,
    step_rows,
    take,
)
from heckesel.deep.scaling import Scaling
from heckesel.deep.spread import joined, member_blocks
from heckesel.deep.train import Progress, train
from heckesel.numerics.moments import Moments


@dataclass(frozen=True)
class Table:
    """Rows on disk. An item is what `read` turns into one or more buffers of rows.

    counts : for each item the (selected, unselected) rows of each of its buffers
    """

    items: tuple
    read: Callable[[Any], Iterator[SelectionData]]
    counts: tuple[tuple[tuple[int, int], ...], ...]


def train_streamed(
    table: Table,
    cell_of: Callable[[SelectionData], Rows],
    *,
    loss: Loss,
    seed: int,
    config: NetworkConfig,
    starts: Mapping[str, Sequence[float]] | None = None,
    progress: Progress | None = None,
) -> Members:
    """An ensemble of `config.n_members`; `cell_of` makes the rows of the loss from a buffer, with
    weights that add up to one over all buffers. With `config.spread` each worker reads the table
    for its block of members."""
    options: dict = {"loss": loss, "seed": seed, "starts": starts or {}}
    blocks = member_blocks(config)
    if len(blocks) == 1 or config.spread is None:
        return _train_block(blocks[0], table, cell_of, config=config, progress=progress, **options)
    here = replace(config, spread=None)
    task = partial(_train_block, table=table, cell_of=cell_of, config=here, **options)
    return joined(list(config.spread(task, blocks)))


def _train_block(numbers: range, table, cell_of, *, loss, seed, config, starts, progress=None):
    dtype, place = DTYPES[config.dtype], torch_device(config.device)
    cell = cell_of(next(table.read(table.items[0])))
    sizes = (cell.x.shape[1] - 1, *config.hidden, loss.outputs)
    start = start_of(cell, sizes, loss, [seed], numbers, starts, None)
    trained = train(
        torch.as_tensor(start, dtype=dtype, device=place),
        sizes,
        loss,
        streamed_batches(table, cell_of, seed, numbers, config),
        schedule_of(config, loss),
        progress=progress,
    )
    return members_of(trained, sizes, 1)[0]


def streamed_batches(table: Table, cell_of, seed, members: range, config: NetworkConfig) -> Source:
    """A `Source` whose every epoch visits every row once. Each buffer is cut into as many steps
    as its rows need; all steps are padded to the longest, and weights are multiplied by their
    number, which makes each step's gradient unbiased."""
    dtype, device = DTYPES[config.dtype], torch_device(config.device)
    size, together = config.batch_size, rows_together(config.hidden)
    assert size is not None  # rows in files come in batches
    steps_of = [[math.ceil(sum(pair) / size) for pair in item] for item in table.counts]
    steps = sum(map(sum, steps_of))
    pairs = [
        (pair, cuts)
        for item, own in zip(table.counts, steps_of, strict=True)
        for pair, cuts in zip(item, own, strict=True)
    ]
    lengths = [
        max(step_rows(pair[kind], cuts, together) for pair, cuts in pairs if cuts)
        for kind in (0, 1)
    ]

    def batches(epoch):
        rngs = batch_generators([seed], members, epoch)
        for item in _order(seed, epoch, len(table.items)):
            for buffer, cuts in zip(table.read(table.items[item]), steps_of[item], strict=True):
                cell = cell_of(buffer)
                unselected = 0 if cell.w_unselected is None else len(cell.w_unselected)
                places = [
                    positions(rngs, [count], cuts, length)
                    for count, length in zip((len(cell.y), unselected), lengths, strict=True)
                ]
                stacked = stack_cells([cell], dtype=dtype, device=device)
                for step in range(cuts):
                    yield take(stacked, len(members), steps, *(place[step] for place in places))

    return Source(steps, batches)


def _order(seed: int, epoch: int, items: int) -> np.ndarray:
    # A stream of the table, not of a member: no key of theirs has four numbers.
    sequence = np.random.SeedSequence(seed, spawn_key=(0, 0, 0, epoch))
    return np.random.default_rng(sequence).permutation(items)


def scaling_from(x: Moments, w: Moments, y: Moments) -> Scaling:
    """x and w over all units, y over the selected ones."""
    y_centre, y_scale = _centre_and_scale(y)
    return Scaling(
        *_centre_and_scale(x), *_centre_and_scale(w), float(y_centre[0]), float(y_scale[0])
    )


def _centre_and_scale(moments: Moments) -> tuple[np.ndarray, np.ndarray]:
    """As `scaling_of` has them: a column that does not vary keeps scale 1."""
    scale = np.sqrt(moments.squares / moments.weight)
    return moments.mean, np.where(scale > 1e-12 * np.abs(moments.mean), scale, 1.0)
