"""The default `HeckmanRegressor` against gradient boosting of the observed outcomes.

python -m benchmarks.default_fits               the table
python -m benchmarks.default_fits default 2000  one fit in this process, as JSON

Boosting ignores selection; it says how long a common model of the same rows takes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd

from benchmarks.memory import peak_bytes

ROWS = (2_000, 20_000, 200_000)
EFFECTS = np.array([0.0, 0.5, 0.0, -0.5])  # of the levels of the category


def draw(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Three numbers, a category with four levels and an instrument; about half are selected."""
    rng = np.random.default_rng(seed)
    a, b, c, z, u, v = rng.standard_normal((6, n))
    level = rng.integers(0, 4, n)
    y = np.sin(1.5 * a) + 0.5 * b * c + EFFECTS[level] + 0.6 * u + 0.8 * v
    selected = 0.2 + 0.5 * a - 0.3 * b + 0.8 * z + u > 0
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "group": np.array(list("pqrs"))[level], "z": z})
    return frame, np.where(selected, y, np.nan)


def run_one(contender: str, n: int) -> dict:
    """Fit once in this process; importing and drawing are not timed."""
    import heckesel as hk

    X, y = draw(n)
    if contender == "default":
        model = hk.HeckmanRegressor(instruments=["z"])
        started, cpu = time.perf_counter(), time.process_time()
        model.fit(X, y)
    else:
        from sklearn.ensemble import HistGradientBoostingRegressor

        seen = ~np.isnan(y)
        X = X.assign(group=X["group"].astype("category")).drop(columns="z")
        model = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0)
        started, cpu = time.perf_counter(), time.process_time()
        model.fit(X[seen], y[seen])
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),
        "peak_gb": round(peak_bytes() / 1e9, 2),
    }


def measure(rows=ROWS) -> list[dict]:
    def fresh(contender: str, n: int) -> dict:
        command = [sys.executable, "-m", "benchmarks.default_fits", contender, str(n)]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)

    found = []
    for n in rows:
        own, boosting = fresh("default", n), fresh("boosting", n)
        ratio = round(own["seconds"] / boosting["seconds"], 1)
        found.append({"rows": n, "ratio": ratio, "default": own, "boosting": boosting})
    return found


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(run_one(sys.argv[1], int(sys.argv[2]))))
    else:
        print(json.dumps(measure(), indent=1))
