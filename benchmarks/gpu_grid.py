"""The grids on a GPU: results to a folder, seconds and peak memory to standard output.

python -m benchmarks.gpu_grid OUT [experiment ...]
GRID_WORKERS=8 runs that many chunks at once, for grids whose metrics keep a core busy.
"""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch

from heckesel.experiments import EXPERIMENTS
from heckesel.experiments.runner import run

NOT_NETWORKS = ("gp", "oracle")


def main(out: str, *names: str) -> None:
    started = time.perf_counter()
    torch.ones(8, 8, device="cuda").matmul(torch.ones(8, 8, device="cuda")).sum().item()
    summary = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda_start_seconds": round(time.perf_counter() - started, 2),
    }
    workers = int(os.environ.get("GRID_WORKERS", "1"))
    spawn = get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=spawn) if workers > 1 else nullcontext()
    with pool as executor:
        for name in names:
            summary[name] = _grid(name, Path(out), executor)
    text = json.dumps(summary, indent=1)
    (Path(out) / "gpu_grid.json").write_text(text + "\n")
    print(text)


def _grid(name: str, out: Path, executor) -> dict:
    started = time.perf_counter()
    report = partial(print, flush=True)
    rows = run(name, out, device="cuda", executor=executor, report=report)
    stem = EXPERIMENTS[name].rpartition(".")[2]
    times = json.loads((out / f"{stem}.times.json").read_text())
    networks = [s for chunk, s in times.items() if not chunk.endswith(NOT_NETWORKS)]
    return {
        "rows": len(rows),
        "network_seconds": round(sum(networks), 2),
        "failed": sum("error" in row for row in rows),
        "seconds": round(time.perf_counter() - started, 2),
        "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 3),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
