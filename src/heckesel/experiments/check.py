"""`make check`: re-run what is cheap and compare it with the committed rows."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from pathlib import Path

from heckesel.experiments import EXPERIMENTS, load
from heckesel.experiments.results import read_rows

# Another BLAS, or another order of summation, moves converged estimates by about 1e-11.
RELATIVE, ABSOLUTE = 1e-6, 1e-8
RUN_AGAIN = ("e0",)


def differences(name: str, folder: Path) -> list[str]:
    """What is wrong with the committed file: rows that are missing, failed, or (where the
    experiment is cheap enough to run again) different."""
    module = load(name)
    path = folder / f"{module.__name__.rpartition('.')[2]}.json"
    committed = {_key(row["cell"]): row for row in read_rows(path)}
    grid = module.cells()
    found = []
    if {_key(asdict(cell)) for cell in grid} != set(committed):
        found.append(f"{path}: {len(committed)} rows committed, {len(grid)} cells defined")
    found += [f"{path} {key}: {row['error']}" for key, row in committed.items() if "error" in row]
    if name in RUN_AGAIN:
        for cell, after in zip(grid, module.run_chunk(grid), strict=True):
            before = committed.get(_key(asdict(cell)), {}).get("metrics", {})
            found += [f"{path} {_key(asdict(cell))} {line}" for line in _compare(before, after)]
    return found


def _compare(before: dict, after: dict) -> list[str]:
    if set(before) != set(after):
        return [f"has metrics {sorted(before)}, now {sorted(after)}"]
    return [
        f"{metric}: committed {before[metric]}, now {value}"
        for metric, value in after.items()
        if not math.isclose(before[metric], value, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    ]


def _key(cell: dict) -> str:
    return json.dumps(cell, sort_keys=True)


def main() -> int:
    found = [line for name in EXPERIMENTS for line in differences(name, Path("results"))]
    for line in found:
        print(line)
    print(f"{len(EXPERIMENTS)} experiments checked, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
