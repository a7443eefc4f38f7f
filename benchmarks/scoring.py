"""Scoring a Parquet file to a Parquet file by `heckesel predict`: seconds and peak memory.

python -m benchmarks.scoring            the table
python -m benchmarks.scoring FOLDER TARGET  one run in this process, as JSON
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from benchmarks.default_fits import draw
from benchmarks.memory import peak_bytes

ROWS, COLUMNS, FITTED = 1_000_000, 6, 20_000
TARGETS = ("population", "selected", "unselected")


def write(folder: Path, rows: int = ROWS) -> None:
    """A model fitted to few rows, and the rows to score."""
    import heckesel as hk

    names = [*(f"x{j}" for j in range(COLUMNS - 1)), "z"]
    pd.DataFrame(draw(rows, COLUMNS)[0], columns=names).to_parquet(folder / "rows.parquet")
    X, y = draw(FITTED, COLUMNS, seed=1)
    model = hk.HeckmanRegressor(instruments=["z"]).fit(pd.DataFrame(X, columns=names), y)
    model.save(folder / "model.heckesel")


def run_one(folder: Path, target: str) -> dict:
    """Seconds of the command, imports included."""
    started, cpu = time.perf_counter(), time.process_time()
    from heckesel.__main__ import main

    files = [folder / "model.heckesel", folder / "rows.parquet", "--out", folder / "out.parquet"]
    sys.argv = ["heckesel", "predict", *map(str, files), "--target", target, "--force", "--quiet"]
    try:
        main()
    except SystemExit as left:
        if left.code:
            raise
    return {
        "seconds": round(time.perf_counter() - started, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "peak_gb": round(peak_bytes() / 1e9, 2),
    }


def measure(rows: int = ROWS, turns: int = 2) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), rows)
        runs = {}
        for target in TARGETS:
            command = [sys.executable, "-m", "benchmarks.scoring", folder, target]
            printed = [
                subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
                for _ in range(turns)
            ]
            done = [json.loads(text.splitlines()[-1]) for text in printed]
            runs[target] = min(done, key=lambda run: run["seconds"])
    return {"rows": rows, "columns": COLUMNS, "runs": runs}


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(run_one(Path(sys.argv[1]), sys.argv[2])))
    else:
        print(json.dumps(measure(), indent=1))
