"""One training step of k built-in networks: loss, gradient and Adam.

On a GPU a step is recorded once as a CUDA graph and replayed, because launching forty small kernels
takes longer than running them.
"""

import warnings
from collections.abc import Callable, Sequence

import torch

from heckesel.networks.losses.normal import Loss
from heckesel.networks.training.adam import AdamState, Schedule, adam_step
from heckesel.networks.training.batches import Batch, Source
from heckesel.networks.training.dropout import DropoutMasks
from heckesel.networks.training.layers import (
    backward,
    forward,
    layer_views,
    parameter_count,
    workspace,
)

# A replay allocates nothing, so memory must be allocated before recording. For that torch requires
# a few ordinary runs on a side stream, and the schedule must have at least as many steps.
RUNS_BEFORE_RECORDING = 3


def split(
    parameters: torch.Tensor, sizes: Sequence[int]
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Views of a (k, P) block: the layers of the networks, and the head (k, h)."""
    return layer_views(parameters, sizes), parameters[:, parameter_count(sizes) :]


def evaluate(parameters, sizes: Sequence[int], loss: Loss, rows: Batch) -> torch.Tensor:
    """Loss (k,) at these parameters, without gradients and without dropout."""
    with torch.no_grad():
        layers, head = split(parameters, sizes)
        return loss.value_and_slopes(forward(rows.x, layers), head, rows)[0]


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
    layers, head = split(parameters, sizes)
    room = workspace(first.x, layers)
    gradient = torch.empty_like(parameters)
    layer_gradients, head_gradient = split(gradient, sizes)

    @torch.no_grad()
    def step(rows):
        thin = None if masks is None else masks()
        output = forward(rows.x, layers, room, thin)
        value, by_output, by_head = loss.value_and_slopes(output, head, rows)
        backward(rows.x, layers, by_output, layer_gradients, room, thin)
        head_gradient.copy_(by_head)
        adam_step(parameters, gradient.add_(parameters, alpha=schedule.weight_decay), state)
        return value

    steps_left = len(state.table) - int(state.step)
    if parameters.device.type != "cuda" or steps_left <= RUNS_BEFORE_RECORDING:
        return step
    moving = [parameters, state.first, state.second, state.step]
    return _recorded(step, first, moving if masks is None else [*moving, masks.step])


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
        warnings.warn(f"CUDA graph not recorded, training runs unrecorded: {error}", stacklevel=4)
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
