"""k multilayer perceptrons at once: one batched product per layer, all parameters in one (k, P)
block whose row j is network j.

A row holds, layer by layer, a matrix (in + 1, out) whose last line is the bias, and after the last
layer the head of the loss. The last input is constant and multiplies the bias.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

# Numbers in 64 bytes of float32, and in 128 of float64. Products are computed by other instructions
# where a matrix starts elsewhere, and end in other digits; what starts at a multiple of these does
# not depend on how many networks come before it.
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


def with_constant(values: np.ndarray) -> np.ndarray:
    """(n, p + 1): a column of ones behind the others."""
    return np.column_stack([values, np.ones(len(values))])


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
