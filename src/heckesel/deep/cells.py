"""Cells in, trained ensembles out: every member of every cell in one batched training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from heckesel.data import SelectionData
from heckesel.deep.adam import Schedule
from heckesel.deep.config import DTYPES, NetworkConfig, torch_device
from heckesel.deep.dropout import dropout_masks, dropout_seeds
from heckesel.deep.folds import leave_own_fold_out
from heckesel.deep.losses import Loss
from heckesel.deep.memory import check_memory
from heckesel.deep.nets import (
    INITIAL_HEAD,
    INITIAL_WEIGHTS,
    forward,
    initial_weights,
    last_activations,
    layer_views,
    member_seed,
    parameter_count,
    with_constant,
)
from heckesel.deep.rows import Rows, full_batch, mini_batches, rows_together, stack_cells
from heckesel.deep.scaling import Scaling
from heckesel.deep.spread import joined, member_blocks
from heckesel.deep.steps import evaluate
from heckesel.deep.train import Progress, Stopping, Trained, shifted, train

# Rows predicted at once: five members' activations of this many rows take some 20 MB.
PREDICTED_AT_ONCE = 16384
# Epochs between readings of the fold left out. Small tables are done after some twenty epochs, and
# a reading costs a third of a step.
READ_EVERY = 2
# Activations of one layer, over all networks trained side by side. A CPU wants the few layers of
# a step in its cache (30 networks of 1000 rows take a third longer at once than five by five);
# a GPU wants as many networks as its memory holds.
LAYER_BYTES = {"cpu": 2 * 2**20, "gpu": 2 * 2**30}


@dataclass(frozen=True)
class Members:
    """The k trained networks of one cell, off the device.

    theta : (k, P) laid out as in `heckesel.deep.nets`; loss : (k,) final training loss
    validation, best_epoch : (k,) loss on the own fold and the epoch it was reached, or None
    late_gain : (k,) as `Trained` has it, or None
    device : where outputs are computed
    """

    sizes: tuple[int, ...]
    theta: np.ndarray
    loss: np.ndarray
    validation: np.ndarray | None = None
    best_epoch: np.ndarray | None = None
    late_gain: np.ndarray | None = None
    device: str = "cpu"

    def on(self, device: str) -> Members:
        """The same networks, with outputs computed there."""
        return replace(self, device=str(torch_device(device)))

    @property
    def head(self) -> np.ndarray:
        """(k, h) what the loss trained beside the networks."""
        return self.theta[:, parameter_count(self.sizes) :]

    @property
    def diverged(self) -> bool:
        """Whether a network ended without a finite loss; on folds it was put back to its start,
        before the first epoch."""
        if self.best_epoch is not None:
            return bool((self.best_epoch == 0).any())
        return not (np.isfinite(self.theta).all() and np.isfinite(self.loss).all())

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """(k, m, out) at x (m, p), in the networks' own units."""
        return self._over_rows(x, forward)

    def last_layer(self, x: np.ndarray) -> np.ndarray:
        """(k, m, width + 1): activations of the last hidden layer, a constant last."""
        return self._over_rows(x, last_activations)

    def _over_rows(self, x, function) -> np.ndarray:
        theta, x = torch.as_tensor(self.theta, device=self.device), with_constant(x)
        layers = layer_views(theta, self.sizes)
        parts = []
        for first in range(0, max(len(x), 1), PREDICTED_AT_ONCE):
            part = torch.as_tensor(x[first : first + PREDICTED_AT_ONCE]).to(theta)
            parts.append(function(part.expand(len(theta), -1, -1), layers).cpu().numpy())
        return np.concatenate(parts, axis=1).astype(float)


def selected_rows(data: SelectionData, scaling: Scaling, factor=1.0, *, total=None) -> Rows:
    """The selected units alone, with weights `data.weight * factor` that add up to one.

    total : what they are divided by instead, where these are some rows of a longer table
    """
    weight = (data.weight * factor)[data.s]
    return Rows(
        x=with_constant(scaling.x(data.x[data.s])),
        y=scaling.y(data.y[data.s]),
        weight=weight / (weight.sum() if total is None else total),
    )


