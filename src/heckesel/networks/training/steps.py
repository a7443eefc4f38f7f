"""One training step of k multilayer perceptrons at once: outputs, loss, gradient and Adam.

All parameters are in one (k, P) block whose row j is network j. A row holds, layer by layer, a
matrix (in + 1, out) whose last line is the bias, and after the last layer the head of the loss. The
last input is constant and multiplies the bias. A layer of all networks is one batched product.

What changes between steps is a row of a table computed beforehand, so that every step is the same
few operations. On a GPU it is recorded once as a CUDA graph and replayed, because launching forty
small kernels takes longer than running them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch

from heckesel.networks.losses.normal import Loss
from heckesel.networks.training.batches import Batch, Source

if TYPE_CHECKING:
    from heckesel.networks.training.dropout import DropoutMasks

# Numbers in 64 bytes of float32, and in 128 of float64. The rounding of a product depends on the
# alignment of its matrices. If they start at multiples of this, results do not depend on how many
# networks come before.
ALIGNED = 16

# Purposes of the random streams of an ensemble member. Each has its own spawn key, so that drawing
# from one never changes another.
INITIAL_WEIGHTS, INITIAL_HEAD, MINI_BATCHES, DROPOUT = range(4)


def member_seed(seed: int, member: int, *purpose: int) -> np.random.SeedSequence:
    """The random stream of one member: the same in any batch and on any device."""
    return np.random.SeedSequence(seed, spawn_key=(member, *purpose))


def parameter_count(sizes: Sequence[int]) -> int:
    """Weights and biases of one network with layers of these sizes, input and output included."""
    return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(sizes))


def initial_weights(seeds, sizes: Sequence[int]) -> np.ndarray:
    r"""Initial (k, P): weights and biases uniform on :math:`\pm 1/\sqrt{\text{fan in}}`.

    seeds : k seed sequences. The result is in float64. Sizes (q, 1) are a linear head.
    """
    return np.stack([_initial_row(np.random.default_rng(seed), sizes) for seed in seeds])


def _initial_row(rng, sizes):
    draws = []
    for fan_in, fan_out in pairwise(sizes):
        bound = 1.0 / math.sqrt(fan_in)
        draws.append(rng.uniform(-bound, bound, (fan_in + 1) * fan_out))
    return np.concatenate(draws)


def layer_views(block: torch.Tensor, sizes: Sequence[int]) -> list[torch.Tensor]:
    """Views into a (k, P) block: for each layer (k, in + 1, out), the bias as its last line."""
    views, at = [], 0
    for fan_in, fan_out in pairwise(sizes):
        end = at + (fan_in + 1) * fan_out
        views.append(block[:, at:end].view(len(block), fan_in + 1, fan_out))
        at = end
    return views


@dataclass(frozen=True)
class Workspace:
    """Memory that all training steps reuse; allocating it takes longer than computing in it.

    before : for each hidden layer (k, n, width), its argument, later the slope of the loss in it
    after : for each hidden layer (k, n, width + 1), its activations and a constant
    slopes : by width, (k, n, width)
    products : for each layer (k, in + 1, out), or transposed where that is faster; every network's
        starts at a multiple of `ALIGNED` numbers
    """

    before: list[torch.Tensor]
    after: list[torch.Tensor]
    slopes: dict[int, torch.Tensor]
    products: list[torch.Tensor]


def workspace(x: torch.Tensor, layers: Sequence[torch.Tensor]) -> Workspace:
    """Room for `forward` and `backward` on inputs like x, (k, n, p + 1)."""
    k, n, _ = x.shape
    hidden = [layer.shape[2] for layer in layers[:-1]]
    return Workspace(
        before=[x.new_empty(k, n, width) for width in hidden],
        after=[x.new_ones(k, n, width + 1) for width in hidden],
        slopes={width: x.new_empty(k, n, width) for width in set(hidden)},
        products=[_room_for_product(x, *layer.shape[1:]) for layer in layers],
    )


def _room_for_product(x, rows, columns):
    """With few outputs the transposed product is faster."""
    if columns < rows:
        rows, columns = columns, rows
    numbers = rows * columns
    padded = math.ceil(numbers / ALIGNED) * ALIGNED
    return x.new_empty(len(x), padded)[:, :numbers].view(len(x), rows, columns)


def forward(x, layers, room: Workspace | None = None, masks=None) -> torch.Tensor:
    r"""Outputs (k, n, out) of k networks: :math:`a_{l+1} = m_l\,\mathrm{SiLU}([a_l, 1] W_l)`,
    the last layer without activation.

    x : (k, n, p + 1), a constant last; layers : as `layer_views` returns them; masks : one
    (k, n, width) factor for each hidden layer (dropout).
    """
    room = room or workspace(x, layers)
    values = x
    for at, layer in enumerate(layers[:-1]):
        torch.bmm(values, layer, out=room.before[at])
        values = room.after[at]
        torch.ops.aten.silu.out(room.before[at], out=values[..., :-1])
        if masks is not None:
            values[..., :-1].mul_(masks[at])
    return torch.bmm(values, layers[-1])


def last_activations(x, layers) -> torch.Tensor:
    """(k, n, width + 1) of the last hidden layer, a constant last: `forward` is linear in them."""
    room = workspace(x, layers)
    forward(x, layers, room)
    return room.after[-1]


def backward(x, layers, slope, gradients, room: Workspace, masks=None) -> None:
    """The chain rule, written into `gradients`, views like `layers`.

    slope : (k, n, out) of the loss in the outputs that the last `forward` in `room` returned.
    """
    inputs = [x, *room.after]
    for at in reversed(range(len(layers))):
        _weight_gradient(inputs[at], slope, gradients[at], room.products[at])
        if at:
            weights = layers[at][:, :-1]
            above = torch.bmm(slope, weights.transpose(1, 2), out=room.slopes[weights.shape[1]])
            if masks is not None:
                above.mul_(masks[at - 1])
            slope = room.before[at - 1]
            torch.ops.aten.silu_backward.grad_input(above, slope, grad_input=slope)


def _weight_gradient(inputs, slope, gradient, product):
    """inputs' slope, (k, in + 1, out)."""
    if product.shape == gradient.shape:
        gradient.copy_(torch.bmm(inputs.transpose(1, 2), slope, out=product))
    else:
        gradient.copy_(torch.bmm(slope.transpose(1, 2), inputs, out=product).transpose(1, 2))


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


