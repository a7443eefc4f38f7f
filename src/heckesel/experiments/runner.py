"""Runs the cells of an experiment and writes their rows."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path

from heckesel.experiments import load
from heckesel.experiments.results import write_atomically, write_results


def run(name: str, folder: Path, *, report=lambda line: None) -> list[dict]:
    """Run every cell of `name`, write `folder/<module>.json`, and return the rows.

    A cell that raises is recorded as failed, with the message, and the others go on.
    """
    module = load(name)
    stem = module.__name__.rpartition(".")[2]
    rows, times = [], []
    for cell in module.cells():
        started = time.perf_counter()
        row: dict = {"cell": asdict(cell)}
        try:
            row["metrics"] = module.run_cell(cell)
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - started
        rows.append(row)
        times.append({"cell": row["cell"], "seconds": round(seconds, 3)})
        report(_line(row, seconds))
    write_results(folder / f"{stem}.json", rows, device="cpu", data_hashes=module.DATA_HASHES)
    write_atomically(folder / f"{stem}.times.json", json.dumps(times, indent=1) + "\n")
    return rows


def failed(rows: list[dict]) -> list[dict]:
    """Rows that raised, or whose own criterion was not met."""
    return [row for row in rows if "error" in row or row["metrics"].get("passed") == 0.0]


def _line(row: dict, seconds: float) -> str:
    cell = " ".join(str(value) for value in row["cell"].values())
    if "error" in row:
        return f"{cell}: failed, {row['error']}"
    metrics = row["metrics"]
    shown = ", ".join(f"{key} {value:.6g}" for key, value in metrics.items() if key != "passed")
    verdict = {1.0: "passed", 0.0: "NOT PASSED"}.get(metrics.get("passed", -1.0), "done")
    return f"{cell}: {verdict} ({shown}) [{seconds:.1f} s]"
