"""`make check`: re-run what is cheap and compare it with the committed rows."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict
from pathlib import Path

from heckesel.experiments import EXPERIMENTS, load
from heckesel.experiments.results import read_rows

# Another BLAS, or another order of summation, moves converged estimates by about 1e-11.
RELATIVE, ABSOLUTE = 1e-6, 1e-8


def differences(name: str, folder: Path) -> list[str]:
    """What a fresh run of an experiment says differently from its committed file."""
    module = load(name)
    path = folder / f"{module.__name__.rpartition('.')[2]}.json"
    committed = {tuple(row["cell"].values()): row for row in read_rows(path)}
    found = []
    wanted = {tuple(asdict(cell).values()) for cell in module.cells()}
    if wanted != set(committed):
        found.append(f"{path}: {len(committed)} rows committed, {len(wanted)} cells defined")
    for cell in module.cells():
        key = tuple(asdict(cell).values())
        before, after = committed.get(key, {}).get("metrics"), module.run_cell(cell)
        if before is None or set(before) != set(after):
            found.append(f"{path} {key}: no such row, or other metrics")
            continue
        for metric, value in after.items():
            if not math.isclose(before[metric], value, rel_tol=RELATIVE, abs_tol=ABSOLUTE):
                found.append(f"{path} {key} {metric}: committed {before[metric]}, now {value}")
    return found


def main() -> int:
    found = [line for name in EXPERIMENTS for line in differences(name, Path("results"))]
    for line in found:
        print(line)
    print(f"{len(EXPERIMENTS)} experiments checked, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
