"""Ensembles of a user's `nn.Module`, trained one after another.

Modules of any architecture cannot be computed in one batched product, and their gradients come from
torch's autograd. The loop, losses, optimiser, schedule and mini-batches are those of the built-in
networks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from heckesel.errors import DataError
from heckesel.networks.losses.normal import Loss
from heckesel.networks.training.batches import Batch, full_batch, stack_datasets
from heckesel.networks.training.config import DTYPES, NetworkConfig, torch_device
from heckesel.networks.training.ensemble_training import schedule_of, start_head
from heckesel.networks.training.loop import Progress, mini_batches, shifted, train
from heckesel.networks.training.steps import INITIAL_WEIGHTS, adam_step, member_seed

# Rows predicted at once after training on the full batch: modules may be large.
PREDICTED_AT_ONCE = 1024

MakeNet = Callable[[int], nn.Module]


@dataclass(frozen=True)
class ModuleMembers:
    """k trained modules; head : (k, h); loss : (k,) mean over the last epoch."""

    nets: tuple[nn.Module, ...]
    head: np.ndarray
    loss: np.ndarray
    at_once: int
    device: torch.device

    def take(self, chosen) -> ModuleMembers:
        """Some of the modules, by position or by a mask."""
        nets = tuple(self.nets[j] for j in np.arange(len(self.nets))[chosen])
        return replace(self, nets=nets, head=self.head[chosen], loss=self.loss[chosen])

    def outputs(self, inputs) -> np.ndarray:
        """(k, m, 1) at inputs (m, ...), for the scaled y."""
        inputs = torch.as_tensor(inputs)
        with torch.no_grad():
            members = [
                torch.cat([net(part.to(self.device)).cpu() for part in inputs.split(self.at_once)])
                for net in self.nets
            ]
        return torch.stack(members).numpy().astype(float)


def train_modules(
    make_net: MakeNet,
    inputs,
    rows: Batch,
    *,
    loss: Loss,
    seed: int,
    config: NetworkConfig,
    units: int,
    device: str | None = None,
    progress: Progress | None = None,
) -> ModuleMembers:
    """`config.n_members` modules for one dataset.

    make_net : seed -> module from a batch (b, ...) to (b, 1); inputs : (n, ...) of the selected
    units, in the order of `rows`, whose x is not used; units : the number of all units, as in
    `train_datasets`. torch's global generator is seeded for each member and then restored, so that
    modules that draw weights or dropout from it are reproducible.
    """
    place = torch_device(device or config.device)
    inputs, source_of = torch.as_tensor(inputs).to(place), _sources(rows, config, units, place)
    nets, heads, losses = [], [], []
    for j in range(config.n_members):
        own_seed = int(member_seed(seed, j, INITIAL_WEIGHTS).generate_state(1)[0])
        with torch.random.fork_rng():
            torch.manual_seed(own_seed)
            net = make_net(own_seed).to(place)
            if any(map(is_lazy, net.parameters())):
                net(inputs[:2])  # which initialises the shapes of lazy layers
            weights = [weight for weight in net.parameters() if weight.requires_grad]
            head = torch.as_tensor(start_head(rows, loss, seed, j), device=place)
            start = torch.cat([*(weight.detach().flatten() for weight in weights), head])[None]
            trained = train(
                start.to(DTYPES[config.dtype]),
                partial(_module_step, net=net, weights=weights, inputs=inputs, loss=loss),
                source_of(seed, j),
                schedule_of(config, loss),
                progress=shifted(progress, j, config.n_members),
            )
        nets.append(net.eval())
        heads.append(trained.parameters[0, start.shape[1] - len(head) :].cpu().numpy())
        losses.append(float(trained.loss))
    at_once = config.batch_size or PREDICTED_AT_ONCE
    return ModuleMembers(
        tuple(nets), np.stack(heads).astype(float), np.array(losses), at_once, place
    )


def _sources(rows: Batch, config, units, place):
    """(seed, member) -> the batches of that member; x holds positions among the selected units."""
    no_columns = replace(rows, x=np.zeros((len(rows.y), 0)))
    stacked = stack_datasets([no_columns], dtype=DTYPES[config.dtype], device=place)
    stacked = replace(stacked, x=torch.arange(len(rows.y), device=place)[None])
    if config.batch_size is None:
        return lambda seed, j: full_batch(stacked, 1)
    steps = math.ceil(units / config.batch_size)
    return lambda seed, j: mini_batches([rows], stacked, [seed], 1, steps, first=j)


def _module_step(parameters, source, schedule, state, *, net, weights, inputs, loss):
    """`steps.step_function` for one module: `parameters` (1, P) holds its weights and the head."""
    counts = [weight.numel() for weight in weights]

    def step(rows):
        output = _checked(net(inputs[rows.x[0]]), rows)
        head = parameters[:, sum(counts) :]
        value, by_output, by_head = loss.value_and_slopes(output.detach().to(head), head, rows)
        slopes = torch.autograd.grad(
            output, weights, by_output.to(output.dtype), materialize_grads=True
        )
        gradient = torch.cat([*(slope.reshape(1, -1).to(head) for slope in slopes), by_head], dim=1)
        adam_step(parameters, gradient.add_(parameters, alpha=schedule.weight_decay), state)
        with torch.no_grad():
            updated = parameters[0, : sum(counts)].split(counts)
            for weight, values in zip(weights, updated, strict=True):
                weight.copy_(values.view_as(weight))
        return value

    return step


def _checked(output, rows):
    expected = (rows.x.shape[1], 1)
    if tuple(output.shape) != expected:
        raise DataError(
            f"the network must map {expected[0]} rows to shape {expected} "
            f"but returned {tuple(output.shape)}"
        )
    return output[None]
