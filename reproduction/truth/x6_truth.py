r"""X6: are corrections accurate? Known means of hidden outcomes, estimated by every method.

The protocol, set before any source but the first was fitted; docs/truth_protocol.md has the reasons
and `sources.SOURCES` the columns. For each outcome, the values of the unselected are hidden.
Each method is fitted once to the remaining data and estimates the mean of the hidden outcomes with
a 90 % interval.

* naive: least squares on the selected, with heteroskedasticity-robust standard errors
* two-step: `hk.HeckmanRegressor(method="two-step")`, 5th and 95th percentile of 200 bootstrap
  replicates
* likelihood: `hk.HeckmanRegressor(method="ml")`, with the interval of the fit for its averages
* linear auto: `hk.HeckmanRegressor()`, likewise
* auto: `hk.DeepHeckmanRegressor()`, on at most 4,000 rows at random; its interval treats the errors
  of all units as perfectly correlated, which is conservative
* bounds: `hk.bounds` of the mean of all units, for outcomes in the range of the observed ones

If a method refuses the data, for example because an instrument predicts selection perfectly, this
is recorded. The truth has a sampling error, too: t = sd / sqrt(number known). An interval counts as
covering the truth if it covers it after each side d is widened to sqrt(d^2 + (1.645 t)^2).
"""

import warnings
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

import heckesel as hk
from heckesel.diagnostics.verdict import VERDICTS
from heckesel.errors import DataError, IdentificationWarning
from reproduction.runner import attempt
from reproduction.truth.sources import FILES, SOURCES, KnownOutcome, load_outcome
from reproduction.truth.unselected_mean import (
    Mean,
    bootstrap_mean,
    least_squares_mean,
    likelihood_mean,
    network_mean,
)

LEVEL = 0.9
HALF_WIDTH = 1.645  # standard errors in half a 90 % interval
REPLICATES = 200
MOST_ROWS = 4000  # of a fit with networks
DATA_HASHES = FILES
VALIDITY = ("rejected", "not rejected", "not rejected, with little power", "not tested")
chunk_of = "{0.source}: {0.outcome}".format


@dataclass(frozen=True)
class Cell:
    source: str
    outcome: str
    method: str


def cells(quick: bool = False) -> list[Cell]:
    methods = ["evidence", "bounds", *METHODS]
    found = [
        Cell(source, outcome, method)
        for source, of in SOURCES.items()
        if not (of.file or "").startswith("truth/")  # version 1 of the table
        for outcome in of.outcomes
        for method in methods
    ]
    shipped = "health insurance"
    return [c for c in found if c.source == shipped and c.method != "auto"] if quick else found


def check_data() -> None:
    """Raise an error that says how to get the tables if they are missing."""
    for of in SOURCES.values():
        of.read()


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", IdentificationWarning)  # verdicts are recorded
        return [attempt(run_cell, cell) for cell in cells]


def run_cell(cell: Cell) -> dict[str, float]:
    known = load_outcome(cell.source, cell.outcome)
    if cell.method == "evidence":
        return _evidence(known)
    if cell.method == "bounds":
        return _bounds(known)
    try:
        found = METHODS[cell.method](known)
    except DataError:
        return {"refused": 1.0}
    truth, error = known.truth.mean(), _standard_error(known.truth)
    row = {
        "estimate": found.value,
        "low": found.low,
        "high": found.high,
        "error": found.value - truth,
        "standardised_error": (found.value - truth) / known.truth.std(ddof=1),
        "covered": float(covers(found, truth, error)),
    }
    return row if np.isnan(found.rho) else row | {"rho": found.rho}


def covers(found: Mean, truth: float, standard_error: float) -> bool:
    """Whether the interval, widened by the standard error of the truth, contains the truth."""
    side = found.value - found.low if truth < found.value else found.high - found.value
    return abs(truth - found.value) <= np.hypot(side, HALF_WIDTH * standard_error)


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _evidence(known: KnownOutcome) -> dict[str, float]:
    row = {
        "n": float(len(known.y)),
        "n_hidden": float(known.hidden.sum()),
        "n_known": float(len(known.truth)),
        "truth": float(known.truth.mean()),
        "truth_se": _standard_error(known.truth),
        "truth_sd": float(known.truth.std(ddof=1)),
        "selected_mean": float(known.y.mean()),
    }
    names = list(known.instruments)
    try:
        found = hk.identify(known.x, known.y, instruments=names)
    except DataError:
        return row | {"refused": 1.0}
    row["verdict"] = float(VERDICTS.index(found.verdict))
    if names:
        tests = hk.test_instruments(known.x, known.y, instruments=names)
        row |= {"wald_p": float(found.evidence["p_value"])}
        row |= {"validity": float(VALIDITY.index(tests.verdict)), "validity_p": tests.p_value}
    return row


def _bounds(known: KnownOutcome) -> dict[str, float]:
    """Bounds of the mean of all units, and its true value."""
    low, high = hk.bounds(known.y, known.y.min(), known.y.max())
    share = known.hidden.mean()
    truth = float((1 - share) * known.y.mean() + share * known.truth.mean())
    covered = float(low <= truth <= high)
    return {"low": float(low), "high": float(high), "truth_all": truth, "covered": covered}


def _fit(known: KnownOutcome, method: str):
    model = hk.HeckmanRegressor(list(known.instruments), method=method)
    return model.fit(known.x, known.y).result_


def _auto(known: KnownOutcome) -> Mean:
    rows = np.arange(len(known.y))
    if len(rows) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_ROWS, replace=False))
    model = hk.DeepHeckmanRegressor(instruments=list(known.instruments), device="cpu")
    model.fit(known.x.iloc[rows], known.y.iloc[rows])
    return network_mean(model, known.x[known.hidden], LEVEL)


METHODS = {
    "naive": lambda known: least_squares_mean(known, LEVEL),
    "two-step": lambda known: bootstrap_mean(_fit(known, "two-step"), known, REPLICATES, LEVEL),
    "likelihood": lambda known: likelihood_mean(_fit(known, "ml"), known, LEVEL),
    "linear auto": lambda known: likelihood_mean(_fit(known, "auto"), known, LEVEL),
    "auto": _auto,
}
