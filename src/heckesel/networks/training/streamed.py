"""Training on more rows than fit into memory: every epoch reads them again, one buffer at a time.

The order of buffers is drawn for each epoch, that of rows for each epoch and member, both from the
seed. Steps are those of rows in memory, and a table that fits into one buffer is split into the
same batches, so that its networks are the same.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from heckesel.data import SelectionData
from heckesel.networks.training.batches import Batch, Source, rows_together, stack_datasets
from heckesel.networks.training.config import DTYPES, NetworkConfig, torch_device
from heckesel.networks.training.ensemble_training import (
    Members,
    member_blocks,
    members_of,
    on_workers,
    schedule_of,
    start_of,
)
from heckesel.networks.training.loop import (
    Progress,
    batch_generators,
    positions,
    step_rows,
    take,
    train,
)
from heckesel.networks.training.steps import step_function


@dataclass(frozen=True)
class RowsOnDisk:
    """Rows on disk; `read` turns each item into one or more buffers of rows.

    counts : for each item the (selected, unselected) rows of each of its buffers
    """

    items: tuple
    read: Callable[[Any], Iterator[SelectionData]]
    counts: tuple[tuple[tuple[int, int], ...], ...]


def train_streamed(
    table: RowsOnDisk,
    rows_of: Callable[[SelectionData], Batch],
    numbers: range | None = None,
    *,
    progress: Progress | None = None,
    **options,
) -> list[Members]:
    """An ensemble of `config.n_members`, in a list as of `train_datasets`; `rows_of` makes the rows
    of the loss from a buffer, with weights that add up to one over all buffers. With
    `config.map_over_workers` each worker reads the table for its block of members.

    numbers : of the members to train, by default all
    options : config, loss, seed and starts, as in `Training`
    """
    if numbers is None and len(member_blocks(options["config"])) > 1:
        return on_workers(partial(train_streamed, table, rows_of), options)
    config, loss, seed = options["config"], options["loss"], options["seed"]
    numbers = numbers or range(config.n_members)
    dtype, place = DTYPES[config.dtype], torch_device(config.device)
    dataset = rows_of(next(table.read(table.items[0])))
    sizes = (dataset.x.shape[1] - 1, *config.hidden, loss.outputs)
    start = start_of(dataset, sizes, loss, [seed], numbers, options.get("starts", {}), None)
    trained = train(
        torch.as_tensor(start, dtype=dtype, device=place),
        partial(step_function, sizes=sizes, loss=loss),
        streamed_batches(table, rows_of, seed, numbers, config),
        schedule_of(config, loss),
        progress=progress,
    )
    return members_of(trained, sizes, 1)


def streamed_batches(
    table: RowsOnDisk, rows_of, seed, members: range, config: NetworkConfig
) -> Source:
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
                dataset = rows_of(buffer)
                unselected = 0 if dataset.w_unselected is None else len(dataset.w_unselected)
                places = [
                    positions(rngs, [count], cuts, length)
                    for count, length in zip((len(dataset.y), unselected), lengths, strict=True)
                ]
                stacked = stack_datasets([dataset], dtype=dtype, device=device)
                for step in range(cuts):
                    yield take(stacked, len(members), steps, *(place[step] for place in places))

    return Source(steps, batches)


def _order(seed: int, epoch: int, items: int) -> np.ndarray:
    # A random stream of the table, not of a member: their keys do not have four numbers.
    sequence = np.random.SeedSequence(seed, spawn_key=(0, 0, 0, epoch))
    return np.random.default_rng(sequence).permutation(items)
