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
from heckesel.deep.rows import Rows, full_batch, mini_batches, stack_cells
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
    device : where outputs are computed
    """

    sizes: tuple[int, ...]
    theta: np.ndarray
    loss: np.ndarray
    validation: np.ndarray | None = None
    best_epoch: np.ndarray | None = None
    device: str = "cpu"

    def on(self, device: str) -> Members:
        """The same networks, with outputs computed there."""
        return replace(self, device=str(torch_device(device)))

    @property
    def head(self) -> np.ndarray:
        """(k, h) what the loss trained beside the networks."""
        return self.theta[:, parameter_count(self.sizes) :]

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
    options: dict = {
        "loss": loss,
        "seeds": seeds,
        "units": units,
        "starts": starts,
        "heads": heads,
        "thetas": thetas,
        "dropout": dropout,
        "device": device,
    }
    blocks = member_blocks(config)
    if len(blocks) == 1 or config.spread is None:
        return _train_members(blocks[0], cells, config=config, progress=progress, **options)
    here = replace(config, spread=None)
    found = config.spread(partial(_train_members, cells=cells, config=here, **options), blocks)
    return [joined(parts) for parts in zip(*found, strict=True)]


def _train_members(
    numbers: range,
    cells,
    *,
    loss,
    seeds,
    config,
    units,
    starts,
    heads,
    thetas,
    dropout,
    device,
    progress=None,
) -> list[Members]:
    """The members with these numbers, of every cell."""
    config = replace(config, n_members=len(numbers))
    place = torch_device(device or config.device)
    steps = 1 if config.batch_size is None else math.ceil(units / config.batch_size)
    at_once = _cells_at_once(cells, config, steps, place)
    chunks = [slice(first, first + at_once) for first in range(0, len(cells), at_once)]
    train_chunk = partial(
        _train_chunk,
        loss=loss,
        config=config,
        steps=steps,
        starts=starts or {},
        dropout=dropout,
        place=place,
        first=numbers.start,
    )
    trained: list[Members] = []
    for done, chunk in enumerate(chunks):
        trained += train_chunk(
            cells[chunk],
            seeds[chunk],
            None if heads is None else heads[chunk],
            None if thetas is None else thetas[chunk],
            progress=shifted(progress, done, len(chunks)),
        )
    return trained


def _cells_at_once(cells, config, steps, place):
    rows = max(len(cell.x) for cell in cells) / steps
    size = DTYPES[config.dtype].itemsize
    layer = config.n_members * rows * max(config.hidden) * size
    return max(1, int(LAYER_BYTES["cpu" if place.type == "cpu" else "gpu"] // layer))


def _train_chunk(
    cells,
    seeds,
    heads,
    thetas,
    *,
    loss,
    config,
    steps,
    starts,
    dropout,
    place,
    first,
    progress,
):
    dtype, members = DTYPES[config.dtype], config.n_members
    sizes = (cells[0].x.shape[1] - 1, *config.hidden, loss.outputs)
    start = (
        start_of(cells[0], sizes, loss, seeds, range(first, first + members), starts, heads)
        if thetas is None
        else np.concatenate([theta[first : first + members] for theta in thetas])
    )
    stacked = stack_cells(cells, dtype=dtype, device=place)
    source = full_batch(stacked, members)
    if config.batch_size is not None:
        source = mini_batches(cells, stacked, seeds, members, steps, first)
    validation = None
    if cells[0].fold is not None:
        source, left_out = leave_own_fold_out(source, stacked, members, config.folds, first)
        validation = partial(evaluate, sizes=sizes, loss=loss, rows=left_out)
    trained = train(
        torch.as_tensor(start, dtype=dtype, device=place),
        sizes,
        loss,
        source,
        schedule_of(config, loss),
        validation=validation,
        stopping=Stopping(every=READ_EVERY, patience=config.patience),
        masks=_masks(source, dropout_seeds(seeds, members, first), config.hidden, dropout),
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
