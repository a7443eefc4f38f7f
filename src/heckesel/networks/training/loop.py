"""The training loop of built-in and custom networks: k networks at once, each with early stopping.

When half of the networks have stopped, the others continue in a smaller block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from heckesel.networks.training.batches import Batch, Source, rounded_up
from heckesel.networks.training.steps import (
    MINI_BATCHES,
    AdamState,
    Schedule,
    member_seed,
    start_adam,
)

Validation = Callable[[torch.Tensor], torch.Tensor]
Progress = Callable[[int, int], None]
# Makes, from parameters (k, P), source, schedule and state, the function that takes one step.
MakeStep = Callable[[torch.Tensor, Source, Schedule, AdamState], Callable[[Batch], torch.Tensor]]
# Where the last quarter of the schedule begins. By then the cosine has used all but a fortieth of
# the sum of its learning rates, so a training that was long enough gains almost nothing later.
LATE = 0.75


@dataclass(frozen=True)
class Trained:
    """parameters : (k, P); loss : (k,) mean over the last epoch, before each step

    validation, best_epoch : (k,) loss and epoch of the parameters that were kept, or None
    late_gain : (k,) decrease of the validation loss in the last quarter of the schedule, or None;
        zero for a network that stopped before
    """

    parameters: torch.Tensor
    loss: torch.Tensor
    validation: torch.Tensor | None = None
    best_epoch: torch.Tensor | None = None
    late_gain: torch.Tensor | None = None


@dataclass(frozen=True)
class _Best:
    """The best parameters of each network so far; those of a network in `done` are final."""

    parameters: torch.Tensor
    value: torch.Tensor
    epoch: torch.Tensor
    done: torch.Tensor


def train(
    start: torch.Tensor,
    make_step: MakeStep,
    source: Source,
    schedule: Schedule,
    *,
    validation: Validation | None = None,
    every: int = 10,
    patience: int = 150,
    progress: Progress | None = None,
) -> Trained:
    """Parameters after `schedule.epochs` epochs from `start` (k, P), which is not changed.

    validation : parameters -> (k,) loss on held-out rows, computed every `every` epochs; with it
        each network keeps the parameters of its lowest loss, and stops if it has not improved for
        `patience` epochs
    """
    parameters, losses = start.clone(), start.new_zeros(len(start))
    everyone = torch.arange(len(start), device=start.device)
    block = _Block(everyone, start.clone(), start_adam(start, schedule, source.steps), source)
    step = make_step(block.parameters, source, schedule, block.state)
    best = None if validation is None else _nothing_yet(parameters)
    before: torch.Tensor | None = None  # the lowest losses when the last quarter began
    for epoch in range(schedule.epochs):
        total = torch.zeros_like(block.parameters[:, 0])
        for rows in block.source.batches(epoch):
            total += step(rows)
        if progress is not None:
            progress(epoch + 1, schedule.epochs)
        due = (epoch + 1) % every == 0 or epoch + 1 == schedule.epochs
        if validation and best and due:
            parameters[block.networks] = block.parameters
            losses[block.networks] = total / source.steps
            best = _improved(best, parameters, validation(parameters), epoch + 1, patience)
            if before is None and epoch + 1 >= LATE * schedule.epochs:
                before = best.value
            going = ~best.done[block.networks]
            if not going.any():
                break
            if len(going) > 2 and 2 * going.sum() <= len(going):
                block = block.only(_never_alone(going))
                step = make_step(block.parameters, block.source, schedule, block.state)
    if best is None:
        return Trained(block.parameters, total / source.steps)
    late_gain = torch.zeros_like(losses) if before is None else before - best.value
    return Trained(best.parameters, losses, best.value, best.epoch, late_gain)


@dataclass(frozen=True)
class _Block:
    """The networks still in training, (k,) positions among all of them, and their state."""

    networks: torch.Tensor
    parameters: torch.Tensor
    state: AdamState
    source: Source

    def only(self, going: torch.Tensor) -> _Block:
        state = replace(self.state, first=self.state.first[going], second=self.state.second[going])
        source = of_networks(self.source, torch.nonzero(going)[:, 0])
        return _Block(self.networks[going], self.parameters[going], state, source)


def _never_alone(going: torch.Tensor) -> torch.Tensor:
    """`going` with at least two networks. A product of two single matrices uses another routine
    than a batched product and rounds differently, so a network trained alone would depend on when
    the others stopped."""
    if going.sum() == 1:
        going = going.clone()
        going[torch.nonzero(~going)[0]] = True
    return going


def shifted(progress: Progress | None, done: int, trainings: int) -> Progress | None:
    """The progress of one of several trainings that run one after another."""
    if progress is None or trainings == 1:
        return progress
    return lambda epoch, epochs: progress(done * epochs + epoch, trainings * epochs)


def _nothing_yet(parameters):
    k, device = len(parameters), parameters.device
    return _Best(
        parameters=parameters.clone(),
        value=torch.full((k,), torch.inf, dtype=parameters.dtype, device=device),
        epoch=torch.zeros(k, dtype=torch.long, device=device),
        done=torch.zeros(k, dtype=torch.bool, device=device),
    )


def _improved(best, parameters, value, epoch, patience):
    # A network that has stopped may improve again while others train. Accepting that would make
    # its result depend on the networks it was trained with.
    better = (value < best.value) & ~best.done
    reached = torch.where(better, epoch, best.epoch)
    return _Best(
        parameters=torch.where(better[:, None], parameters, best.parameters),
        value=torch.where(better, value, best.value),
        epoch=reached,
        done=best.done | (epoch - reached >= patience),
    )


def of_networks(source: Source, networks: torch.Tensor) -> Source:
    """The same batches for some of the networks."""

    def chosen(rows):
        return rows.map(lambda values: values[networks])

    if source.steps == 1:
        (rows,) = source.batches(0)
        own = chosen(rows)
        return Source(1, lambda epoch: (own,))
    return Source(source.steps, lambda epoch: map(chosen, source.batches(epoch)))


def mini_batches(
    datasets: Sequence[Batch],
    stacked: Batch,
    seeds,
    members: int,
    steps: int,
    first: int = 0,
    multiple_of: int = 1,
) -> Source:
    """Each epoch splits the rows of each network into `steps` batches, in a separate random order
    for each network, padded to a `multiple_of` rows; the members are those from number `first` on.

    Selected and unselected rows are split separately, so that every batch has its share of both.
    Weights are multiplied by `steps`, which makes the gradient of a batch unbiased.
    """
    selected = [len(dataset.y) for dataset in datasets]
    unselected = [
        0 if dataset.w_unselected is None else len(dataset.w_unselected) for dataset in datasets
    ]

    def batches(epoch):
        order = batch_generators(seeds, range(first, first + members), epoch)
        chosen, others = (
            positions(order, counts, steps, step_rows(max(counts), steps, multiple_of))
            for counts in (selected, unselected)
        )
        for step in range(steps):
            yield take(stacked, members, steps, chosen[step], others[step])

    return Source(steps, batches)


def batch_generators(seeds, members, epoch) -> list[list[np.random.Generator]]:
    """Generators of the order of rows in one epoch, by dataset, then by member."""
    return [
        [np.random.default_rng(member_seed(seed, j, MINI_BATCHES, epoch)) for j in members]
        for seed in seeds
    ]


def step_rows(count: int, steps: int, multiple_of: int) -> int:
    """Rows of each of `steps` steps over `count` rows: at least one, because padding points to a
    row."""
    return rounded_up(max(1, math.ceil(count / steps)), multiple_of)


def positions(rngs, counts, steps: int, length: int) -> np.ndarray:
    """(steps, k, length) rows of each step, -1 where a network has none left.

    rngs : by dataset, then by member; counts : rows of each dataset
    """
    places = np.full((steps, sum(map(len, rngs)), length), -1)
    network = 0
    for own, count in zip(rngs, counts, strict=True):
        for rng in own:
            shuffled = rng.permutation(count)
            for step in range(steps):
                part = shuffled[step::steps]
                places[step, network, : len(part)] = part
            network += 1
    return places


def take(stacked: Batch, members: int, steps: int, chosen, others) -> Batch:
    """The rows at these positions, (k, length) of selected and of unselected units."""
    device = stacked.y.device
    dataset = torch.arange(len(stacked.y), device=device).repeat_interleave(members)[:, None]
    chosen, others = (torch.as_tensor(at, device=device) for at in (chosen, others))

    def taken(name):
        at = others if name.endswith("unselected") else chosen
        values = getattr(stacked, name)[dataset, at.clamp(min=0)]
        return values * (at >= 0) * steps if name.startswith("weight") else values

    return replace(stacked, **{name: taken(name) for name in stacked.present()})
