"""Networks from Parquet files against the same fit in memory: seconds a row and epoch, peak memory.

python -m benchmarks.streamed_networks                    1e6 rows in both, two-step
python -m benchmarks.streamed_networks --method joint
python -m benchmarks.streamed_networks --rows 1000000 4000000    files alone: how memory grows

Seconds are those of training, as the difference of a fit of many epochs and a fit of one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.memory import bytes_read, peak_bytes
from benchmarks.streamed import NAMES, size_of, write_files

ROWS, BATCH, MEMBERS, EPOCHS = 1_000_000, 4096, 5, 4


def run_one(contender: str, method: str, folder: str, epochs: int) -> dict:
    """Fit once in this process; importing and reading into memory are not timed."""
    import pandas as pd
    import torch

    from heckesel import DeepHeckmanRegressor

    torch.set_num_threads(1)
    model = DeepHeckmanRegressor(
        instruments=["z"],
        method=method,
        n_members=MEMBERS,
        batch_size=BATCH,
        epochs=epochs,
        warm_up=0,
        progress=False,
        device="cpu",
    )
    read: int | None = None
    if contender == "files":
        before, started, cpu = bytes_read(), time.perf_counter(), time.process_time()
        model.fit(folder, "y")
        read = None if before is None else (bytes_read() or 0) - before
    else:
        frame = pd.read_parquet(folder)
        started, cpu = time.perf_counter(), time.process_time()
        model.fit(frame[[*NAMES, "z"]], frame["y"])
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    found = {"seconds": seconds, "cpu_seconds": cpu, "peak_bytes": peak_bytes()}
    return found if read is None else found | {"passes": round(read / size_of(Path(folder)), 1)}


def _process(contender: str, method: str, folder: Path, epochs: int) -> dict:
    arguments = [contender, method, str(folder), str(epochs)]
    command = [sys.executable, "-m", "benchmarks.streamed_networks", "--one", *arguments]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def measure(
    rows: int = ROWS,
    contenders=("files", "memory"),
    method: str = "two-step",
    folder: str | None = None,
) -> dict:
    table = {}
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(folder or temporary) / f"rows-{rows}"
        if not place.exists():
            write_files(place, rows)
        for name in contenders:
            short, long = (_process(name, method, place, epochs) for epochs in (1, EPOCHS))
            work = rows * (EPOCHS - 1)
            table[name] = {
                "microseconds_a_row": round(1e6 * (long["seconds"] - short["seconds"]) / work, 3),
                "cpu_microseconds_a_row": round(
                    1e6 * (long["cpu_seconds"] - short["cpu_seconds"]) / work, 3
                ),
                "seconds_with_one_epoch": round(short["seconds"], 2),
                "peak_gb": round(long["peak_bytes"] / 1e9, 3),
            }
            if "passes" in long:
                table[name]["passes"] = long["passes"]
    options = {"batch": BATCH, "members": MEMBERS, "epochs": EPOCHS}
    return {"method": method, "rows": rows, **options, **table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[ROWS])
    parser.add_argument("--method", default="two-step")
    parser.add_argument("--folder")
    parser.add_argument("--one", nargs=4)
    options = parser.parse_args()
    if options.one:
        contender, method, folder, epochs = options.one
        print(json.dumps(run_one(contender, method, folder, int(epochs))))
        return
    contenders = ("files", "memory") if len(options.rows) == 1 else ("files",)
    for rows in options.rows:
        found = measure(rows, contenders, options.method, options.folder)
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
