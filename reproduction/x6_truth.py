r"""X6: are corrections accurate? Hidden outcomes whose truth is known, predicted by every method.

docs/truth.md defines sources and measures, `truth/sources.toml` the data. For each outcome, the
values of the unselected are hidden. Each method is fitted once to the remaining data. It estimates
the mean of the hidden outcomes with a 90 % interval, and the distribution of each of them.

Errors, widths and scores are in standard deviations of the known outcome. The truth has a standard
error, too: t = sd / sqrt(number known). `covers` is whether an interval contains the truth after
each side d is widened to sqrt(d^2 + (1.645 t)^2), `covers_exactly` whether it does as it is. A
method that refuses the data, or has no interval, has the row `refused`.
"""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import heckesel as hk
from heckesel.errors import DataError, IdentificationWarning
from heckesel.metrics import LEVELS, coverage, crps, reliability, transforms
from reproduction.runner import attempt
from reproduction.truth.judge import LEVEL, mean_row
from reproduction.truth.sources import FILES, OUTCOMES, SOURCES, KnownOutcome, load_outcome

MOST_ROWS = 4000  # of slow fits, and of the hidden rows whose distributions are scored
FEW_VALUES = 10  # outcomes with more have intervals of individual rows
UNCORRECTED = 1e-6  # scale of a prior on rho that allows no correction
DATA_HASHES = FILES
VERDICTS = ("supported by the instrument", "mostly prior", "contradicted", "nothing to correct")
METHODS = ("naive", "ensemble", "two-step", "ml", "profile", "prior", "auto", "default")
CLASSIFIERS = ("classifier", "naive classifier")  # for outcomes with two values
LONG = ("ensemble", "profile")
# Source -> the constants of the prior of rho that were chosen without this source.
PRIORS = Path(__file__).parent / "truth" / "held_out_priors.json"
HELD_OUT = json.loads(PRIORS.read_text(encoding="utf-8")) if PRIORS.exists() else {}
chunk_of = "{0.source}: {0.outcome}".format


@dataclass(frozen=True)
class Cell:
    source: str
    outcome: str
    method: str


def cells(quick: bool = False) -> list[Cell]:
    if quick:  # the table that ships
        return [Cell("health insurance", "disea", name) for name in ("truth", "naive", "auto")]
    return [Cell(*key, method) for key in OUTCOMES for method in ("truth", *METHODS, *CLASSIFIERS)]


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
    truth, truth_se, sd = known.scale
    values = np.union1d(known.y[~known.hidden], known.truth)
    n_values = len(values)
    if cell.method == "truth":
        row = {"n": len(known.y), "n_hidden": known.hidden.sum(), "n_known": len(known.truth)}
        row |= {"truth": truth, "truth_se": truth_se, "sd": sd, "selected_mean": known.y.mean()}
        return {name: float(value) for name, value in (row | {"n_values": n_values}).items()}
    classifier = cell.method in CLASSIFIERS
    if classifier and n_values != 2:
        return {"refused": 1.0}
    try:
        model, names = fit(cell.method, known)
    except DataError:
        return {"refused": 1.0}
    hidden = known.x.loc[known.hidden, names]
    average = model.average(hidden, "unselected", level=LEVEL)
    mean, low, high = average[["mean", "low", "high"]].iloc[0]
    if not np.isfinite([mean, low, high]).all():
        return {"refused": 1.0}
    row = mean_row(mean, low, high, truth, truth_se, sd)
    scored = some_rows(len(known.truth), seed=1)
    rows, y = hidden[known.hidden_rows_known].iloc[scored], known.truth[scored]
    if classifier:
        probability = model.predict_proba(rows, "unselected")[:, 1]
        row["brier"] = float(np.mean((probability - (y == values.max())) ** 2))
    else:
        row |= rows_row(model.predict_distribution(rows, "unselected"), y, sd, n_values)
    verdict = getattr(model, "identification_", None)
    if cell.method in ("auto", "default", "classifier") and verdict is not None:
        row["verdict"] = float(VERDICTS.index(verdict.verdict))
    return row


def some_rows(n: int, seed: int = 0) -> np.ndarray:
    """At most MOST_ROWS of n rows, at random."""
    if n <= MOST_ROWS:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, MOST_ROWS, replace=False))


def fit(method: str, known: KnownOutcome) -> tuple:
    """The fitted model and the columns that it uses."""
    instruments, names, y = known.instruments, list(known.x.columns), known.y
    if method == "prior":  # without instruments, nothing is learned about rho
        instruments, names = [], known.covariates
    kind, options = hk.HeckmanRegressor, {}
    if method == "ensemble":
        kind = hk.DeepEnsembleRegressor
        options["networks"] = hk.Networks(n_members=10, device="cpu")
    elif method in ("two-step", "ml", "profile"):
        options["method"] = method
    elif method in CLASSIFIERS:
        kind, y = hk.HeckmanClassifier, y.where(y.isna(), (y == y.max()).astype(float))
    if method.startswith("naive"):
        options["rho_prior"] = UNCORRECTED
    elif method in ("auto", "prior", "classifier"):
        options["rho_prior"] = held_out_prior(known.source)
    rows = some_rows(len(y)) if method in LONG else np.arange(len(y))
    groups = None if known.groups is None else known.groups[rows]
    model = kind(instruments, **options)
    return model.fit(known.x[names].iloc[rows], y.iloc[rows], groups=groups), names


def held_out_prior(source: str):
    """The prior of rho chosen without this source; the default where none was."""
    if source not in HELD_OUT:
        return None
    from heckesel.correction.prior import RhoPrior, spike_and_slab

    given = HELD_OUT[source]
    weight = spike_and_slab(given["spike"], given["slab"], given["slab_share"])
    return RhoPrior(weight, given["extrapolation"], given["normal_share"], "held out")


def rows_row(predicted, y: np.ndarray, sd: float, n_values: int) -> dict[str, float]:
    """The hidden rows one by one: CRPS, and coverage or the distance of the PIT from uniform."""
    row = {"crps": crps(y, predicted) / sd}
    if n_values > FEW_VALUES:
        row["rows_covered"] = coverage(y, predicted, level=LEVEL)
    else:
        row["pit_distance"] = np.abs(reliability(transforms(y, predicted)) - LEVELS).max()
    return {name: float(value) for name, value in row.items()}
