"""From datasets to trained ensembles: all members of all datasets in one batched training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from heckesel.data import SelectionData
from heckesel.fit_info import Choice
from heckesel.networks.losses.normal import Loss
from heckesel.networks.training.batches import (
    Batch,
    DataScale,
    data_scale_of,
    full_batch,
    hold_out_own_fold,
    joint_rows,
    rows_together,
    stack_datasets,
    with_constant,
    with_folds,
)
from heckesel.networks.training.config import DTYPES, NetworkConfig, check_memory, torch_device
from heckesel.networks.training.dropout import dropout_masks, dropout_seeds
from heckesel.networks.training.loop import Progress, Trained, mini_batches, shifted, train
from heckesel.networks.training.steps import (
    INITIAL_HEAD,
    INITIAL_WEIGHTS,
    Schedule,
    evaluate,
    forward,
    initial_weights,
    last_activations,
    layer_views,
    member_seed,
    parameter_count,
    step_function,
)
from heckesel.on_disk import on_disk

# Rows predicted at once: the activations of five members take about 20 MB.
PREDICTED_AT_ONCE = 16384
# Epochs between evaluations of the held-out loss. Training on small datasets stops after about
# twenty epochs, and an evaluation takes a third of the time of a step.
READ_EVERY = 2
# Size of the activations of one layer, over all networks trained at once. On a CPU the layers of a
# step should fit into the cache (30 networks of 1000 rows take a third longer at once than five by
# five); on a GPU as many networks as its memory holds are fastest.
LAYER_BYTES = {"cpu": 2 * 2**20, "gpu": 2 * 2**30}
# A product of two single matrices uses another routine than a batched product and rounds
# differently, so a worker trains at least two members at once.
FEWEST_IN_A_BLOCK = 2


@dataclass(frozen=True)
class Members:
    """The k trained networks of one dataset, as arrays.

    parameters : (k, P) laid out as in `heckesel.networks.training.steps`
    loss : (k,) final training loss
    validation, best_epoch : (k,) lowest held-out loss and its epoch, or None
    late_gain : (k,) as in `Trained`, or None
    device : where outputs are computed
    """

    sizes: tuple[int, ...]
    parameters: np.ndarray
    loss: np.ndarray = field(metadata=on_disk("k"))
    validation: np.ndarray | None = field(default=None, metadata=on_disk(kept=False))
    best_epoch: np.ndarray | None = field(default=None, metadata=on_disk(kept=False))
    late_gain: np.ndarray | None = field(default=None, metadata=on_disk(kept=False))
    device: str = field(default="cpu", metadata=on_disk(kept=False))

    def on(self, device: str) -> Members:
        """The same networks with outputs computed on `device`."""
        return replace(self, device=str(torch_device(device)))

    def take(self, chosen) -> Members:
        """Some of the networks, by position or by a mask."""
        return Members(self.sizes, self.parameters[chosen], self.loss[chosen], device=self.device)

    @property
    def head(self) -> np.ndarray:
        """(k, h) the parameters of the loss."""
        return self.parameters[:, parameter_count(self.sizes) :]

    @property
    def diverged(self) -> bool:
        """Whether a network ended without a finite loss. On folds it then has its initial
        parameters, those of epoch 0."""
        if self.best_epoch is not None:
            return bool((self.best_epoch == 0).any())
        return not (np.isfinite(self.parameters).all() and np.isfinite(self.loss).all())

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """(k, m, out) at scaled x (m, p), for the scaled y."""
        return self._over_rows(x, forward)

    def last_layer(self, x: np.ndarray) -> np.ndarray:
        """(k, m, width + 1): activations of the last hidden layer, a constant last."""
        return self._over_rows(x, last_activations)

    def _over_rows(self, x, function) -> np.ndarray:
        parameters, x = torch.as_tensor(self.parameters, device=self.device), with_constant(x)
        layers = layer_views(parameters, self.sizes)
        parts = []
        for first in range(0, max(len(x), 1), PREDICTED_AT_ONCE):
            part = torch.as_tensor(x[first : first + PREDICTED_AT_ONCE]).to(parameters)
            parts.append(function(part.expand(len(parameters), -1, -1), layers).cpu().numpy())
        return np.concatenate(parts, axis=1).astype(float)


@dataclass(frozen=True)
class FitRequest:
    """The arguments of a method's `fit_many`; datasets have the same columns and one seed each."""

    datas: Sequence[SelectionData]
    seeds: Sequence[int]
    config: NetworkConfig
    device: str | None = None
    progress: Progress | None = None

    @cached_property
    def scalings(self) -> list[DataScale]:
        return [data_scale_of(data, self.config.standardise) for data in self.datas]

    def batches(self, rows_of: Callable[..., Batch] = joint_rows, *more: Sequence) -> list[Batch]:
        """`rows_of(data, scaling, ...)` of each dataset, with folds if the members hold them out;
        more : further arguments, one list each"""
        folds, given = self.config.folds, zip(self.datas, self.scalings, *more, strict=True)
        return [
            with_folds(rows_of(*each), each[0], folds, seed)
            for each, seed in zip(given, self.seeds, strict=True)
        ]

    def candidates(self) -> list[FitRequest]:
        """The same datasets with each of the configurations that held-out rows choose from."""
        tried = self.config.candidates()
        return [
            replace(self, config=one, progress=shifted(self.progress, done, len(tried)))
            for done, one in enumerate(tried)
        ]

    @property
    def training(self) -> dict[str, Any]:
        """The arguments of `train_datasets` other than rows and a loss."""
        named = {name: getattr(self, name) for name in ("seeds", "config", "device", "progress")}
        return named | {"units": max(data.n for data in self.datas)}


