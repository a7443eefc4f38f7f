"""Adam with L2 weight decay and a cosine schedule, on one (k, P) block of parameters.

Everything that changes between steps is a row of a table computed beforehand, so that every step is
the same few operations and can be recorded once and replayed on a GPU.
"""

from dataclasses import dataclass

import numpy as np
import torch

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8  # of Kingma and Ba, and torch's defaults


@dataclass(frozen=True)
class Schedule:
    """Learning rate over `epochs`; the last `frozen` columns are constant for `warm_up` epochs."""

    epochs: int
    learning_rate: float
    weight_decay: float = 1e-5
    warm_up: int = 0
    frozen: int = 0


@dataclass(frozen=True)
class AdamState:
    """Tensors that a step updates in place.

    first, second : (k, P) moving averages of the gradient and its square
    step : (1,) steps taken; table : (steps, 4, 2) of `factor_table`
    group : (P,) 1 for columns that the warm-up freezes, 0 for the others
    """

    first: torch.Tensor
    second: torch.Tensor
    step: torch.Tensor
    table: torch.Tensor
    group: torch.Tensor


def factor_table(schedule: Schedule, steps: int) -> np.ndarray:
    r"""The factors (u1, u2, a, b) of each step, for free and frozen columns; (steps, 4, 2).

    With t the steps a column has taken, :math:`\alpha = \frac{\mathrm{lr}}2 (1 + \cos(\pi\,
    \mathrm{epoch}/\mathrm{epochs})) / (1 - \beta_1^t)`,

    .. math:: u_1 = 1-\beta_1, \quad u_2 = 1-\beta_2, \quad
              a = 1/(\alpha\sqrt{1-\beta_2^t}), \quad b = \epsilon/\alpha .

    A frozen column has :math:`u_1 = u_2 = 0` and counts its steps from the end of the warm-up, as
    in an optimiser that receives its gradient only from then on.
    """
    step = np.arange(schedule.epochs * steps)
    epoch = step // steps
    rate = 0.5 * schedule.learning_rate * (1 + np.cos(np.pi * epoch / schedule.epochs))
    columns = []
    for first in (0, schedule.warm_up * steps):
        age = np.maximum(step + 1 - first, 1)
        alpha = rate / (1 - BETA_1**age)
        factors = np.stack(
            [
                np.full(len(step), 1 - BETA_1),
                np.full(len(step), 1 - BETA_2),
                1 / (alpha * np.sqrt(1 - BETA_2**age)),
                EPSILON / alpha,
            ],
            axis=1,
        )
        factors[:first, :2] = 0.0
        columns.append(factors)
    return np.stack(columns, axis=2)


def start_adam(parameters: torch.Tensor, schedule: Schedule, steps: int) -> AdamState:
    """Both averages are zero, and no step has been taken."""
    group = torch.zeros(parameters.shape[1], dtype=torch.long, device=parameters.device)
    group[parameters.shape[1] - schedule.frozen :] = 1
    return AdamState(
        first=torch.zeros_like(parameters),
        second=torch.zeros_like(parameters),
        step=torch.zeros(1, dtype=torch.long, device=parameters.device),
        table=torch.as_tensor(factor_table(schedule, steps)).to(parameters),
        group=group,
    )


def adam_step(parameters: torch.Tensor, gradient: torch.Tensor, state: AdamState) -> None:
    r"""One step in place: :math:`\theta \leftarrow \theta - m / (a\sqrt v + b)`, after

    .. math:: m \leftarrow m + u_1 (g - m), \quad v \leftarrow v + u_2 (g^2 - v) .

    `gradient` already contains the weight decay.
    """
    factors = state.table.index_select(0, state.step)[0].index_select(1, state.group)
    state.first.lerp_(gradient, factors[0])
    state.second.lerp_(gradient.square(), factors[1])
    denominator = torch.addcmul(factors[3], state.second.sqrt(), factors[2])
    parameters.addcdiv_(state.first, denominator, value=-1)
    state.step.add_(1)
