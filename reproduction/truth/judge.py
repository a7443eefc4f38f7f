"""Judge any estimator on the truth table: `judge(estimate)` hides outcomes and compares.

An estimator is a function of four arguments. It never sees the hidden outcomes::

    def estimate(x, y, instruments, groups):
        ...
        return mean, low, high      # of the mean of y over the rows where y is NaN

x is a frame with covariates and instruments (strings are categories), y a Series with NaN where
unselected, instruments the names of the columns that affect selection only (empty where there are
none), and groups the labels of clusters or None. A function that has no interval returns the mean
alone. One that predicts rows returns `(mean, low, high, rows)` with `rows` (n_hidden, 2) intervals
of the hidden rows, NaN where it gives none.
"""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from reproduction.truth.sources import OUTCOMES, load_outcome

LEVEL = 0.9
HALF_WIDTH = 1.645  # standard errors in half a 90 % interval


def judge(estimate: Callable, outcomes: Iterable = tuple(OUTCOMES)) -> pd.DataFrame:
    """A frame with a row for each (source, outcome): truth, naive and the estimate with its errors.

    Intervals are those of 90 %. `naive` is the mean that least squares of the selected on the
    covariates predicts for the hidden; `error`, `naive_error`, `width` and `interval_score` are in
    standard deviations of the known outcome; `covers` allows for the error of the truth. A
    function that raises has NaN, and what it raised in `failed`.
    """
    rows = {key: judge_outcome(estimate, *key) for key in outcomes}
    index = pd.MultiIndex.from_tuples(rows, names=["source", "outcome"])
    return pd.DataFrame(list(rows.values()), index=index)


def judge_outcome(estimate: Callable, source: str, outcome: str) -> dict:
    """The row of one outcome, see `judge`."""
    known = load_outcome(source, outcome)
    truth, truth_se, sd = known.scale
    naive = least_squares(known.x, known.y, known.instruments, known.groups)
    row = {"n": len(known.y), "selected": 1 - known.hidden.mean(), "sd": sd}
    row |= {"truth": truth, "truth_se": truth_se, "naive": naive, "naive_error": naive - truth}
    row["naive_error"] /= sd
    try:
        found = estimate(known.x, known.y, known.instruments, known.groups)
    except Exception as error:  # of somebody else's program: recorded, and the others are run
        return row | {"failed": f"{type(error).__name__}: {error}"}
    found = found if isinstance(found, tuple) else (found,)
    mean, low, high, rows = found + (np.nan, np.nan, None)[len(found) - 1 :]
    row |= mean_row(mean, low, high, truth, truth_se, sd)
    if rows is not None:  # coverage and mean width of intervals of the hidden rows that have one
        rows = np.asarray(rows)[known.hidden_rows_known]
        given = np.isfinite(rows).all(axis=1)
        low, high = rows[given].T
        covered = (low <= known.truth[given]) & (known.truth[given] <= high)
        row |= {"rows_covered": covered.mean(), "rows_width": (high - low).mean() / sd}
    return row


def least_squares(x, y, instruments, groups) -> float:
    """The naive mean of the hidden: least squares of the selected on the covariates."""
    design, s = design_matrix(x.drop(columns=instruments)), y.notna().to_numpy()
    beta = np.linalg.lstsq(design[s], y[s].to_numpy())[0]
    return float((design[~s] @ beta).mean())


def design_matrix(x: pd.DataFrame) -> np.ndarray:
    """A constant, the numbers, and an indicator for each level of a category but the first."""
    numbers = pd.get_dummies(x, drop_first=True, dtype=float).to_numpy()
    return np.column_stack([np.ones(len(x)), numbers])


def mean_row(mean, low, high, truth, truth_se, sd) -> dict[str, float]:
    """An estimate of the mean of the hidden and its interval, compared with the truth."""
    found = {"estimate": mean, "error": (mean - truth) / sd}
    if np.isfinite([low, high]).all():
        side = mean - low if truth < mean else high - mean
        outside = max(low - truth, truth - high, 0.0)
        found |= {
            "low": low,
            "high": high,
            "width": (high - low) / sd,
            "interval_score": (high - low + 2 / (1 - LEVEL) * outside) / sd,
            "covers": abs(truth - mean) <= np.hypot(side, HALF_WIDTH * truth_se),
            "covers_exactly": outside == 0,
        }
    return {name: float(value) for name, value in found.items()}
