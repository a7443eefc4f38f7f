"""The grids on a GPU: results to a folder, seconds and peak memory to standard output.

python -m benchmarks.gpu_grid OUT [experiment ...]
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch

from heckesel.experiments.runner import run


def main(out: str, *names: str) -> None:
    torch.cuda.reset_peak_memory_stats()
    summary = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    for name in names:
        started = time.perf_counter()
        rows = run(name, Path(out), device="cuda", report=lambda line: print(line, flush=True))
        summary[name] = {
            "rows": len(rows),
            "failed": sum("error" in row for row in rows),
            "seconds": round(time.perf_counter() - started, 2),
            "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 3),
        }
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
