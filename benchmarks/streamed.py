"""Fits from Parquet files against the same fit in memory: seconds per row and peak memory.

python -m benchmarks.streamed                        the table, 3e6 rows in both
python -m benchmarks.streamed --rows 50000000 FOLDER files of that many rows, written to FOLDER if
                                                     it does not exist, against 3e6 rows in memory
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.classic import COLUMNS, draw
from benchmarks.memory import bytes_read, peak_bytes

ROWS = 3_000_000
FILE_ROWS = 2_500_000
GROUP_ROWS = 500_000
NAMES = [f"x{j}" for j in range(COLUMNS)]
OUTCOME, SELECT = f"y ~ {' + '.join(NAMES)}", f"~ {' + '.join(NAMES)} + z"


def write_files(folder: Path, rows: int) -> None:
    """`rows` rows of 12 columns in files of FILE_ROWS; drawn group by group, never held."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    groups = -(-rows // GROUP_ROWS)
    per_file = FILE_ROWS // GROUP_ROWS
    for first in range(0, groups, per_file):
        writer = None
        for group in range(first, min(first + per_file, groups)):
            _, w, y = draw(min(GROUP_ROWS, rows - group * GROUP_ROWS), seed=group)
            columns = dict(zip([*NAMES, "z"], w.T, strict=True)) | {"y": y}
            table = pa.table({name: np.ascontiguousarray(c) for name, c in columns.items()})
            path = folder / f"part-{first // per_file:04d}.parquet"
            # random digits do not compress, and a dictionary of them is larger than they are
            options = {"compression": "none", "use_dictionary": False}
            writer = writer or pq.ParquetWriter(path, table.schema, **options)
            writer.write_table(table)
        assert writer is not None
        writer.close()


def size_of(folder: Path) -> int:
    """Bytes of all files."""
    return sum(file.stat().st_size for file in folder.iterdir())


def run_one(contender: str, method: str, folder: Path, rows: int) -> dict:
    """Fit once in this process; importing and reading into memory are not timed."""
    from heckesel.selection_model import heckman

    read: int | None = None
    if contender == "files":
        before, started, cpu = bytes_read(), time.perf_counter(), time.process_time()
        fit = heckman(OUTCOME, SELECT, folder, method=method)
        read = None if before is None else (bytes_read() or 0) - before
    else:
        x, w, y = draw(rows)
        started, cpu = time.perf_counter(), time.process_time()
        fit = heckman(y=y, x=x, w=w, method=method)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    peak = peak_bytes()
    found = {"rows": fit.n, "seconds": seconds, "cpu_seconds": cpu, "peak_bytes": peak}
    if read is not None:
        found["passes"] = round(read / size_of(folder), 1)
    return found


def measure(rows: int = ROWS, folder: str | None = None, turns: int = 2, method="ml") -> dict:
    """The faster of `turns` runs of each, taken in turns. Time on the processor is listed too: a
    busy neighbour stretches the clock, and not both alike."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(folder or temporary) / f"rows-{rows}"
        if not place.exists():
            write_files(place, rows)
        in_memory = min(rows, ROWS)
        runs: dict[str, list[dict]] = {"files": [], "memory": []}
        for _ in range(turns):
            for name, done in runs.items():
                arguments = [name, method, str(place), str(in_memory)]
                command = [sys.executable, "-m", "benchmarks.streamed", "--one", *arguments]
                printed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
                done.append(json.loads(printed))
    table = {}
    for name, done in runs.items():
        best = min(done, key=lambda run: run["seconds"])
        table[name] = {
            "rows": best["rows"],
            "seconds": round(best["seconds"], 2),
            "microseconds_a_row": round(1e6 * best["seconds"] / best["rows"], 3),
            "cpu_microseconds_a_row": round(
                1e6 * min(run["cpu_seconds"] for run in done) / best["rows"], 3
            ),
            "peak_gb": round(max(run["peak_bytes"] for run in done) / 1e9, 3),
        }
    if "passes" in runs["files"][0]:
        table["files"]["passes"] = runs["files"][0]["passes"]
    ratios = {
        f"ratio_of_{key}": round(table["files"][key] / table["memory"][key], 2)
        for key in ("microseconds_a_row", "cpu_microseconds_a_row")
    }
    return {"method": method, "columns": COLUMNS + 2, **ratios, "contenders": table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--method", default="ml")
    parser.add_argument("--one", nargs=4)
    options = parser.parse_args()
    if options.one:
        contender, method, folder, rows = options.one
        print(json.dumps(run_one(contender, method, Path(folder), int(rows))))
        return
    found = measure(options.rows, options.folder, options.turns, options.method)
    print(json.dumps(found | {"cores": os.cpu_count()}, indent=1))


if __name__ == "__main__":
    main()
