"""From how many rows on does a level of a category deserve a separate coefficient?

`python -m reproduction.simulations.rare_levels` writes `results/rare_levels.json`: the held-out
log-likelihood of fits with levels pooled below several numbers of selected or unselected rows.

`draws`: a category has 20 levels, the j-th of which is drawn with a probability proportional to
1/j. The effects of levels on outcome and on selection are normal with the given standard deviation,
in units of the errors. `tables`: three folds of those public tables in `tests/tables/cuts` of which
two thirds determine a fit.
"""

import json
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from heckesel import HeckmanRegressor
from heckesel.atomic_files import write_atomically
from heckesel.tables.preparation import learn_plan

RESULTS = Path(__file__).parents[2] / "results" / "rare_levels.json"
FEWEST = (3, 5, 10, 20, 40)
DEVIATIONS = (0.1, 0.3, 1.0)
N, HELD_OUT, LEVELS, DRAWS = 1000, 4000, 20, 20
SEED = 71_000
CUTS = Path(__file__).parents[2] / "tests" / "tables" / "cuts"
FOLDS = 3
# file -> outcome and instruments
TABLES = {
    "flights": ("arr_delay", ["origin"]),
    "nhefs": ("wt82_71", ["price71"]),
    "weather": ("wind_gust", ["pressure"]),
    "covid_testing": ("ct_result", ["drive_thru_ind"]),
    "bird_strikes": ("speed", ["time_of_day"]),
}


def draw(deviation: float, number: int) -> tuple[pd.DataFrame, np.ndarray]:
    """x, the instrument z and the category `place` of all rows, and the outcome."""
    rng = np.random.default_rng([SEED, number])
    rows = N + HELD_OUT
    share = 1 / np.arange(1, LEVELS + 1)
    place = rng.choice(LEVELS, rows, p=share / share.sum())
    on_y, on_s = deviation * rng.normal(size=(2, LEVELS))
    x, z, u, e = rng.normal(size=(4, rows))
    s = 0.3 * x + z + on_s[place] + u > 0
    y = np.where(s, x + on_y[place] + 0.5 * u + np.sqrt(0.75) * e, np.nan)
    names = np.array([f"p{j:02d}" for j in range(LEVELS)])
    return pd.DataFrame({"x": x, "z": z, "place": names[place]}), y


def held_out(X: pd.DataFrame, y: np.ndarray, instruments, out, fewest: int) -> float:
    """The log-likelihood of a row in `out` by a fit to the others.

    fewest : selected and unselected rows below which a level is pooled
    """
    model = HeckmanRegressor(instruments, method="ml", on_problem="fix")
    with warnings.catch_warnings(), mock.patch.object(learn_plan, "FEWEST_ROWS", fewest):
        warnings.simplefilter("ignore")
        model.fit(X[~out], y[~out])
        return model.log_likelihood(X[out], y[out])


def loss_of(datasets) -> dict:
    """Mean loss against the best number of rows, per 1,000 rows, and its standard error.

    datasets : of (X, y, instruments, held-out rows)
    """
    values = np.array([[held_out(*data, fewest) for fewest in FEWEST] for data in datasets])
    loss = 1000 * (values.max(axis=1, keepdims=True) - values)
    numbers = {"loss": loss.mean(axis=0), "error": loss.std(axis=0, ddof=1) / np.sqrt(len(loss))}
    return {
        name: dict(zip(map(str, FEWEST), each.round(2).tolist(), strict=True))
        for name, each in numbers.items()
    }


def of_draws(deviation: float) -> dict:
    out = np.arange(N + HELD_OUT) >= N
    datasets = [(*draw(deviation, number), ["z"], out) for number in range(DRAWS)]
    return {"deviation": deviation, "draws": DRAWS} | loss_of(datasets)


def of_table(name: str) -> dict:
    outcome, instruments = TABLES[name]
    frame = pd.read_csv(CUTS / f"{name}.csv")
    X, y = frame.drop(columns=outcome), frame[outcome].to_numpy(dtype=float)
    fold = np.random.default_rng(SEED).permutation(len(y)) % FOLDS
    datasets = [(X, y, instruments, fold == number) for number in range(FOLDS)]
    return {"table": name, "folds": FOLDS} | loss_of(datasets)


if __name__ == "__main__":
    with threadpool_limits(1, user_api="blas"):
        found = {
            "draws": [of_draws(deviation) for deviation in DEVIATIONS],
            "tables": [of_table(name) for name in TABLES],
        }
    write_atomically(RESULTS, json.dumps(found, indent=1) + "\n")