def best_of(tried: Sequence[FitRequest], fits: Sequence[list]) -> list:
    """For each dataset, the fit with the lowest held-out loss; its `info` lists all of them. They
    have the same members and folds, so their mean held-out losses are comparable.

    fits : of each candidate, one for each dataset
    """
    if len(tried) == 1:
        return fits[0]
    configs = [request.config for request in tried]
    return [_best(configs, each) for each in zip(*fits, strict=True)]


def _best(configs, fits):
    choices = [
        Choice(one.decay, one.errors, fit.info.held_out_loss)
        for one, fit in zip(configs, fits, strict=True)
    ]
    best = min(range(len(fits)), key=lambda at: choices[at].held_out_loss)
    chosen = {"weight_decay": choices[best].weight_decay, "errors": choices[best].errors}
    return replace(fits[best], info=replace(fits[best].info, choices=choices, **chosen))


def train_datasets(
    datasets: Sequence[Batch],
    numbers: range | None = None,
    *,
    progress: Progress | None = None,
    **options,
) -> list[Members]:
    """One ensemble of `config.n_members` for each dataset; all datasets have the same columns.

    If datasets have folds, each member holds one out and keeps the parameters with the lowest loss
    there. As many datasets are trained at once as `LAYER_BYTES` allows. With
    `config.map_over_workers` workers train blocks of members and `progress` is not called.

    numbers : of the members to train, by default all; options : fields of `Training`
    """
    if numbers is None and len(member_blocks(options["config"])) > 1:
        return on_workers(partial(train_datasets, datasets), options)
    job = Training(datasets, **options)
    config, place = job.config, torch_device(job.device or job.config.device)
    numbers = numbers or range(config.n_members)
    rows = max(len(dataset.x) for dataset in datasets) / job.steps
    item = DTYPES[config.dtype].itemsize
    steps = config.epochs * job.steps
    check_memory(job.sizes, members=len(numbers), rows=rows, steps=steps, item=item, place=place)
    layer = len(numbers) * rows * max(config.hidden) * item
    at_once = max(1, int(LAYER_BYTES["cpu" if place.type == "cpu" else "gpu"] // layer))
    firsts = range(0, len(datasets), at_once)
    trained: list[Members] = []
    for done, first in enumerate(firsts):
        chunk, report = slice(first, first + at_once), shifted(progress, done, len(firsts))
        trained += _train_chunk(numbers, job.part(chunk), place, report)
    return trained


@dataclass(frozen=True)
class Training:
    """The arguments of `train_datasets`.

    units : rows of the largest dataset, selected or not; with `config.batch_size` they determine
        the number of steps
    starts : initial values (n_members,) of scalars of the loss; with `warm_up >= epochs` the last
        scalar keeps them
    heads : for each dataset (h,), the initial heads of its members
    parameters : for each dataset (n_members, P), the initial networks and heads of its members,
        instead of random ones
    device : a name, since workers have their own devices; None is that of `config`
    """

    datasets: Sequence[Batch]
    loss: Loss
    seeds: Sequence[int]
    config: NetworkConfig
    units: int
    starts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    heads: Sequence[np.ndarray] | None = None
    parameters: Sequence[np.ndarray] | None = None
    dropout: float = 0.0
    device: str | None = None

    @property
    def steps(self) -> int:
        """Steps per epoch."""
        size = self.config.batch_size
        return 1 if size is None else math.ceil(self.units / size)

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.datasets[0].x.shape[1] - 1, *self.config.hidden, self.loss.outputs)

    def part(self, chunk: slice) -> Training:
        """The same for some of the datasets."""
        own: dict[str, Any] = {
            name: values if (values := getattr(self, name)) is None else values[chunk]
            for name in ("datasets", "seeds", "heads", "parameters")
        }
        return replace(self, **own)


def _train_chunk(numbers: range, job: Training, place, progress) -> list[Members]:
    loss, config, datasets, sizes = job.loss, job.config, job.datasets, job.sizes
    dtype, members, first = DTYPES[config.dtype], len(numbers), numbers.start
    if job.parameters is None:
        start = start_of(datasets[0], sizes, loss, job.seeds, numbers, job.starts, job.heads)
    else:
        start = np.concatenate([own[first : first + members] for own in job.parameters])
    # masks are drawn row by row, so padding would change them
    together = 1 if job.dropout else rows_together(config.hidden)
    stacked = stack_datasets(datasets, dtype=dtype, device=place, multiple_of=together)
    source, validation = full_batch(stacked, members), None
    if config.batch_size is not None:
        source = mini_batches(datasets, stacked, job.seeds, members, job.steps, first, together)
    if datasets[0].fold is not None:
        assert config.folds is not None  # the rows have folds
        source, held_out = hold_out_own_fold(source, stacked, members, config.folds, first)
        validation = partial(evaluate, sizes=sizes, loss=loss, rows=held_out)
        assert not job.dropout  # its masks are for all networks, and some stop early
    masks = None
    if job.dropout:
        weight = next(iter(source.batches(0))).weight
        seeds = dropout_seeds(job.seeds, members, first)
        masks = dropout_masks(seeds, weight.shape[1], config.hidden, job.dropout, like=weight)
    trained = train(
        torch.as_tensor(start, dtype=dtype, device=place),
        partial(step_function, sizes=sizes, loss=loss, masks=masks),
        source,
        schedule_of(config, loss),
        validation=validation,
        every=READ_EVERY,
        patience=config.patience,
        progress=progress,
    )
    return members_of(trained, sizes, len(datasets))


def members_of(trained: Trained, sizes, count) -> list[Members]:
    """The networks of each of `count` datasets."""

    def by_dataset(values):
        if values is None:
            return [None] * count
        return list(values.cpu().numpy().reshape(count, -1, *values.shape[1:]))

    trained = replace(trained, loss=trained.loss.double())
    parts = (by_dataset(getattr(trained, one.name)) for one in fields(trained))
    return [Members(sizes, *each) for each in zip(*parts, strict=True)]


def start_of(dataset, sizes, loss, seeds, members, starts, given):
    """(k, P) initial parameters: networks, then heads."""
    who = [(seed, j) for seed in seeds for j in members]
    weights = initial_weights([member_seed(*one, INITIAL_WEIGHTS) for one in who], sizes)
    if loss.quiet:
        last = layer_views(torch.as_tensor(weights), sizes)[-1]
        last[..., -loss.quiet :] = 0.0
    heads = [start_head(dataset, loss, *one) for one in who]
    if given is not None:
        heads = [head.copy() for head in given for _ in members]
    for name, values in starts.items():
        column = loss.scalars.index(name) - len(loss.scalars)
        for head, (_, j) in zip(heads, who, strict=True):
            head[column] = values[j]
    return np.hstack([weights, np.stack(heads)])


def start_head(dataset: Batch, loss: Loss, seed: int, member: int) -> np.ndarray:
    """(h,): random gamma as in a linear layer, if the loss has one, then zeros."""
    scalars = np.zeros(len(loss.scalars))
    if not loss.linear:
        return scalars
    stream = member_seed(seed, member, INITIAL_HEAD)
    return np.concatenate([initial_weights([stream], (dataset.w.shape[1] - 1, 1))[0], scalars])


def schedule_of(config, loss):
    rate = loss.learning_rate if config.learning_rate is None else config.learning_rate
    return Schedule(
        epochs=config.epochs,
        learning_rate=rate,
        weight_decay=config.decay,
        warm_up=min(config.warm_up, config.epochs),
        frozen=int(loss.frozen),
    )


def member_blocks(config: NetworkConfig) -> list[range]:
    """Numbers of the members of each block, in order; one block without workers."""
    workers = 1 if config.map_over_workers is None else config.map_over_workers.workers
    count = max(1, min(workers, config.n_members // FEWEST_IN_A_BLOCK))
    ends = [config.n_members * j // count for j in range(count + 1)]
    return [range(*pair) for pair in pairwise(ends)]


def on_workers(training: Callable[..., list[Members]], options: dict[str, Any]) -> list[Members]:
    """The members of each dataset, blocks of them trained by the workers of `config`, one of the
    options. Each member has its own seeds, so blocks do not communicate, and the ensemble is the
    same as on a single machine."""
    config = options["config"]
    there = partial(training, **options | {"config": replace(config, map_over_workers=None)})
    found = config.map_over_workers(there, member_blocks(config))
    return [_joined(parts) for parts in zip(*found, strict=True)]


def _joined(parts: Sequence[Members]) -> Members:
    def together(name):
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else np.concatenate(values)

    names = ("parameters", "loss", "late_gain", "validation", "best_epoch")
    return replace(parts[0], **{name: together(name) for name in names})