# A replay allocates nothing, so memory must be allocated before recording. For that torch requires
# a few ordinary runs on a side stream, and the schedule must have at least as many steps.
RUNS_BEFORE_RECORDING = 3
# Networks with two hidden layers of these widths, and with at most so many inputs and outputs, have
# fused kernels. With fewer rows in all networks together, launching kernels takes most of the time,
# and compiling these takes longer than they save.
FUSED_WIDTHS, FUSED_INPUTS, FUSED_OUTPUTS, FUSED_ROWS = (16, 32, 64), 16, 4, 2**16


def split(
    parameters: torch.Tensor, sizes: Sequence[int]
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Views of a (k, P) block: the layers of the networks, and the head (k, h)."""
    return layer_views(parameters, sizes), parameters[:, parameter_count(sizes) :]


def evaluate(parameters, sizes: Sequence[int], loss: Loss, rows: Batch) -> torch.Tensor:
    """Loss (k,) at these parameters, without gradients and without dropout."""
    with torch.no_grad():
        layers, head = split(parameters, sizes)
        if is_fused(parameters, sizes, rows):
            output = fused_kernels().fused_outputs(rows.x, parameters, sizes)
        else:
            output = forward(rows.x, layers)
        return loss.value_and_slopes(output, head, rows)[0]


def is_fused(parameters: torch.Tensor, sizes: Sequence[int], rows: Batch) -> bool:
    """Whether the kernels of `fused` are used for these networks and rows."""
    return (
        parameters.device.type == "cuda"
        and parameters.dtype == torch.float32
        and len(sizes) == 4
        and sizes[0] + 1 <= FUSED_INPUTS
        and all(width in FUSED_WIDTHS for width in sizes[1:3])
        and sizes[3] <= FUSED_OUTPUTS
        and rows.y.numel() >= FUSED_ROWS
        and find_spec("triton") is not None
    )


def fused_kernels():
    """The module with them; only CUDA builds of torch include triton."""
    from heckesel.networks.training import fused

    return fused


def step_function(
    parameters: torch.Tensor,
    source: Source,
    schedule: Schedule,
    state: AdamState,
    *,
    sizes: Sequence[int],
    loss: Loss,
    masks: DropoutMasks | None = None,
) -> Callable[[Batch], torch.Tensor]:
    """A function that takes one step on a batch of rows: it updates `parameters` and `state` in
    place and returns the loss (k,) before the step."""
    first = next(iter(source.batches(0)))
    make = fused_kernels().fused_step if is_fused(parameters, sizes, first) else layered_step
    step = make(
        parameters, first, state, sizes=sizes, loss=loss, decay=schedule.weight_decay, masks=masks
    )
    steps_left = len(state.table) - int(state.step)
    if parameters.device.type != "cuda" or steps_left <= RUNS_BEFORE_RECORDING:
        return step
    moving = [parameters, state.first, state.second, state.step]
    return _recorded(step, first, moving if masks is None else [*moving, masks.step])


def layered_step(
    parameters: torch.Tensor,
    rows: Batch,
    state: AdamState,
    *,
    sizes: Sequence[int],
    loss: Loss,
    decay: float,
    masks: DropoutMasks | None,
) -> Callable[[Batch], torch.Tensor]:
    """A step on rows like these, layer by layer."""
    layers, head = split(parameters, sizes)
    room = workspace(rows.x, layers)
    gradient = torch.empty_like(parameters)
    layer_gradients, head_gradient = split(gradient, sizes)

    @torch.no_grad()
    def step(rows):
        thin = None if masks is None else masks()
        output = forward(rows.x, layers, room, thin)
        value, by_output, by_head = loss.value_and_slopes(output, head, rows)
        backward(rows.x, layers, by_output, layer_gradients, room, thin)
        head_gradient.copy_(by_head)
        adam_step(parameters, gradient.add_(parameters, alpha=decay), state)
        return value

    return step


def _recorded(step, rows: Batch, moving: Sequence[torch.Tensor]):
    """`step` as a CUDA graph that reads a copy of the rows; `step` itself if recording fails.

    moving : tensors that a step changes; they are restored after the runs that recording needs.
    """
    own = rows.map(torch.clone)
    start = [tensor.clone() for tensor in moving]
    graph, recorded = torch.cuda.CUDAGraph(), True
    try:
        _run_aside(step, own)
        with torch.cuda.graph(graph):
            value = step(own)
    except RuntimeError as error:
        warnings.warn(
            f"the CUDA graph could not be recorded; training continues without it: {error}",
            stacklevel=4,
        )
        recorded = False
    for tensor, before in zip(moving, start, strict=True):
        tensor.copy_(before)
    if not recorded:
        return step
    last: list[Batch] = []

    def replay(rows, _tensors_of=step):  # the graph reads its tensors, which must outlive this call
        if not last or rows is not last[0]:
            for name, values in rows.present().items():
                getattr(own, name).copy_(values)
            last[:] = [rows]
        graph.replay()
        return value

    return replay


def _run_aside(step, rows):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(RUNS_BEFORE_RECORDING):
            step(rows)
    torch.cuda.current_stream().wait_stream(side)
