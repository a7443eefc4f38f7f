"""The default `HeckmanRegressor` against gradient boosting of the observed outcomes.

python -m benchmarks.default_fits                 the table
python -m benchmarks.default_fits default 2000 6  one fit of 2000 rows and 6 columns, as JSON

Boosting ignores selection; it says how long a common model of the same rows takes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.memory import peak_bytes

ROWS = ((2_000, 6), (20_000, 6), (200_000, 10), (1_000_000, 10))
CONTENDERS = ("boosting", "default")
WARM_UP = 1_000  # rows of a fit beforehand, which imports what is imported on first use


def draw(n: int, columns: int, seed: int = 0):
    """X (n, columns) with the instrument last, y with NaN where unselected; half are selected."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, columns - 1))
    z, u, v = rng.standard_normal((3, n))
    y = np.sin(1.5 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + 0.3 * x[:, 3] + 0.6 * u + 0.8 * v
    selected = 0.2 + 0.5 * x[:, 0] - 0.3 * x[:, 1] + 0.8 * z + u > 0
    return np.column_stack([x, z]), np.where(selected, y, np.nan)


def run_one(contender: str, n: int, columns: int) -> dict:
    """Fit once in this process; importing and drawing are not timed."""
    X, y = draw(n, columns)
    if contender == "default":
        import heckesel as hk

        model: Any = hk.HeckmanRegressor(instruments=[columns - 1])
    else:
        from sklearn.ensemble import HistGradientBoostingRegressor

        seen = ~np.isnan(y)
        X, y = X[seen, :-1], y[seen]
        model = HistGradientBoostingRegressor(random_state=0)
    model.fit(X[:WARM_UP], y[:WARM_UP])
    started, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return {
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu, 3),
        "peak_gb": round(peak_bytes() / 1e9, 2),
    }


def measure(sizes=ROWS, turns: int = 3) -> list[dict]:
    """The best of `turns` runs of each, taken in turns. The ratio is that of time on the processor:
    a busy neighbour stretches the clock."""

    def fresh(contender: str, *size: int) -> dict:
        command = [sys.executable, "-m", "benchmarks.default_fits", contender, *map(str, size)]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)

    found = []
    for n, columns in sizes:
        row: dict[str, Any] = {"rows": n, "columns": columns}
        runs = [{name: fresh(name, n, columns) for name in CONTENDERS} for _ in range(turns)]
        for name in CONTENDERS:
            row[name] = min((run[name] for run in runs), key=lambda run: run["cpu_seconds"])
        for name in CONTENDERS[1:]:
            row[name]["ratio"] = round(row[name]["cpu_seconds"] / row["boosting"]["cpu_seconds"], 1)
        found.append(row)
    return found


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(run_one(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
    else:
        print(json.dumps(measure(), indent=1))
