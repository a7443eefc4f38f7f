"""The default `HeckmanRegressor` against gradient boosting of the observed outcomes, alone and in
MAPIE, which adds intervals.

python -m benchmarks.default_fits                 the table
python -m benchmarks.default_fits default 2000 6  one fit of 2000 rows and 6 columns, as JSON

Both ignore selection; they say how long common models of the same rows take. MAPIE is not timed if
it is not installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.memory import peak_bytes

ROWS = ((2_000, 6), (20_000, 6), (200_000, 10), (1_000_000, 10))
CONTENDERS = ("boosting", "MAPIE", "default")
NETWORKS = ROWS[1]  # rows and columns of a fit with networks
WARM_UP = 1_000  # rows of a fit beforehand, which imports what is imported on first use


def draw(n: int, columns: int, seed: int = 0):
    """X (n, columns) with the instrument last, y with NaN where unselected; half are selected."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, columns - 1))
    z, u, v = rng.standard_normal((3, n))
    y = np.sin(1.5 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + 0.3 * x[:, 3] + 0.6 * u + 0.8 * v
    selected = 0.2 + 0.5 * x[:, 0] - 0.3 * x[:, 1] + 0.8 * z + u > 0
    return np.column_stack([x, z]), np.where(selected, y, np.nan)


def models(columns: int) -> dict[str, Any]:
    """What is fitted, by name: a function of X and y with NaN, given as few imports as needed."""

    def heckesel(learner="auto", n_jobs=None):
        def fit(X, y):
            import heckesel as hk

            own: Any = learner
            if learner == "networks":
                own = hk.Networks(device="cpu")
            elif learner == "forest":
                from sklearn.ensemble import RandomForestRegressor

                own = RandomForestRegressor(min_samples_leaf=20, random_state=0)
            model = hk.HeckmanRegressor(instruments=[columns - 1], learner=own, n_jobs=n_jobs)
            return model.fit(X, y)

        return fit

    def boosting(X, y):
        from sklearn.ensemble import HistGradientBoostingRegressor

        seen = ~np.isnan(y)
        return HistGradientBoostingRegressor(random_state=0).fit(X[seen, :-1], y[seen])

    def mapie(X, y):
        from mapie.regression import CrossConformalRegressor
        from sklearn.ensemble import HistGradientBoostingRegressor

        seen, model = ~np.isnan(y), HistGradientBoostingRegressor(random_state=0)
        return CrossConformalRegressor(model, cv=5).fit_conformalize(X[seen, :-1], y[seen])

    return {
        "boosting": boosting,
        "MAPIE": mapie,
        "default": heckesel(),
        "networks": heckesel("networks"),
        "one process": heckesel("forest"),
        "two processes, n_jobs=2": heckesel("forest", n_jobs=2),
        "two workers of Dask": heckesel("forest", n_jobs=2),
    }


def run_one(contender: str, n: int, columns: int) -> dict:
    """Fit once in this process; importing, drawing and starting a cluster are not timed."""
    X, y = draw(n, columns)
    fit = models(columns)[contender]
    with ExitStack() as stack:
        if contender.endswith("Dask"):
            import joblib
            from dask.distributed import Client

            options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
            stack.enter_context(Client(**options))
            stack.enter_context(joblib.parallel_config(backend="dask"))
        fit(X[:WARM_UP], y[:WARM_UP])
        started, cpu = time.perf_counter(), time.process_time()
        fit(X, y)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return {
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu, 3),
        "peak_gb": round(peak_bytes() / 1e9, 2),
    }


def fresh(contender: str, *size: int, **environment: str) -> dict:
    """One fit in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.default_fits", contender]
    printed = subprocess.run(
        [*command, *map(str, size)],
        stdout=subprocess.PIPE,
        check=True,
        env=os.environ | environment,
    ).stdout
    return json.loads(printed)


def best_of(turns: int, contenders, *size: int, by: str = "cpu_seconds", **environment: str):
    """The best run of each, taken in turns."""
    runs = [{each: fresh(each, *size, **environment) for each in contenders} for _ in range(turns)]
    return {each: min((run[each] for run in runs), key=lambda run: run[by]) for each in contenders}


def measure(sizes=ROWS, turns: int = 3) -> list[dict]:
    """Fits by number of rows, each on one thread. The ratio is that of time on the processor: a
    busy neighbour stretches the clock."""
    peers = [each for each in CONTENDERS if each != "MAPIE" or find_spec("mapie")]
    found = []
    for n, columns in sizes:
        some = [*peers, "networks"] if (n, columns) == NETWORKS else peers
        runs = best_of(turns, some, n, columns, OMP_NUM_THREADS="1")
        base = runs["boosting"]["cpu_seconds"]
        for run in runs.values():
            run["ratio"] = round(run["cpu_seconds"] / base, 1)
        found.append({"rows": n, "columns": columns, "runs": runs})
    return found


def workers(n: int = 20_000, columns: int = 6, turns: int = 2) -> dict:
    """Seconds of the clock with one worker and with two, each on one thread."""
    names = [name for name in models(columns) if name.startswith(("one", "two"))]
    runs = best_of(turns, names, n, columns, by="seconds", OMP_NUM_THREADS="1")
    return {"rows": n, "columns": columns, "runs": runs}


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(run_one(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
    else:
        print(json.dumps(measure(), indent=1))
