"""`make check`: are the committed results whole, can they be had again, and is what was made from
them up to date?
"""

from __future__ import annotations

import math
import sys
from dataclasses import asdict
from pathlib import Path

from heckesel.errors import DataError
from reproduction import EXPERIMENTS, load
from reproduction.pages.published import stale
from reproduction.result_files import cell_key, read_rows, results_path

RESULTS, PAPER = Path("results"), Path("paper")
# Run again in full: another BLAS, or order of summation, moves converged estimates by 1e-11.
RUN_AGAIN = ("e0", "e4")
RELATIVE, ABSOLUTE = 1e-6, 1e-8
# Networks trained on another device differ in float32 from the first epoch on; their metrics agree.
_SPLINE = {"rho": 0.9, "alpha": 0.0, "seed": 0, "method": "spline_joint", "prior": "uniform"}
SPOT_CHECKS: dict[str, list[dict]] = {
    "e1": [
        {"rho": 0.9, "alpha": 1.0, "seed": 0, "method": method}
        for method in ("heckman_two_step", "heckman_joint", "deep_ensemble")
    ],
    "e2": [{"dataset": "wine", "rho": 0.8, "seed": 0, "method": "heckman_two_step"}],
    # splines: the networks of the same experiments take a minute a cell here
    "x1": [_SPLINE | {"draw": draw} for draw in ("curve", "interactions")],
    "x2": [_SPLINE | {"errors": "chi2"}],
}
TOLERANCES = {"coverage90": 0.02, "coverage90_against": 0.02, "ece": 0.01, "ece_against": 0.01}


def differences(name: str, folder: Path) -> list[str]:
    """What is wrong with the committed file: rows missing, failed, or different when run again."""
    module = load(name)
    path = results_path(name, folder)
    if not path.exists():
        return [f"{path} is missing"]
    committed = {cell_key(row["cell"]): row for row in read_rows(path)}
    try:
        grid = module.cells()
    except DataError as reason:  # benchmark panels that do not ship
        print(f"{path}: not compared with its grid, since {reason}")
        return []
    found = [f"{path} {key}: {row['error']}" for key, row in committed.items() if "error" in row]
    if {cell_key(asdict(cell)) for cell in grid} != set(committed):
        found.append(f"{path}: {len(committed)} rows committed, {len(grid)} cells defined")
    again = grid if name in RUN_AGAIN else [module.Cell(**c) for c in SPOT_CHECKS.get(name, [])]
    compare = _compare_exactly if name in RUN_AGAIN else _compare_metrics
    for cell in again:
        before = committed.get(cell_key(asdict(cell)), {}).get("metrics", {})
        (after,) = module.run_chunk([cell], "cpu")
        found += [f"{path} {cell_key(asdict(cell))} {line}" for line in compare(before, after)]
    return found


def _compare_exactly(before: dict, after: dict) -> list[str]:
    if set(before) != set(after):
        return [f"has metrics {sorted(before)}, now {sorted(after)}"]
    return [
        f"{metric}: committed {before[metric]}, now {value}"
        for metric, value in after.items()
        if not math.isclose(before[metric], value, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    ]


def _compare_metrics(before: dict, after: dict) -> list[str]:
    return [
        f"{metric}: committed {before.get(metric)}, now {after[metric]}"
        for metric, tolerance in TOLERANCES.items()
        if not abs(before.get(metric, math.nan) - after[metric]) <= tolerance
    ]


def main() -> int:
    try:
        found = [line for name in EXPERIMENTS for line in differences(name, RESULTS)]
        found += stale(RESULTS, PAPER)
    except DataError as reason:  # a file that is damaged or missing
        print(reason)
        return 1
    for line in found:
        print(line)
    again = sum(map(len, SPOT_CHECKS.values()))
    print(f"{len(EXPERIMENTS)} experiments, {again} cells trained again: {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
