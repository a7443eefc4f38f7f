"""The one training loop: k networks side by side, each with its own early stopping.

Once half of the networks in training are done, the others go on in a smaller block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from heckesel.networks.losses.normal import Loss
from heckesel.networks.training.adam import AdamState, Schedule, start_adam
from heckesel.networks.training.batches import Source, of_networks
from heckesel.networks.training.dropout import DropoutMasks
from heckesel.networks.training.steps import step_function

Validation = Callable[[torch.Tensor], torch.Tensor]
Progress = Callable[[int, int], None]
# Where the last quarter of the schedule begins. By then the cosine has used all but a fortieth of
# the learning rates, added up, so that what is gained here in a training that was long enough is
# next to nothing.
LATE = 0.75


@dataclass(frozen=True)
class Stopping:
    """Every `every` epochs the validation loss is read; a network that has not improved for
    `patience` epochs is done and keeps its best parameters."""

    every: int = 10
    patience: int = 150


@dataclass(frozen=True)
class Trained:
    """theta : (k, P); loss : (k,) mean over the last epoch, before each step

    validation, best_epoch : (k,) the loss and the epoch of the parameters kept, or None
    late_gain : (k,) by how much the validation loss fell in the last quarter of the schedule, or
        None; zero for a network that was done before
    """

    theta: torch.Tensor
    loss: torch.Tensor
    validation: torch.Tensor | None = None
    best_epoch: torch.Tensor | None = None
    late_gain: torch.Tensor | None = None


@dataclass(frozen=True)
class _Best:
    """The best parameters so far, network by network; those in `done` take no more."""

    theta: torch.Tensor
    value: torch.Tensor
    epoch: torch.Tensor
    done: torch.Tensor


def train(
    start: torch.Tensor,
    sizes: Sequence[int],
    loss: Loss,
    source: Source,
    schedule: Schedule,
    *,
    validation: Validation | None = None,
    stopping: Stopping | None = None,
    masks: DropoutMasks | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Parameters after `schedule.epochs` epochs from `start`, which is left as it is.

    start : (k, P) as `heckesel.networks.training.layers` lays it out
    validation : theta -> (k,) loss on rows that training does not see; with it each network ends
        at its best reading
    """
    theta, losses = start.clone(), start.new_zeros(len(start))
    everyone = torch.arange(len(start), device=start.device)
    block = _Block(everyone, start.clone(), start_adam(start, schedule, source.steps), source)
    step = block.step_function(sizes, loss, schedule, masks)
    stopping = stopping or Stopping()
    best = None if validation is None else _nothing_yet(theta)
    before: torch.Tensor | None = None  # the best readings when the last quarter began
    for epoch in range(schedule.epochs):
        total = torch.zeros_like(block.theta[:, 0])
        for rows in block.source.batches(epoch):
            total += step(rows)
        if progress is not None:
            progress(epoch + 1, schedule.epochs)
        if validation and best and _due(epoch, schedule.epochs, stopping.every):
            theta[block.networks], losses[block.networks] = block.theta, total / source.steps
            best = _improved(best, theta, validation(theta), epoch + 1, stopping.patience)
            if before is None and epoch + 1 >= LATE * schedule.epochs:
                before = best.value
            going = ~best.done[block.networks]
            if not going.any():
                break
            if masks is None and len(going) > 2 and 2 * going.sum() <= len(going):
                block = block.only(_never_alone(going))
                step = block.step_function(sizes, loss, schedule, masks)
    if best is None:
        return Trained(block.theta, total / source.steps)
    late_gain = torch.zeros_like(losses) if before is None else before - best.value
    return Trained(best.theta, losses, best.value, best.epoch, late_gain)


@dataclass(frozen=True)
class _Block:
    """The networks still in training, (k,) places among all of them, and their state."""

    networks: torch.Tensor
    theta: torch.Tensor
    state: AdamState
    source: Source

    def only(self, going: torch.Tensor) -> _Block:
        state = replace(self.state, first=self.state.first[going], second=self.state.second[going])
        source = of_networks(self.source, torch.nonzero(going)[:, 0])
        return _Block(self.networks[going], self.theta[going], state, source)

    def step_function(self, sizes, loss, schedule, masks):
        return step_function(self.theta, sizes, loss, self.source, schedule, self.state, masks)


def _never_alone(going: torch.Tensor) -> torch.Tensor:
    """A product of one pair of matrices is computed by other routines than that of several, and
    ends in other digits; a network must not depend on when its neighbours were done."""
    if going.sum() == 1:
        going = going.clone()
        going[torch.nonzero(~going)[0]] = True
    return going


def shifted(progress: Progress | None, done: int, trainings: int) -> Progress | None:
    """The progress of one training, of several one after the other."""
    if progress is None or trainings == 1:
        return progress
    return lambda epoch, epochs: progress(done * epochs + epoch, trainings * epochs)


def _due(epoch, epochs, every):
    return (epoch + 1) % every == 0 or epoch + 1 == epochs


def _nothing_yet(theta):
    k, device = len(theta), theta.device
    return _Best(
        theta=theta.clone(),
        value=torch.full((k,), torch.inf, dtype=theta.dtype, device=device),
        epoch=torch.zeros(k, dtype=torch.long, device=device),
        done=torch.zeros(k, dtype=torch.bool, device=device),
    )


def _improved(best, theta, value, epoch, patience):
    # A network that is done may improve again while others train on; taking that would make
    # its answer depend on which networks it was trained beside.
    better = (value < best.value) & ~best.done
    reached = torch.where(better, epoch, best.epoch)
    return _Best(
        theta=torch.where(better[:, None], theta, best.theta),
        value=torch.where(better, value, best.value),
        epoch=reached,
        done=best.done | (epoch - reached >= patience),
    )
