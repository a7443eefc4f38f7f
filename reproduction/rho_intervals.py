"""Intervals of rho from the instrument alone: coverage under the normal model and a flat prior.

`python -m reproduction.rho_intervals` draws 500 tables for every strength of the instrument and
rho, and writes `results/rho_intervals.json`: the share of 90 % intervals that cover rho, the mean
estimate and the mean standard error.
"""

import json
import sys
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import heckesel as hk
from heckesel.correction.prior import RHO
from heckesel.correction.rho import NORMAL

DRAWS, ROWS = 500, 1000
STRENGTHS = {"strong": 1.0, "moderate": 0.5}  # coefficient of z, standard normal, in the index
RHOS = (-0.5, 0.0, 0.5)
RESULTS = Path(__file__).parents[1] / "results" / "rho_intervals.json"


def draw(strength: float, rho: float, seed: int) -> tuple[float, float, bool]:
    """The estimate, its standard error, and whether the interval covers rho."""
    rng = np.random.default_rng([seed, round(100 * strength), round(100 * (rho + 1))])
    x, z, u, other = rng.normal(size=(4, ROWS))
    y = x + np.sin(x) + rho * u + np.sqrt(1 - rho**2) * other
    table = pd.DataFrame({"x": x, "z": z})
    y = np.where(0.5 * x + strength * z + u > 0, y, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = hk.HeckmanRegressor(["z"], learner="splines").fit(table, y)
    likelihood = np.exp(model.evidence_.log_likelihood(NORMAL))
    below = np.cumsum(likelihood) / likelihood.sum()
    low, high = np.interp([0.05, 0.95], below, RHO)
    return *model.evidence_.rho(NORMAL), bool(low <= rho <= high)


def main(workers: int = 2) -> None:
    rows = []
    for (name, strength), rho in product(STRENGTHS.items(), RHOS):
        jobs = (delayed(draw)(strength, rho, seed) for seed in range(DRAWS))
        found = np.array(Parallel(n_jobs=workers, batch_size=8)(jobs))
        estimate, error, covered = found.mean(axis=0).round(4)
        rows.append(
            {"instrument": name, "rho": rho, "draws": DRAWS, "covered": covered}
            | {"estimate": estimate, "standard_error": error}
            | {"standard_deviation": found[:, 0].std().round(4)}
        )
        print(rows[-1])
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
