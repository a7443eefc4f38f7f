"""Ensembles of a user's own `nn.Module`, trained one after another with the same losses.

Modules of any shape cannot be laid side by side, so this is a loop; everything around the
networks, head, schedule, warm-up and mini-batches, is that of the batched trainer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from heckesel.errors import DataError
from heckesel.networks.losses.normal import Loss
from heckesel.networks.training.batches import (
    Batch,
    Source,
    full_batch,
    mini_batches,
    stack_datasets,
)
from heckesel.networks.training.config import DTYPES, NetworkConfig, torch_device
from heckesel.networks.training.ensemble_training import start_head
from heckesel.networks.training.layers import INITIAL_WEIGHTS, member_seed
from heckesel.networks.training.loop import Progress, shifted

# Rows predicted at once when training took all of them: modules may be large.
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

    def outputs(self, inputs) -> np.ndarray:
        """(k, m, 1) at inputs (m, ...), in the networks' own units."""
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
    dataset: Batch,
    *,
    loss: Loss,
    seed: int,
    config: NetworkConfig,
    units: int,
    device: str | None = None,
    progress: Progress | None = None,
) -> ModuleMembers:
    """`config.n_members` modules for one cell.

    make_net : seed -> module from a batch (b, ...) to (b, 1); inputs : (n, ...) of the selected
    units, in the order of `cell`, whose x is not used; units : all units, as in `train_datasets`.
    torch's global generator is seeded for each member and put back, so that modules which draw
    their weights or dropout from it are repeatable too.
    """
    place, inputs = torch_device(device or config.device), torch.as_tensor(inputs)
    dtype, source_of = DTYPES[config.dtype], _sources(dataset, config, units, place)
    trained = []
    for j in range(config.n_members):
        own = int(member_seed(seed, j, INITIAL_WEIGHTS).generate_state(1)[0])
        head = torch.as_tensor(start_head(dataset, loss, seed, j)[None]).to(place, dtype)
        with torch.random.fork_rng():
            torch.manual_seed(own)
            net = make_net(own).to(place)
            report = shifted(progress, j, config.n_members)
            source = source_of(seed, j)
            value = _train(net, head, inputs.to(place), source, loss, config, report)
        trained.append((net.eval(), head.cpu().numpy()[0], value))
    nets, heads, values = zip(*trained, strict=True)
    at_once = config.batch_size or PREDICTED_AT_ONCE
    return ModuleMembers(nets, np.stack(heads).astype(float), np.array(values), at_once, place)


def _sources(dataset, config, units, place):
    """(seed, member) -> rows of that member; x holds positions among the selected units."""
    positions = torch.arange(len(dataset.y), device=place)[None]
    stacked = stack_datasets(
        [replace(dataset, x=np.zeros((len(dataset.y), 0)))],
        dtype=DTYPES[config.dtype],
        device=place,
    )
    stacked = replace(stacked, x=positions)
    if config.batch_size is None:
        return lambda seed, j: full_batch(stacked, 1)
    steps = math.ceil(units / config.batch_size)

    def own(seed, j) -> Source:
        everyone = mini_batches([dataset], stacked, [seed], j + 1, steps)
        return Source(steps, lambda epoch: map(_last_network, everyone.batches(epoch)))

    return own


def _last_network(rows):
    return Batch(**{name: values[-1:] for name, values in rows.present().items()})


def _train(net, head, inputs, source, loss, config, progress) -> float:
    """Train one module and, in place, its head; the mean loss of the last epoch."""
    rate = loss.learning_rate if config.learning_rate is None else config.learning_rate
    late = head.shape[1] - int(loss.frozen)
    free, frozen = nn.Parameter(head[:, :late].clone()), nn.Parameter(head[:, late:].clone())
    optimiser = torch.optim.Adam(
        [*net.parameters(), free, frozen], lr=rate, weight_decay=config.decay
    )
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=config.epochs)
    for epoch in range(config.epochs):
        values = []
        for rows in source.batches(epoch):
            output = _checked(net(inputs[rows.x[0]]), rows).to(head.dtype)
            joined = torch.cat([free, frozen], dim=1).detach()
            value, by_output, by_head = loss.value_and_slopes(output.detach(), joined, rows)
            optimiser.zero_grad()
            output.backward(by_output)
            free.grad = by_head[:, :late]
            frozen.grad = by_head[:, late:] if epoch >= config.warm_up else None
            optimiser.step()
            values.append(value[0])
        cosine.step()
        if progress is not None:
            progress(epoch + 1, config.epochs)
    head.copy_(torch.cat([free, frozen], dim=1).detach())
    return float(torch.stack(values).mean())


def _checked(output, rows):
    expected = (rows.x.shape[1], 1)
    if tuple(output.shape) != expected:
        raise DataError(
            f"the network must map {expected[0]} rows to shape {expected} "
            f"but returned {tuple(output.shape)}"
        )
    return output[None]
