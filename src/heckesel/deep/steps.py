"""One training step of k networks: run operation by operation, or recorded once as a CUDA
graph and replayed, since launching forty small kernels costs more than running them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import torch

from heckesel.deep.adam import AdamState, Schedule, adam_step
from heckesel.deep.dropout import DropoutMasks
from heckesel.deep.losses import Loss
from heckesel.deep.nets import backward, forward, layer_views, parameter_count, workspace
from heckesel.deep.rows import Rows, Source

# Replays allocate nothing, so memory must be in place before recording; torch asks for a few
# ordinary runs on a side stream, for which the schedule must have room.
RUNS_BEFORE_RECORDING = 3


def split(theta: torch.Tensor, sizes: Sequence[int]) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Views of a (k, P) block: the layers of the networks, and the head (k, h)."""
    return layer_views(theta, sizes), theta[:, parameter_count(sizes) :]


def evaluate(theta, sizes: Sequence[int], loss: Loss, rows: Rows) -> torch.Tensor:
    """Loss (k,) at theta, without gradients and without dropout."""
    with torch.no_grad():
        layers, head = split(theta, sizes)
        return loss.value_and_slopes(forward(rows.x, layers), head, rows)[0]


def step_function(
    theta: torch.Tensor,
    sizes: Sequence[int],
    loss: Loss,
    source: Source,
    schedule: Schedule,
    state: AdamState,
    masks: DropoutMasks | None = None,
) -> Callable[[Rows], torch.Tensor]:
    """A function that moves theta and its state by one step on the rows it is given and returns
    the loss (k,) before that step."""
    first = next(iter(source.batches(0)))
    layers, head = split(theta, sizes)
    room = workspace(first.x, layers)
    gradient = torch.empty_like(theta)
    layer_gradients, head_gradient = split(gradient, sizes)

    @torch.no_grad()
    def step(rows):
        thin = None if masks is None else masks()
        output = forward(rows.x, layers, room, thin)
        value, by_output, by_head = loss.value_and_slopes(output, head, rows)
        backward(rows.x, layers, by_output, layer_gradients, room, thin)
        head_gradient.copy_(by_head)
        adam_step(theta, gradient.add_(theta, alpha=schedule.weight_decay), state)
        return value

    steps_left = len(state.table) - int(state.step)
    if theta.device.type != "cuda" or steps_left <= RUNS_BEFORE_RECORDING:
        return step
    moving = [theta, state.first, state.second, state.step]
    return _recorded(step, first, moving if masks is None else [*moving, masks.step])


def _recorded(step, rows: Rows, moving: Sequence[torch.Tensor]):
    """`step` as a CUDA graph over its own copy of the rows; `step` itself where recording fails.

    moving : what a step changes; put back after the runs that recording needs.
    """
    own = Rows(**{name: values.clone() for name, values in rows.present().items()})
    start = [tensor.clone() for tensor in moving]
    graph, recorded = torch.cuda.CUDAGraph(), True
    try:
        _run_aside(step, own)
        with torch.cuda.graph(graph):
            value = step(own)
    except RuntimeError as error:
        warnings.warn(f"CUDA graph not recorded, training runs unrecorded: {error}", stacklevel=4)
        recorded = False
    for tensor, before in zip(moving, start, strict=True):
        tensor.copy_(before)
    if not recorded:
        return step
    last: list[Rows] = []

    def replay(rows, _tensors_of=step):  # the graph reads them; they must outlive this call
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