def all_rows(data: SelectionData, scaling: Scaling, *, total=None) -> Rows:
    """Selected and unselected units for a joint likelihood; weights add up to one over both, or
    are divided by `total`."""
    total = data.weight.sum() if total is None else total
    w = with_constant(scaling.w(data.w))
    return replace(
        selected_rows(data, scaling, total=total),
        w=w[data.s],
        w_unselected=w[~data.s],
        weight_unselected=data.weight[~data.s] / total,
    )


def train_cells(
    cells: Sequence[Rows],
    *,
    loss: Loss,
    seeds: Sequence[int],
    config: NetworkConfig,
    units: int,
    starts: dict[str, Sequence[float]] | None = None,
    heads: Sequence[np.ndarray] | None = None,
    thetas: Sequence[np.ndarray] | None = None,
    dropout: float = 0.0,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[Members]:
    """One ensemble of `config.n_members` for each cell; all cells have the same columns.

    units : rows of the largest cell, unselected ones included; with `config.batch_size` they
    set the number of steps. starts : values (n_members,) for scalars of the loss that should
    not start at zero; with `warm_up >= epochs` the last one keeps them. heads : for each cell
    (h,) where the heads of its members start. thetas : for each cell (n_members, P) where its
    members start, networks and heads, in place of everything drawn. Cells with a `fold` have each
    member do without its own fold, and end where its loss there was lowest. With `config.spread`
    blocks of members go to its workers, and `progress` is not told.
    """
    each = _Each(cells, seeds, heads, thetas)
    training = _Training(loss, config, units, starts or {}, dropout, device or config.device)
    blocks = member_blocks(config)
    if len(blocks) == 1 or config.spread is None:
        return _train_members(blocks[0], each, training, progress)
    there = replace(training, config=replace(config, spread=None))
    found = config.spread(partial(_train_members, each=each, training=there), blocks)
    return [joined(parts) for parts in zip(*found, strict=True)]


@dataclass(frozen=True)
class _Each:
    """What `train_cells` is given for each cell."""

    cells: Sequence[Rows]
    seeds: Sequence[int]
    heads: Sequence[np.ndarray] | None
    thetas: Sequence[np.ndarray] | None

    def part(self, chunk: slice) -> _Each:
        return _Each(
            self.cells[chunk],
            self.seeds[chunk],
            None if self.heads is None else self.heads[chunk],
            None if self.thetas is None else self.thetas[chunk],
        )


@dataclass(frozen=True)
class _Training:
    """What `train_cells` is given for all of them; device : by name, since workers have their
    own."""

    loss: Loss
    config: NetworkConfig
    units: int
    starts: dict[str, Sequence[float]]
    dropout: float
    device: str

    @property
    def steps(self) -> int:
        """Of an epoch."""
        size = self.config.batch_size
        return 1 if size is None else math.ceil(self.units / size)


def _train_members(
    numbers: range, each: _Each, training: _Training, progress: Progress | None = None
) -> list[Members]:
    """The members with these numbers, of every cell; as many cells at once as `LAYER_BYTES` has
    room for."""
    config, place = training.config, torch_device(training.device)
    rows = max(len(cell.x) for cell in each.cells) / training.steps
    item = DTYPES[config.dtype].itemsize
    columns = each.cells[0].x.shape[1] - 1
    check_memory(
        (columns, *config.hidden, training.loss.outputs),
        members=len(numbers),
        rows=rows,
        steps=config.epochs * training.steps,
        item=item,
        place=place,
    )
    layer = len(numbers) * rows * max(config.hidden) * item
    at_once = max(1, int(LAYER_BYTES["cpu" if place.type == "cpu" else "gpu"] // layer))
    firsts = range(0, len(each.cells), at_once)
    trained: list[Members] = []
    for done, first in enumerate(firsts):
        chunk, report = slice(first, first + at_once), shifted(progress, done, len(firsts))
        trained += _train_chunk(numbers, each.part(chunk), training, place, report)
    return trained


def _train_chunk(numbers: range, each: _Each, training: _Training, place, progress):
    loss, config, cells = training.loss, training.config, each.cells
    dtype, members, first = DTYPES[config.dtype], len(numbers), numbers.start
    sizes = (cells[0].x.shape[1] - 1, *config.hidden, loss.outputs)
    if each.thetas is None:
        start = start_of(cells[0], sizes, loss, each.seeds, numbers, training.starts, each.heads)
    else:
        start = np.concatenate([theta[first : first + members] for theta in each.thetas])
    # masks are drawn row by row, so padding would change them
    together = 1 if training.dropout else rows_together(config.hidden)
    stacked = stack_cells(cells, dtype=dtype, device=place, multiple_of=together)
    source, validation = full_batch(stacked, members), None
    if config.batch_size is not None:
        source = mini_batches(cells, stacked, each.seeds, members, training.steps, first, together)
    if cells[0].fold is not None:
        assert config.folds is not None  # it dealt them
        source, left_out = leave_own_fold_out(source, stacked, members, config.folds, first)
        validation = partial(evaluate, sizes=sizes, loss=loss, rows=left_out)
    seeds = dropout_seeds(each.seeds, members, first)
    trained = train(
        torch.as_tensor(start, dtype=dtype, device=place),
        sizes,
        loss,
        source,
        schedule_of(config, loss),
        validation=validation,
        stopping=Stopping(every=READ_EVERY, patience=config.patience),
        masks=_masks(source, seeds, config.hidden, training.dropout),
        progress=progress,
    )
    return members_of(trained, sizes, len(cells))


def _masks(source, seeds, hidden, rate):
    if not rate:
        return None
    weight = next(iter(source.batches(0))).weight
    return dropout_masks(seeds, weight.shape[1], hidden, rate, like=weight)


def members_of(trained: Trained, sizes, count) -> list[Members]:
    """The networks of a chunk, cell by cell."""

    def by_cell(values):
        if values is None:
            return [None] * count
        return list(values.cpu().numpy().reshape(count, -1, *values.shape[1:]))

    losses = [values.astype(float) for values in by_cell(trained.loss)]
    parts = (
        by_cell(trained.theta),
        losses,
        by_cell(trained.validation),
        by_cell(trained.best_epoch),
        by_cell(trained.late_gain),
    )
    return [Members(sizes, *each) for each in zip(*parts, strict=True)]


def start_of(cell, sizes, loss, seeds, members, starts, given):
    """(k, P): networks, then heads."""
    who = [(seed, j) for seed in seeds for j in members]
    weights = initial_weights([member_seed(*one, INITIAL_WEIGHTS) for one in who], sizes)
    if loss.quiet:
        last = layer_views(torch.as_tensor(weights), sizes)[-1]
        last[..., -loss.quiet :] = 0.0
    heads = [start_head(cell, loss, *one) for one in who]
    if given is not None:
        heads = [head.copy() for head in given for _ in members]
    for name, values in starts.items():
        column = loss.scalars.index(name) - len(loss.scalars)
        for head, (_, j) in zip(heads, who, strict=True):
            head[column] = values[j]
    return np.hstack([weights, np.stack(heads)])


def start_head(cell: Rows, loss: Loss, seed: int, member: int) -> np.ndarray:
    """(h,): a linear layer's usual start where the loss has one, then zeros."""
    scalars = np.zeros(len(loss.scalars))
    if not loss.linear:
        return scalars
    stream = member_seed(seed, member, INITIAL_HEAD)
    return np.concatenate([initial_weights([stream], (cell.w.shape[1] - 1, 1))[0], scalars])


def schedule_of(config, loss):
    rate = loss.learning_rate if config.learning_rate is None else config.learning_rate
    return Schedule(
        epochs=config.epochs,
        learning_rate=rate,
        weight_decay=config.decay,
        warm_up=min(config.warm_up, config.epochs),
        frozen=int(loss.frozen),
    )
