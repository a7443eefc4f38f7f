"""How an epoch of the two-step grows on a GPU, with cells of five members and with members.

python -m benchmarks.gpu_growth OUT         on a GPU; OUT is benchmarks/gpu_growth.json
python -m benchmarks.gpu_growth OUT cpu     a few small sizes without one

A card takes one cell in the time of several, until it is full. So the exponent is the slope of log
seconds on log size from there on.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch

from benchmarks.growth import exponent
from heckesel.methods.heckman_two_step import first_step
from heckesel.networks.losses.normal import TWO_STEP
from heckesel.networks.training.batches import Batch, data_scale_of
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import train_datasets
from reproduction.e1_controlled import POOL, Cell, problem

MEMBERS = 5
SIZES = {
    "cuda": {"cells": (1, 4, 16, 64, 256, 1024, 4096), "members": (5, 10, 20, 40, 80, 160, 320)},
    "cpu": {"cells": (1, 2, 4), "members": (5, 10)},
}
EPOCHS = {"cuda": 120, "cpu": 12}
# Epochs before the clock starts: first use of kernels and memory.
UNTIMED = {"cuda": 20, "cpu": 2}
# A card is taken for full where an epoch takes this many times as long as that of the smallest
# size: launching kernels is the smaller part then.
FULL = 2.0
DRAWS = 64  # cells are these over and over: what they hold does not change the time


def seconds_an_epoch(cells: int, members: int, device: str) -> float:
    """Of so many cells with so many networks each, trained as one batch."""
    rows = [_rows(seed) for seed in range(min(cells, DRAWS))]
    epochs, untimed = EPOCHS[device], UNTIMED[device]
    moments: list[float] = []

    def progress(epoch: int, _: int) -> None:
        # where memory makes several trainings of it, epochs are counted on
        if (epoch - 1) % epochs + 1 in (untimed, epochs):
            if device == "cuda":
                torch.cuda.synchronize()
            moments.append(time.perf_counter())

    train_datasets(
        [rows[place % DRAWS] for place in range(cells)],
        loss=TWO_STEP,
        seeds=range(cells),
        config=NetworkConfig(epochs=epochs, n_members=members),
        units=POOL,
        device=device,
        progress=progress,
    )
    return (sum(moments[1::2]) - sum(moments[::2])) / (epochs - untimed)


def _rows(seed: int) -> Batch:
    data = problem(Cell(0.9, 1.0, seed, "")).data
    return first_step(data, data_scale_of(data, standardise=False)).batch


def grown(sizes, device: str, shape) -> dict:
    """Seconds an epoch for each size as far as memory goes; shape : size -> (cells, members)"""
    runs = []
    for size in sizes:
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        try:
            seconds = seconds_an_epoch(*shape(size), device)
        except torch.cuda.OutOfMemoryError:
            break
        run = {"seconds": float(f"{seconds:.4g}")}
        if device == "cuda":
            run["peak_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 3)
        runs.append(run)
        print(*shape(size), run, flush=True)
    return from_where_full(sizes[: len(runs)], runs)


def from_where_full(sizes, runs) -> dict:
    """The runs with their exponent, over the sizes that fill the card; None for fewer than two."""
    full = [at for at, run in enumerate(runs) if run["seconds"] >= FULL * runs[0]["seconds"]]
    first = full[0] if full else len(runs)
    slope = exponent(sizes[first:], runs[first:]) if len(runs) - first > 1 else None
    from_size = sizes[first] if slope is not None else None
    return {"sizes": list(sizes), "runs": runs, "full_from": from_size, "exponent": slope}


def main(out: str, device: str = "cuda") -> None:
    sizes = SIZES[device]
    seconds_an_epoch(1, MEMBERS, device)  # libraries are read from disk, kernels used once
    found = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "torch": torch.__version__,
        "epochs": EPOCHS[device] - UNTIMED[device],
        "cells of 5 members": grown(sizes["cells"], device, lambda size: (size, MEMBERS)),
        "members of one cell": grown(sizes["members"], device, lambda size: (1, size)),
    }
    text = json.dumps(found, indent=1)
    Path(out).write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
