"""What a GPU and many cores make of the default fit, of networks and of A-E1, as one JSON.

python -m benchmarks.device OUT.json [--device cuda] [--rows 1000000] [--network-rows 20000]
                                     [--quick]

Every part runs in a process of its own, so that the first fit includes what starting CUDA costs.
`--quick` fits the small grid of A-E1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.default_fits import draw


def networks(rows: int, device: str) -> dict:
    """Seconds of a fit with `learner=hk.Networks()`, the first and the second of a process."""
    import heckesel as hk

    X, y = draw(rows, 6)
    found = []
    for _ in range(2):
        model = hk.HeckmanRegressor(instruments=[5], learner=hk.Networks(device=device))
        started = time.perf_counter()
        model.fit(X, y)
        found.append(round(time.perf_counter() - started, 2))
    return {"rows": rows, "first_s": found[0], "second_s": found[1], "losses": model.losses_}


def grid(device: str, quick: bool) -> dict:
    """Seconds of the methods of A-E1 that train networks, in the first and second run."""
    import torch

    from reproduction import load
    from reproduction.runner import run_chunk

    module = load("e1")
    chunks = [method for method in module.METHODS if method not in ("gp", "oracle")]
    found: dict = {"torch": torch.__version__, "cells_per_method": 0}
    if device.startswith("cuda"):
        found["device"] = torch.cuda.get_device_name()
    for turn in ("first", "second"):
        started, times, failed = time.perf_counter(), {}, 0
        for chunk in chunks:
            outcomes, times[chunk] = run_chunk("e1", chunk, quick, device)
            failed += sum(isinstance(outcome, Exception) for outcome in outcomes)
            found["cells_per_method"] = len(outcomes)
        found[turn] = {
            "seconds": round(time.perf_counter() - started, 2),
            "failed": failed,
            "methods": times,
        }
    if device.startswith("cuda"):
        found["peak_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 3)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--network-rows", type=int, default=20_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--part", choices=["networks", "e1"])
    options = parser.parse_args()
    if options.part == "networks":
        print(json.dumps(networks(options.network_rows, options.device)))
        return
    if options.part == "e1":
        print(json.dumps(grid(options.device, options.quick)))
        return

    def fresh(*command) -> dict:
        typed = [sys.executable, "-m", *map(str, command)]
        done = subprocess.run(typed, stdout=subprocess.PIPE, check=False)
        if done.returncode:  # the other parts are worth having
            return {"failed": done.returncode}
        return json.loads(done.stdout.splitlines()[-1])

    found: dict = {"cores": os.cpu_count()}
    part = ["benchmarks.device", options.out, "--device", options.device]
    if options.quick:
        part.append("--quick")
    parts = {
        "networks": [*part, "--part", "networks", "--network-rows", options.network_rows],
        "e1": [*part, "--part", "e1"],
        "default": ["benchmarks.default_fits", "default", options.rows, 10],
        "boosting": ["benchmarks.default_fits", "boosting", options.rows, 10],
    }
    for name, command in parts.items():
        found[name] = fresh(*command)
        print(name, json.dumps(found[name], indent=1), flush=True)
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
