"""Classic fits of a million rows against statsmodels' Probit, each in a process of its own.

python -m benchmarks.classic            the table
python -m benchmarks.classic ml 1000000 one fit: seconds and peak memory as JSON
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np

from benchmarks.memory import peak_bytes

CONTENDERS = ("statsmodels_probit", "ml", "two-step")
ROWS = 1_000_000
COLUMNS = 10


def draw(n: int, seed: int = 0, rho: float = 0.6):
    """x (n, 10), w = [x, z], y with NaN where unselected; about half are selected."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, COLUMNS))
    z, u, v = rng.standard_normal((3, n))
    y = 1 + x @ np.linspace(-0.5, 0.5, COLUMNS) + rho * u + np.sqrt(1 - rho**2) * v
    s = 0.2 + x @ np.linspace(0.3, -0.3, COLUMNS) + z + u > 0
    return x, np.column_stack([x, z]), np.where(s, y, np.nan)


WARM_UP = 2000  # rows of a fit beforehand, which imports what is imported on first use


def run_one(contender: str, n: int) -> dict:
    """Fit once in this process; importing and drawing are not timed."""
    x, w, y = draw(n)
    few = slice(0, WARM_UP)
    if contender == "statsmodels_probit":
        import statsmodels.api as sm

        s, design = (~np.isnan(y)).astype(float), sm.add_constant(w)
        del x, w, y
        sm.Probit(s[few], design[few]).fit(disp=0)
        started = time.perf_counter()
        sm.Probit(s, design).fit(disp=0)
    else:
        from heckesel.selection_model import heckman

        heckman(y=y[few], x=x[few], w=w[few], method=contender)
        started = time.perf_counter()
        heckman(y=y, x=x, w=w, method=contender)
    seconds = time.perf_counter() - started
    peak = peak_bytes()
    return {"seconds": round(seconds, 3), "peak_bytes": peak}


def measure(n: int = ROWS, repeats: int = 3) -> dict:
    """Median seconds and largest peak of each contender; the repeats take turns, so that a
    busy moment of the machine hits all of them."""
    runs: dict[str, list[dict]] = {name: [] for name in CONTENDERS}
    for _ in range(repeats):
        for name in CONTENDERS:
            command = [sys.executable, "-m", "benchmarks.classic", name, str(n)]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            runs[name].append(json.loads(printed))
    rows = {
        name: {
            "seconds": float(np.median([one["seconds"] for one in done])),
            "peak_gb": round(max(one["peak_bytes"] for one in done) / 1e9, 3),
        }
        for name, done in runs.items()
    }
    base = rows["statsmodels_probit"]["seconds"]
    for row in rows.values():
        row["ratio"] = round(row["seconds"] / base, 2)
    return {"n": n, "columns": COLUMNS + 1, "contenders": rows}


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(run_one(sys.argv[1], int(sys.argv[2]))))
    else:
        print(json.dumps(measure(), indent=1))
