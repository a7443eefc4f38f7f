"""How long the paper's network grids take without a GPU: one cell of each shape times their count.

python -m benchmarks.two_cores

Cells of one method and table take the same time, one after another, so a single one of each is
measured and the grid's count does the rest. Writes benchmarks/two_cores.json.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path

from reproduction import load

OUT = Path(__file__).parent / "two_cores.json"


def shape(cell) -> str:
    return f"{getattr(cell, 'dataset', 'controlled')} {cell.method}"


def measure(name: str) -> dict:
    """Seconds of one cell of each shape, and of the whole grid by their counts."""
    module = load(name)
    grid = module.cells()
    counts, first = Counter(map(shape, grid)), {}
    for cell in grid:
        first.setdefault(shape(cell), cell)
    seconds = {}
    for key, cell in first.items():
        started = time.perf_counter()
        module.run_chunk([cell], "cpu")
        seconds[key] = round(time.perf_counter() - started, 2)
        print(f"{name} {key}: {seconds[key]} s, {counts[key]} cells", flush=True)
    total = sum(seconds[key] * count for key, count in counts.items())
    return {"one_cell": seconds, "cells": len(grid), "grid_minutes": round(total / 60, 1)}


def main() -> None:
    result = {"what": "one cell of each method and table measured, times the cells of the grid"}
    result["cores"] = os.cpu_count()
    for name in ("e1", "e2"):
        result[name] = measure(name)
        OUT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
