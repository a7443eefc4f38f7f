"""Two ways to train one ensemble in two processes, against one process:

members  each process trains half of the members on all rows and hears nothing from the other
rows     each process has half of the rows of every step, and gradients of all members are added
         up over processes before it (data parallel, gloo on CPUs)

python -m benchmarks.two_processes                20,000 rows and the full batch
python -m benchmarks.two_processes --batch 1024   mini-batches

Time on the processor is listed beside the clock, which other work on the cores stretches. Both ways
move the same parameters by the same steps up to rounding, which is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as processes

from heckesel.networks.losses.normal import TWO_STEP
from heckesel.networks.training.batches import (
    Batch,
    Source,
    full_batch,
    stack_datasets,
    with_constant,
)
from heckesel.networks.training.steps import (
    INITIAL_WEIGHTS,
    Schedule,
    adam_step,
    backward,
    forward,
    initial_weights,
    member_seed,
    split,
    start_adam,
    step_function,
    workspace,
)

COLUMNS, HIDDEN, MEMBERS = 10, (64, 64), 4
SIZES = (COLUMNS, *HIDDEN, 1)
CPU = torch.device("cpu")


def draw(rows: int) -> Batch:
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((rows, COLUMNS)), rng.standard_normal((2, rows))
    y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * noise[0]
    weight = np.full(rows, 1 / rows)
    return Batch(x=with_constant(x), y=y, weight=weight, mills=np.abs(noise[1]))


def start_of(members: range) -> torch.Tensor:
    weights = initial_weights([member_seed(0, j, INITIAL_WEIGHTS) for j in members], SIZES)
    heads = np.zeros((len(members), len(TWO_STEP.scalars)))
    return torch.as_tensor(np.hstack([weights, heads]), dtype=torch.float32)


def source_of(cell: Batch, members: int, batch: int | None, process: int, of: int) -> Source:
    """The rows of this process: every `of`-th row of each step."""
    rows = len(cell.y)
    steps = 1 if batch is None else -(-rows // batch)
    parts = []
    for step in range(steps):
        own = slice(step + steps * process, None, steps * of)
        part = Batch(cell.x[own], cell.y[own], steps * cell.weight[own], cell.mills[own])
        parts.append(full_batch(stack_datasets([part], dtype=torch.float32, device=CPU), members))
    longest = max(part.batches(0)[0].y.shape[1] for part in parts)
    padded = [_padded(part.batches(0)[0], longest) for part in parts]
    return Source(steps, lambda epoch: padded)


def _padded(rows: Batch, length: int) -> Batch:
    missing = length - rows.y.shape[1]
    pad = torch.nn.functional.pad
    return Batch(
        pad(rows.x, (0, 0, 0, missing)),
        *(pad(v, (0, missing)) for v in (rows.y, rows.weight)),
        pad(rows.mills, (0, missing)),
    )


def step_over_rows(theta, source: Source, schedule: Schedule):
    """As `steps.step_function`, with gradients added up over processes."""
    state = start_adam(theta, schedule, source.steps)
    layers, head = split(theta, SIZES)
    room = workspace(next(iter(source.batches(0))).x, layers)
    gradient = torch.empty_like(theta)
    layer_gradients, head_gradient = split(gradient, SIZES)

    @torch.no_grad()
    def step(rows):
        output = forward(rows.x, layers, room)
        value, by_output, by_head = TWO_STEP.value_and_slopes(output, head, rows)
        backward(rows.x, layers, by_output, layer_gradients, room)
        head_gradient.copy_(by_head)
        dist.all_reduce(gradient)
        adam_step(theta, gradient.add_(theta, alpha=schedule.weight_decay), state)
        return value

    return step


def worker(process: int, of: int, how: str, options, port: int, answers) -> None:
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo", rank=process, world_size=of)
    cell, schedule = draw(options.rows), Schedule(options.epochs, 1e-2)
    members = range(MEMBERS)
    if how == "members":
        members = range(MEMBERS * process // of, MEMBERS * (process + 1) // of)
    mine = (process, of) if how == "rows" else (0, 1)
    source = source_of(cell, len(members), options.batch, *mine)
    theta = start_of(members)
    if how == "rows":
        step = step_over_rows(theta, source, schedule)
    else:
        state = start_adam(theta, schedule, source.steps)
        step = step_function(theta, source, schedule, state, sizes=SIZES, loss=TWO_STEP)
    dist.barrier()
    started, cpu = time.perf_counter(), time.process_time()
    for epoch in range(options.epochs):
        for rows in source.batches(epoch):
            step(rows)
    cpu = time.process_time() - cpu
    dist.barrier()
    answers.put((process, time.perf_counter() - started, cpu, theta.numpy()))
    dist.destroy_process_group()


def seconds(how: str, of: int, options) -> tuple[float, float, np.ndarray]:
    """Of the training alone, by the clock and on the processor of the busier process, and the
    trained members."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    answers = processes.get_context("spawn").Queue()
    context = processes.spawn(worker, (of, how, options, port, answers), of, join=False)
    found = sorted((answers.get() for _ in range(of)), key=lambda answer: answer[0])
    context.join()
    theta = [answer[3] for answer in found]
    clock, cpu = (max(answer[j] for answer in found) for j in (1, 2))
    return clock, cpu, np.concatenate(theta) if how == "members" else theta[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    contenders = {"one process": ("members", 1), "members": ("members", 2), "rows": ("rows", 2)}
    clock: dict[str, list[float]] = {name: [] for name in contenders}
    cpu: dict[str, list[float]] = {name: [] for name in contenders}
    trained = {}
    for _ in range(options.turns):
        for name, (how, of) in contenders.items():
            *taken, trained[name] = seconds(how, of, options)
            clock[name].append(taken[0])
            cpu[name].append(taken[1])
    for name in ("members", "rows"):
        np.testing.assert_allclose(trained[name], trained["one process"], atol=2e-2)
    best, busy = ({n: min(taken) for n, taken in times.items()} for times in (clock, cpu))
    print(
        json.dumps(
            {
                "rows": options.rows,
                "batch": options.batch,
                "members": MEMBERS,
                "epochs": options.epochs,
                "seconds": {name: round(taken, 3) for name, taken in best.items()},
                "cpu_seconds": {name: round(taken, 3) for name, taken in busy.items()},
                "speedup": {n: round(best["one process"] / best[n], 2) for n in best},
                "cpu_speedup": {n: round(busy["one process"] / busy[n], 2) for n in busy},
                "identical": bool((trained["members"] == trained["one process"]).all()),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
