"""Coverage of 90 % intervals of average outcomes, by estimator.

``python -m reproduction.simulations.average_coverage`` writes `results/average_coverage.json`. In
every draw a, b, z are standard normal, s = 1[0.5 a + z + u > 0] and y = 1 + a - 0.5 b + e, where e
and u are normal with correlation .6. The truth is the expected mean of the rows: of all, and of the
unselected given that they were not selected.
"""

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import heckesel as hk
from heckesel.atomic_files import write_atomically
from heckesel.numerics.normal import inverse_mills

PATH = Path(__file__).parents[2] / "results" / "average_coverage.json"
SEED, N, RHO, LEVEL = 11, 1000, 0.6, 0.9
NETWORK = {"instruments": ["z"], "hidden": (16,), "epochs": 600, "progress": False}
# Name -> estimator and the number of draws.
ESTIMATORS = {
    "linear, auto": (lambda: hk.HeckmanRegressor(["z"]), 200),
    "networks, two-step": (lambda: hk.DeepHeckmanRegressor(method="two-step", **NETWORK), 40),
    "profile": (
        lambda: hk.DeepHeckmanRegressor(method="profile", n_members=10, **NETWORK),
        40,
    ),
    "auto": (lambda: hk.DeepHeckmanRegressor(**NETWORK | {"epochs": 100}), 20),
    "networks without a correction": (lambda: hk.DeepEnsembleRegressor(**NETWORK), 40),
}
TARGETS = ("population", "unselected")


def draw(number: int):
    """X, y, which rows are unselected, and the expected outcome of each target."""
    rng = np.random.default_rng([SEED, number])
    a, b, z, u, v = rng.standard_normal((5, N))
    mean, index = 1 + a - 0.5 * b, 0.5 * a + z
    s = index + u > 0
    y = np.where(s, mean + RHO * u + np.sqrt(1 - RHO**2) * v, np.nan)
    X = pd.DataFrame({"a": a, "b": b, "z": z})
    return X, pd.Series(y), ~s, (mean, mean - RHO * inverse_mills(-index))


def run_draw(name: str, number: int) -> dict[str, tuple[float, float, bool]]:
    """Error, standard error and whether the interval covers, of each target."""
    X, y, hidden, means = draw(number)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model, found = ESTIMATORS[name][0]().fit(X, y), {}
        for target, mean in zip(TARGETS, means, strict=True):
            rows = hidden if target == "unselected" else np.ones(N, dtype=bool)
            truth, answer = mean[rows].mean(), model.average(X[rows], target, level=LEVEL).iloc[0]
            covers = bool(answer["low"] <= truth <= answer["high"])
            found[target] = (answer["mean"] - truth, answer["se"], covers)
    return found


def run_estimator(name: str, draws: int) -> list[dict]:
    """One row per target."""
    found, rows = [run_draw(name, number) for number in range(draws)], []
    for target in TARGETS:
        error, se, covers = (
            np.array(each) for each in zip(*(one[target] for one in found), strict=True)
        )
        numbers = {
            "coverage": covers.mean(),
            "bias": error.mean(),
            "sd": error.std(ddof=1),
            "se": np.sqrt((se**2).mean()),
        }
        rounded = {key: round(float(value), 4) for key, value in numbers.items()}
        rows.append({"estimator": name, "target": target, "draws": draws, **rounded})
    return rows


def main() -> None:
    """Compute the estimators that are missing in the file, and write it after each of them."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    rows: list[dict] = json.loads(PATH.read_text())["rows"] if PATH.exists() else []
    known = {row["estimator"] for row in rows}
    missing = {name: draws for name, (_, draws) in ESTIMATORS.items() if name not in known}
    order = list(ESTIMATORS)
    with ProcessPoolExecutor(2) as pool:
        for found in pool.map(run_estimator, missing, missing.values()):
            rows = sorted([*rows, *found], key=lambda row: order.index(row["estimator"]))
            content = {"seed": SEED, "n": N, "rho": RHO, "level": LEVEL, "rows": rows}
            write_atomically(PATH, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
