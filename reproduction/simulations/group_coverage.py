"""Coverage of 90 % intervals if rows of one unit depend on one another, without and with `groups=`.

``python -m reproduction.simulations.group_coverage`` writes `results/group_coverage.json`: for
each method and number of units the mean coverage over its draws. Every unit has ROWS rows, and its
effect has 64 % of the variance of the errors (see `reproduction/draws/repeated_units.py`). The
predictive intervals are for NEW rows, each of a unit that is not in the fit. The slope is that of a
column that is constant in each unit. Only the linear model, which is correctly specified in its
draws, has one.
"""

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import heckesel as hk
from heckesel.atomic_files import write_atomically
from reproduction.draws.repeated_units import all_outcomes, repeated_units

PATH = Path(__file__).parents[2] / "results" / "group_coverage.json"
UNITS, ROWS, NEW, LEVEL = (50, 150), 8, 2000, 0.9
NEW_SEED = 1000  # of the rows that are predicted after the first draw
NETWORK = {"instruments": ["z"], "hidden": (32, 32), "progress": False, "device": "cpu"}
# Names of `--method` in the shell -> estimator and number of draws.
METHODS = {
    "linear-ml": (lambda: hk.HeckmanRegressor(["z"], method="ml"), 20),
    "two-step": (lambda: hk.DeepHeckmanRegressor(method="two-step", epochs=600, **NETWORK), 20),
    "auto": (lambda: hk.DeepHeckmanRegressor(epochs=300, **NETWORK), 10),
}


def run_draw(method: str, units: int, number: int) -> list[dict[str, float]]:
    """Coverage in the new rows, mean width, and whether the slope is covered, without and with
    groups."""
    curved = method != "linear-ml"
    new, outcome, _ = all_outcomes(NEW_SEED + number, units=NEW, rows=1, curved=curved)
    X, y = repeated_units(number, units=units, rows=ROWS, curved=curved)
    found = []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for groups in (None, X["id"]):
            model = METHODS[method][0]().fit(X.drop(columns="id"), y, groups=groups)
            low, high = model.predict_interval(new, LEVEL).T
            one = {"coverage": np.mean((low <= outcome) & (outcome <= high))}
            one["width"] = np.mean(high - low)
            if method == "linear-ml":
                slope = model.result_.to_frame(LEVEL).loc["outcome", "g0"]
                one["slope"] = float(slope.low <= 1 <= slope.high)
            found.append(one)
    return found


def run_setting(setting: tuple[str, int]) -> list[dict]:
    """One row without and one with groups."""
    method, units = setting
    count = METHODS[method][1]
    rows, draws = [], [run_draw(method, units, number) for number in range(count)]
    for place, grouped in enumerate((False, True)):
        own = [draw[place] for draw in draws]
        means = {name: round(float(np.mean([one[name] for one in own])), 4) for name in own[0]}
        error = np.std([one["coverage"] for one in own], ddof=1) / np.sqrt(count)
        means["coverage_error"] = round(float(error), 4)
        rows.append({"method": method, "units": units, "groups": grouped, "draws": count, **means})
    return rows


def main() -> None:
    """Compute the settings that are missing in the file, and write it after each of them."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    rows: list[dict] = json.loads(PATH.read_text()) if PATH.exists() else []
    settings = list(product(METHODS, UNITS))
    known = {(row["method"], row["units"]) for row in rows}
    with ProcessPoolExecutor(2) as pool:
        for found in pool.map(run_setting, [each for each in settings if each not in known]):
            rows += found
            rows.sort(
                key=lambda row: (settings.index((row["method"], row["units"])), row["groups"])
            )
            write_atomically(PATH, json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
