"""A training step of many small networks on a GPU, in four kernels and those of the loss.

The two dozen operations of an ordinary step each read and write the activations of a layer, so that
memory limits its speed. Here a kernel holds the activations of a few rows from inputs to outputs.
Only the arguments of the second layer are written and read; the rest is computed again for the
gradient. A product of matrices is three products of TF32 values and remainders, about as precise as
one in float32.

Gradients are added up over `PART` rows in one block, and over the parts in their order, so that a
network does not depend on how many are trained beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import triton
import triton.language as tl

from heckesel.networks.losses.normal import Loss
from heckesel.networks.training.batches import Batch
from heckesel.networks.training.dropout import DropoutMasks

ROWS = 64  # of a tile: its activations and the gradient of a layer of 64 units fit into registers
PART = 128  # rows whose gradients one block adds up
REGISTERS = 168  # of a thread: three blocks of the gradient share a multiprocessor
SIDE, MOST_INPUTS = tl.constexpr(4), tl.constexpr(16)  # outputs and inputs at most
COLUMNS = 512  # parameters that a block of Adam updates
PRODUCT = tl.constexpr("tf32x3")


@triton.jit
def _activations(before, keep, rows, units, n, THIN: tl.constexpr):
    """m SiLU(z) and its slope in z; with THIN, m are the factors of dropout."""
    sigmoid = 1 / (1 + tl.exp(-before))
    after, slope = before * sigmoid, sigmoid * (1 + before * (1 - sigmoid))
    if THIN:
        at = rows[:, None] * units.shape[0] + units[None]
        factor = tl.load(keep + at, mask=rows[:, None] < n, other=0.0)
        after, slope = after * factor, slope * factor
    return after, slope


@triton.jit
def _first_layer(
    x, layer, keep, rows, n, INPUTS: tl.constexpr, A: tl.constexpr, THIN: tl.constexpr
):
    a = tl.arange(0, A)
    before = tl.zeros((rows.shape[0], A), tl.float32)
    for i in tl.static_range(INPUTS):
        values = tl.load(x + rows * INPUTS + i, mask=rows < n, other=0.0)
        before += values[:, None] * tl.load(layer + i * A + a)[None]
    return _activations(before, keep, rows, a, n, THIN)


@triton.jit
def _second_layer(
    before,
    layer_3,
    slope,
    keep,
    rows,
    n,
    B: tl.constexpr,
    OUTPUTS: tl.constexpr,
    THIN: tl.constexpr,
):
    """Its activations, and the slope of the loss in their arguments."""
    b = tl.arange(0, B)
    at = rows[:, None] * B + b[None]
    arguments = tl.load(before + at, mask=rows[:, None] < n, other=0.0)
    after, bend = _activations(arguments, keep, rows, b, n, THIN)
    above = tl.zeros((rows.shape[0], B), tl.float32)
    for out in tl.static_range(OUTPUTS):
        own = tl.load(slope + rows * OUTPUTS + out, mask=rows < n, other=0.0)
        above += own[:, None] * tl.load(layer_3 + b * OUTPUTS + out)[None]
    return after, above * bend


@triton.jit(do_not_specialize=["n", "size"])
def _outputs_kernel(
    x, parameters, keep_1, keep_2, before, found, n, size,
    INPUTS: tl.constexpr, A: tl.constexpr, B: tl.constexpr, OUTPUTS: tl.constexpr,
    ROWS: tl.constexpr, THIN: tl.constexpr,
):  # fmt: skip
    """The outputs, and the arguments of the second layer for the gradient."""
    network = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    a, b = tl.arange(0, A), tl.arange(0, B)
    layer_1 = parameters + network * size
    layer_2 = layer_1 + INPUTS * A
    layer_3 = layer_2 + (A + 1) * B
    x, keep_1, keep_2 = x + network * n * INPUTS, keep_1 + network * n * A, keep_2 + network * n * B
    before, found = before + network * n * B, found + network * n * OUTPUTS
    after, _ = _first_layer(x, layer_1, keep_1, rows, n, INPUTS, A, THIN)
    weights = tl.load(layer_2 + a[:, None] * B + b[None])
    arguments = tl.dot(after, weights, input_precision=PRODUCT)
    arguments += tl.load(layer_2 + A * B + b)[None]
    tl.store(before + rows[:, None] * B + b[None], arguments, mask=rows[:, None] < n)
    after, _ = _activations(arguments, keep_2, rows, b, n, THIN)
    for out in tl.static_range(OUTPUTS):
        values = tl.sum(after * tl.load(layer_3 + b * OUTPUTS + out)[None], axis=1)
        values += tl.load(layer_3 + B * OUTPUTS + out)
        tl.store(found + rows * OUTPUTS + out, values, mask=rows < n)


@triton.jit(do_not_specialize=["n", "size"])
def _upper_gradient_kernel(
    x, parameters, keep_1, keep_2, before, slope, parts, n, size,
    INPUTS: tl.constexpr, A: tl.constexpr, B: tl.constexpr, OUTPUTS: tl.constexpr,
    ROWS: tl.constexpr, THIN: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """The slopes of the loss in the second and third layer, over `PART` rows."""
    network, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    a, b, side = tl.arange(0, A), tl.arange(0, B), tl.arange(0, SIDE)
    layer_1 = parameters + network * size
    layer_3 = layer_1 + INPUTS * A + (A + 1) * B
    x, keep_1, keep_2 = x + network * n * INPUTS, keep_1 + network * n * A, keep_2 + network * n * B
    before, slope = before + network * n * B, slope + network * n * OUTPUTS
    by_2, by_bias_2 = tl.zeros((A, B), tl.float32), tl.zeros((B,), tl.float32)
    by_3, by_bias_3 = tl.zeros((SIDE, B), tl.float32), tl.zeros((SIDE,), tl.float32)
    for first in range(0, PART, ROWS):
        rows = part * PART + first + tl.arange(0, ROWS)
        after, above = _second_layer(before, layer_3, slope, keep_2, rows, n, B, OUTPUTS, THIN)
        by_bias_2 += tl.sum(above, axis=0)
        for out in tl.static_range(OUTPUTS):
            own = tl.load(slope + rows * OUTPUTS + out, mask=rows < n, other=0.0)
            here = side == out
            by_3 += tl.where(here[:, None], tl.sum(after * own[:, None], axis=0)[None], 0.0)
            by_bias_3 += tl.where(here, tl.sum(own), 0.0)
        after, _ = _first_layer(x, layer_1, keep_1, rows, n, INPUTS, A, THIN)
        by_2 += tl.dot(tl.trans(after), above, input_precision=PRODUCT)
    count = INPUTS * A + (A + 1) * B + (B + 1) * OUTPUTS
    layer_2 = parts + (network * tl.num_programs(1) + part) * count + INPUTS * A
    layer_3 = layer_2 + (A + 1) * B
    tl.store(layer_2 + a[:, None] * B + b[None], by_2)
    tl.store(layer_2 + A * B + b, by_bias_2)
    known = side < OUTPUTS
    tl.store(layer_3 + b[None] * OUTPUTS + side[:, None], by_3, mask=known[:, None])
    tl.store(layer_3 + B * OUTPUTS + side, by_bias_3, mask=known)


@triton.jit(do_not_specialize=["n", "size"])
def _lower_gradient_kernel(
    x, parameters, keep_1, keep_2, before, slope, parts, n, size,
    INPUTS: tl.constexpr, A: tl.constexpr, B: tl.constexpr, OUTPUTS: tl.constexpr,
    ROWS: tl.constexpr, THIN: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """The slopes of the loss in the first layer, over `PART` rows."""
    network, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    a, b, side = tl.arange(0, A), tl.arange(0, B), tl.arange(0, MOST_INPUTS)
    layer_1 = parameters + network * size
    layer_2 = layer_1 + INPUTS * A
    layer_3 = layer_2 + (A + 1) * B
    x, keep_1, keep_2 = x + network * n * INPUTS, keep_1 + network * n * A, keep_2 + network * n * B
    before, slope = before + network * n * B, slope + network * n * OUTPUTS
    transposed = tl.load(layer_2 + a[None] * B + b[:, None])
    by_1 = tl.zeros((MOST_INPUTS, A), tl.float32)
    for first in range(0, PART, ROWS):
        rows = part * PART + first + tl.arange(0, ROWS)
        _, above = _second_layer(before, layer_3, slope, keep_2, rows, n, B, OUTPUTS, THIN)
        _, bend = _first_layer(x, layer_1, keep_1, rows, n, INPUTS, A, THIN)
        above = tl.dot(above, transposed, input_precision=PRODUCT) * bend
        for i in tl.static_range(INPUTS):
            values = tl.load(x + rows * INPUTS + i, mask=rows < n, other=0.0)
            here = (side == i)[:, None]
            by_1 += tl.where(here, tl.sum(above * values[:, None], axis=0)[None], 0.0)
    count = INPUTS * A + (A + 1) * B + (B + 1) * OUTPUTS
    found = parts + (network * tl.num_programs(1) + part) * count + side[:, None] * A + a[None]
    tl.store(found, by_1, mask=side[:, None] < INPUTS)


@triton.jit(do_not_specialize=["splits", "count", "size", "decay"])
def _adam_kernel(
    parameters, parts, by_head, first, second, table, step, group, splits, count, size, decay,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """`steps.adam_step`, with the parts of the gradient added up and the weight decay."""
    network = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside, of_layers = column < size, column < count
    head = by_head + network * (size - count) + column - count
    gradient = tl.load(head, mask=inside & (column >= count), other=0.0)
    for part in range(splits):
        own = parts + (network * splits + part) * count + column
        gradient += tl.load(own, mask=of_layers, other=0.0)
    at = network * size + column
    value = tl.load(parameters + at, mask=inside, other=0.0)
    gradient += decay * value
    factors = table + tl.load(step) * 8 + tl.load(group + column, mask=inside, other=0)
    moment = tl.load(first + at, mask=inside, other=0.0)
    moment += tl.load(factors, mask=inside, other=0.0) * (gradient - moment)
    square = tl.load(second + at, mask=inside, other=0.0)
    square += tl.load(factors + 2, mask=inside, other=0.0) * (gradient * gradient - square)
    scale = tl.load(factors + 4, mask=inside, other=1.0)
    scale = scale * tl.sqrt(square) + tl.load(factors + 6, mask=inside, other=1.0)
    tl.store(first + at, moment, mask=inside)
    tl.store(second + at, square, mask=inside)
    tl.store(parameters + at, value - moment / scale, mask=inside)


def fused_outputs(x: torch.Tensor, parameters: torch.Tensor, sizes) -> torch.Tensor:
    """(k, n, out) as `steps.forward`; x : (k, n, p + 1), parameters : (k, P)"""
    return _forward(x, parameters, _before(x, sizes), sizes, (x, x), thin=False)


def _before(x, sizes):
    return x.new_empty(*x.shape[:2], sizes[2])


def _forward(x, parameters, before, sizes, keep, thin: bool):
    k, n, _ = x.shape
    found = x.new_empty(k, n, sizes[3])
    _outputs_kernel[k, triton.cdiv(n, ROWS)](
        x, parameters, *keep, before, found, n, parameters.shape[1], THIN=thin, **_widths(sizes)
    )
    return found


def _widths(sizes) -> dict[str, int]:
    widths = (sizes[0] + 1, *sizes[1:], ROWS)
    return dict(zip(("INPUTS", "A", "B", "OUTPUTS", "ROWS"), widths, strict=True))


def fused_step(
    parameters: torch.Tensor,
    rows: Batch,
    state,
    *,
    sizes: Sequence[int],
    loss: Loss,
    decay: float,
    masks: DropoutMasks | None,
) -> Callable[[Batch], torch.Tensor]:
    """A function that takes one step, like that of `steps.step_function`, on rows like these."""
    k, n, inputs = rows.x.shape
    size, splits = parameters.shape[1], triton.cdiv(n, PART)
    count = inputs * sizes[1] + (sizes[1] + 1) * sizes[2] + (sizes[2] + 1) * sizes[3]
    parts, before = parameters.new_empty(k, splits, count), _before(rows.x, sizes)

    @torch.no_grad()
    def step(rows):
        keep = (rows.x, rows.x) if masks is None else masks()
        output = _forward(rows.x, parameters, before, sizes, keep, thin=masks is not None)
        value, by_output, by_head = loss.value_and_slopes(output, parameters[:, count:], rows)
        slope = by_output.contiguous()
        for kernel in (_upper_gradient_kernel, _lower_gradient_kernel):
            kernel[k, splits](
                rows.x, parameters, *keep, before, slope, parts, n, size,
                THIN=masks is not None, PART=PART, **_widths(sizes), maxnreg=REGISTERS,
            )  # fmt: skip
        _adam_kernel[k, triton.cdiv(size, COLUMNS)](
            parameters, parts, by_head.contiguous(), state.first, state.second, state.table,
            state.step, state.group, splits, count, size, decay, COLUMNS=COLUMNS,
        )  # fmt: skip
        state.step.add_(1)
        return value

    return step
