"""How time and memory grow: classic fits with rows and columns, the default with rows. The exponent
is the slope of log time on log size.

python -m benchmarks.growth             the table
python -m benchmarks.growth ml 100000 10  one fit of that many rows and columns, as JSON
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np

from benchmarks import default_fits
from benchmarks.memory import peak_bytes

ROWS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
FULL = 100_000  # rows from which the exponent counts: fewer take a time that hardly grows
MOST_OF_THE_DEFAULT = 1_000_000  # rows, which take 3.3 GB
WIDTHS = (5, 10, 20, 40)
WIDTH_ROWS = 200_000


def draw(n: int, p: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    z, u, v = rng.standard_normal((3, n))
    y = 1 + x @ np.linspace(-0.5, 0.5, p) + 0.6 * u + 0.8 * v
    s = 0.2 + x @ np.linspace(0.3, -0.3, p) + z + u > 0
    return x, np.column_stack([x, z]), np.where(s, y, np.nan)


def run_one(method: str, n: int, p: int) -> dict:
    from heckesel.selection_model import heckman

    x, w, y = draw(n, p)
    started = time.perf_counter()
    heckman(y=y, x=x, w=w, method=method)
    seconds = time.perf_counter() - started
    return {"seconds": round(seconds, 3), "peak_gb": round(peak_bytes() / 1e9, 3)}


def exponent(sizes, rows) -> float:
    """Of sizes from FULL on, or of all if none is so large."""
    pairs = [(size, row["seconds"]) for size, row in zip(sizes, rows, strict=True)]
    large = [pair for pair in pairs if pair[0] >= FULL] or pairs
    return round(float(np.polyfit(*np.log(large).T, 1)[0]), 2)


def measure(rows=ROWS, widths=WIDTHS) -> dict:
    def fresh(method, n, p):
        command = [sys.executable, "-m", "benchmarks.growth", method, str(n), str(p)]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)

    few = [n for n in rows if n <= MOST_OF_THE_DEFAULT]
    runs: dict = {
        "ml, rows": (rows, [fresh("ml", n, 10) for n in rows]),
        "two-step, rows": (rows, [fresh("two-step", n, 10) for n in rows]),
        "default, rows": (few, [default_fits.fresh("default", n, 10) for n in few]),
        "boosting alone, rows": (few, [default_fits.fresh("boosting", n, 10) for n in few]),
        f"ml, columns, {WIDTH_ROWS} rows": (widths, [fresh("ml", WIDTH_ROWS, p) for p in widths]),
    }
    return {
        name: {"exponent": exponent(sizes, found), "sizes": list(sizes), "runs": found}
        for name, (sizes, found) in runs.items()
    }


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(run_one(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
    else:
        print(json.dumps(measure(), indent=1))
