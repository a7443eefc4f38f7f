"""The grids on a GPU: results to a folder, seconds and peak memory to standard output.

python -m benchmarks.gpu_grid OUT [experiment ...]
"""

from __future__ import annotations

import json
import sys
import time
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
    for name in names:
        started = time.perf_counter()
        rows = run(name, Path(out), device="cuda", report=lambda line: print(line, flush=True))
        stem = EXPERIMENTS[name].rpartition(".")[2]
        times = json.loads((Path(out) / f"{stem}.times.json").read_text())
        networks = [s for chunk, s in times.items() if not chunk.endswith(NOT_NETWORKS)]
        summary[name] = {
            "rows": len(rows),
            "network_seconds": round(sum(networks), 2),
            "failed": sum("error" in row for row in rows),
            "seconds": round(time.perf_counter() - started, 2),
            "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 3),
        }
    text = json.dumps(summary, indent=1)
    (Path(out) / "gpu_grid.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
