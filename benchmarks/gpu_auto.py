"""`method="auto"` on a GPU and on the cores beside it: the first and the second fit of a process.

python -m benchmarks.gpu_auto OUT        on a GPU; OUT is benchmarks/gpu_auto.json

The first process of a machine compiles kernels and reads libraries from disk, which later ones find
in caches. So the processes are listed in the order in which they ran.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

PROCESSES = ((2_000, "cuda"), (2_000, "cuda"), (2_000, "cpu"), (100_000, "cuda"), (100_000, "cpu"))
FITS = 2
EFFECTS = np.array([0.5, 0.0, -0.5])  # of a category with four levels


def draw(n: int, seed: int = 0):
    """Four columns of the outcome, one of them a category, and an instrument."""
    from heckesel.data import selection_data

    rng = np.random.default_rng(seed)
    a, b, c, z, u, v = rng.standard_normal((6, n))
    levels = np.eye(4)[rng.integers(0, 4, n)][:, 1:]
    y = np.sin(1.5 * a) + 0.5 * b * c + levels @ EFFECTS + 0.6 * u + 0.8 * v
    selected = 0.2 + 0.5 * a - 0.3 * b + 0.8 * z + u > 0
    x = np.column_stack([a, b, c, levels])
    return selection_data(x, np.column_stack([x, z]), np.where(selected, y, np.nan))


def fits(n: int, device: str) -> list[float]:
    """Seconds of each fit, the start of CUDA included in the first one."""
    from heckesel.methods import heckman_auto

    data, seconds = draw(n), []
    for _ in range(FITS):
        started = time.perf_counter()
        heckman_auto.fit_many([data], seeds=[0], device=device)  # the result is on the CPU
        seconds.append(round(time.perf_counter() - started, 2))
    return seconds


def main(out: str) -> None:
    import torch

    found: dict = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    found |= {"cores": os.cpu_count(), "processes": []}
    for n, device in PROCESSES:
        command = [sys.executable, "-m", "benchmarks.gpu_auto", "--one", str(n), device]
        printed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        run = {"rows": n, "device": device, "seconds": json.loads(printed.splitlines()[-1])}
        found["processes"].append(run)
        print(run, flush=True)
        Path(out).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        print(json.dumps(fits(int(sys.argv[2]), sys.argv[3])))
    else:
        main(sys.argv[1])
