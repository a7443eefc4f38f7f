"""The grids on a GPU: results to a folder, seconds and peak memory to standard output.

python -m benchmarks.gpu_grid OUT [experiment ...]   one grid after the other
python -m benchmarks.gpu_grid OUT paper              all of the paper's side by side
python -m benchmarks.gpu_grid OUT x5 SEEDS [method ...]    X5 on some of its fresh seeds

SEEDS is their number, or "design" for the seeds that choices may be made on.
GRID_WORKERS=8 is the number of processes without a card: for the paper those that fit E0 and E4
(all cores but three unless told otherwise), else chunks at once, for grids whose metrics keep a
core busy. HECKESEL_DATA names the folder with the panels of E4.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from functools import partial
from multiprocessing import get_context
from pathlib import Path

STARTED = time.perf_counter()  # before torch, whose import is part of a run

import torch  # noqa: E402

from reproduction import EXPERIMENTS, load  # noqa: E402
from reproduction.result_files import results_path  # noqa: E402
from reproduction.runner import run  # noqa: E402

NOT_NETWORKS = ("gp", "oracle")
# Longest first. Experiments of classic fits have no use for a card.
PAPER = ("e1", "e4-timm", "e2", "warm-up", "e4", "e0")
CLASSIC = ("e0", "e4", "e4-timm")


def main(out: str, *names: str) -> None:
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    if names[:1] == ("x5",) and len(names) > 1:
        os.environ["X5_SEEDS"] = names[1]  # processes that are started here inherit it
        if len(names) > 2:
            os.environ["X5_METHODS"] = ",".join(names[2:])
        names = names[:1]
    summary = _paper(folder) if names == ("paper",) else _one_by_one(folder, names)
    text = json.dumps(summary, indent=1)
    (folder / "gpu_grid.json").write_text(text + "\n")
    print(text)


def _one_by_one(out: Path, names) -> dict:
    started = time.perf_counter()
    torch.ones(8, 8, device="cuda").matmul(torch.ones(8, 8, device="cuda")).sum().item()
    summary = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda_start_seconds": round(time.perf_counter() - started, 2),
    }
    workers = int(os.environ.get("GRID_WORKERS", "1"))
    with _processes(workers) if workers > 1 else nullcontext() as executor:
        for name in names:
            summary[name] = _grid(name, out, "cuda", executor)
            summary[name]["peak_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 3)
    return summary


def _paper(out: Path) -> dict:
    """All six experiments in one go. Every process that uses the card pays for starting CUDA, so
    networks share one and Gaussian processes another; classic fits have the other cores."""
    for name in PAPER:  # before anything runs: are the panels there?
        getattr(load(name), "check_data", lambda: None)()
    workers = int(os.environ.get("GRID_WORKERS", max((os.cpu_count() or 1) - 3, 1)))
    with ExitStack() as stack:
        pools = {
            "networks": stack.enter_context(_processes(1)),
            "gp": stack.enter_context(_processes(1)),
            "classic": stack.enter_context(_processes(workers)),
        }
        threads = stack.enter_context(ThreadPoolExecutor(len(PAPER)))
        executor = Routed(lambda name, chunk: pools[pool_of(name, chunk)])
        jobs = {
            name: threads.submit(_grid, name, out, "cpu" if name in CLASSIC else "cuda", executor)
            for name in PAPER
        }
        found = {name: jobs[name].result() for name in EXPERIMENTS if name in PAPER}
    return {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "torch": torch.__version__,
        "processes": 2 + workers,
        **found,
        "failed": sum(grid["failed"] for grid in found.values()),
        "seconds": round(time.perf_counter() - STARTED, 2),
    }


def pool_of(name: str, chunk: str) -> str:
    """The processes that a chunk is for."""
    if name in CLASSIC or chunk.endswith("oracle"):
        return "classic"
    return "gp" if chunk.endswith("gp") else "networks"


class Routed:
    """What the runner hands its chunks to: each goes to the pool that `choose` names for it."""

    def __init__(self, choose: Callable):
        self.choose = choose

    def submit(self, function, name, chunk, *options):
        return self.choose(name, chunk).submit(function, name, chunk, *options)


def _processes(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"))


def _grid(name: str, out: Path, device: str, executor) -> dict:
    """Seconds until the last row, and those of the chunks that train networks, added up."""
    started = time.perf_counter()
    report = partial(print, flush=True)
    rows = run(name, out, device=device, executor=executor, report=report)
    times = json.loads(results_path(name, out).with_suffix(".times.json").read_text())
    networks = [s for chunk, s in times.items() if not chunk.endswith(NOT_NETWORKS)]
    found = {
        "rows": len(rows),
        "failed": sum("error" in row for row in rows),
        "seconds": round(time.perf_counter() - started, 2),
    }
    return found if name in CLASSIC else found | {"network_seconds": round(sum(networks), 2)}


if __name__ == "__main__":
    main(*sys.argv[1:])
