"""The network methods as a plain loop: one `nn.Sequential` per member, torch's own optimiser.

This is the paper's recipe written the usual way, to be timed against the batched trainer. It is
not made slow: outcome networks see selected rows only, tensors are made once, and gradients go
through torch's fused operations. Each function returns population means (k, m) at `x_new`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from heckesel.data import SelectionData
from heckesel.linear.probit import fit_probit
from heckesel.methods.weighted_ensemble import inverse_propensity_weights
from heckesel.numerics.normal import inverse_mills

MEMBERS, WIDTH, WARM_UP = 5, 64, 100
LEARNING_RATE, TWO_OUTPUT_LEARNING_RATE, WEIGHT_DECAY = 1e-2, 5e-3, 1e-5
DROPOUT, PASSES = 0.1, 64


@dataclass(frozen=True)
class Cell:
    """One dataset as float32 tensors: x (n, p), w (n, q), y (n,), s (n,) bool; propensity (n,)."""

    x: torch.Tensor
    w: torch.Tensor
    y: torch.Tensor
    s: torch.Tensor
    propensity: np.ndarray
    data: SelectionData


def cell_of(data: SelectionData, propensity: np.ndarray) -> Cell:
    x, w, y = (torch.tensor(part, dtype=torch.float32) for part in (data.x, data.w, data.y))
    return Cell(x, w, y, torch.tensor(data.s), propensity, data)


def network(p: int, outputs: int, dropout: float = 0.0) -> nn.Sequential:
    layers = [nn.Linear(p, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH), nn.SiLU()]
    if dropout:
        layers[2:2] = [nn.Dropout(dropout)]
        layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers, nn.Linear(WIDTH, outputs))


def train(parameters, loss, *, epochs: int, learning_rate: float) -> None:
    """Full-batch Adam with cosine decay; loss : epoch -> scalar tensor."""
    optimiser = torch.optim.Adam(parameters, lr=learning_rate, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=epochs)
    for epoch in range(epochs):
        optimiser.zero_grad()
        loss(epoch).backward()
        optimiser.step()
        schedule.step()


def heckman_two_step(cell: Cell, x_new: torch.Tensor, epochs: int) -> np.ndarray:
    w = np.column_stack([cell.data.w, np.ones(cell.data.n)])
    gamma = fit_probit(w, cell.data.s).gamma
    mills = torch.tensor(inverse_mills(w[cell.data.s] @ gamma), dtype=torch.float32)
    x, y = cell.x[cell.s], cell.y[cell.s]

    def member():
        net, c, log_sigma = network(x.shape[1], 1), *_scalars(2)

        def loss(epoch):
            residual = y - net(x).squeeze(-1) - c * mills
            return (log_sigma + 0.5 * (residual / log_sigma.exp()) ** 2).mean()

        train([*net.parameters(), c, log_sigma], loss, epochs=epochs, learning_rate=LEARNING_RATE)
        return net

    return _means([member() for _ in range(MEMBERS)], x_new)


def heckman_joint(cell: Cell, x_new: torch.Tensor, epochs: int, *, blind=False) -> np.ndarray:
    y, s = cell.y[cell.s], cell.s

    def member():
        net, head = network(cell.x.shape[1], 1), nn.Linear(cell.w.shape[1], 1)
        log_sigma, atanh_rho = _scalars(2)

        def loss(epoch):
            index = head(cell.w).squeeze(-1)
            e = (y - net(cell.x).squeeze(-1)[s]) / log_sigma.exp()
            rho = torch.zeros(()) if blind or epoch < WARM_UP else torch.tanh(atanh_rho)
            argument = (index[s] + rho * e) / torch.sqrt(1 - rho**2)
            seen = -0.5 * e**2 - log_sigma + torch.special.log_ndtr(argument)
            return -(seen.sum() + torch.special.log_ndtr(-index[~s]).sum()) / len(s)

        parameters = [*net.parameters(), *head.parameters(), log_sigma, atanh_rho]
        train(parameters, loss, epochs=epochs, learning_rate=LEARNING_RATE)
        return net

    return _means([member() for _ in range(MEMBERS)], x_new)


def blind_two_head(cell: Cell, x_new: torch.Tensor, epochs: int) -> np.ndarray:
    return heckman_joint(cell, x_new, epochs, blind=True)


def deep_ensemble(cell: Cell, x_new: torch.Tensor, epochs: int) -> np.ndarray:
    nets = [_two_outputs(cell, epochs) for _ in range(MEMBERS)]
    return _means(nets, x_new)


def weighted_ensemble(cell: Cell, x_new: torch.Tensor, epochs: int) -> np.ndarray:
    weight = inverse_propensity_weights(cell.propensity, cell.data.s)[cell.data.s]
    weight = torch.tensor(weight, dtype=torch.float32)
    return _means([_two_outputs(cell, epochs, weight=weight) for _ in range(MEMBERS)], x_new)


def mc_dropout(cell: Cell, x_new: torch.Tensor, epochs: int) -> np.ndarray:
    net = _two_outputs(cell, epochs, dropout=DROPOUT)
    return _means([net.train()] * PASSES, x_new)


METHODS = {
    "heckman_two_step": heckman_two_step,
    "heckman_joint": heckman_joint,
    "blind_two_head": blind_two_head,
    "deep_ensemble": deep_ensemble,
    "weighted_ensemble": weighted_ensemble,
    "mc_dropout": mc_dropout,
}


def _two_outputs(cell, epochs, *, weight=None, dropout=0.0):
    x, y = cell.x[cell.s], cell.y[cell.s]
    net = network(x.shape[1], 2, dropout)

    def loss(epoch):
        mean, log_variance = net(x).unbind(-1)
        log_variance = log_variance.clamp(-10.0, 6.0)
        unit = 0.5 * (log_variance + (y - mean) ** 2 / log_variance.exp())
        return (unit if weight is None else weight * unit).mean()

    train(net.parameters(), loss, epochs=epochs, learning_rate=TWO_OUTPUT_LEARNING_RATE)
    return net


def _scalars(count):
    return [nn.Parameter(torch.zeros(())) for _ in range(count)]


def _means(nets, x_new):
    with torch.no_grad():
        return np.stack([net(x_new)[:, 0].numpy() for net in nets])
