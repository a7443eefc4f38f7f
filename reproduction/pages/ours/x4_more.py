"""X4 on 32 further draws: how far eight of them can be trusted, the paper's settings included."""

from __future__ import annotations

import numpy as np

from reproduction.e1_controlled import RHOS
from reproduction.pages.ours.targets import (
    NUMBER,
    PERCENT,
    Form,
    Judged,
    below,
    decimal,
    judge,
    mean_of,
    seeds,
    table,
)
from reproduction.pages.ours.x4_controls import not_above
from reproduction.pages.paired import standard_error
from reproduction.pages.rows import Results
from reproduction.pages.verdicts import LABELS
from reproduction.x4_calibrated import MORE, MORE_METHODS, MORE_SEEDS, PAPER

DRAWS = f"{len(MORE_SEEDS)} more draws"
CORRECTED = MORE_METHODS[:2]
INTRODUCTION = f"""\
### {DRAWS[0].upper()}{DRAWS[1:]}

On eight draws of wine the calibration error of a method has a standard error of about .01, and \
methods differ by less. These are {DRAWS} of the same tables and of A-E1 with the instrument, \
*paper* the paper's settings on the same draws; nothing was chosen on them. ± is the standard \
error of the mean here. The paper's skyline, which sees the hidden outcomes, moves with the draws, \
too."""


def values(results: Results, dataset: str, method: str, metric: str, rho: float = 0.8):
    return seeds(results.x4, metric, dataset=MORE + dataset, method=method, rho=rho)


def skyline_reached(results: Results, dataset: str, name: str, method: str) -> Judged:
    """The paper's skyline on the same draws, which knows every outcome."""
    ours, theirs = (values(results, dataset, m, "ece_against") for m in (method, "skyline" + PAPER))
    says = f"{name}, ρ = .8, {DRAWS}: mean region-ECE not above that of the paper's skyline"
    return judge(says, method, below(ours, theirs, name="skyline"))


def not_worse(results: Results, method: str) -> Judged:
    before, now = (
        [values(results, "controlled", one, "ece_against", rho) for rho in RHOS]
        for one in ("heckman_two_step" + PAPER, method)
    )
    pairs = dict(zip(RHOS, zip(before, now, strict=True), strict=True))
    return not_above(f"A-E1, α = 1, {DRAWS}", method, pairs)


def text(results: Results, names: dict[str, str]) -> str:
    """names : what the tables are called"""
    places = [(dataset, name, 0.8) for dataset, name in names.items()]
    places += [("controlled", "A-E1", rho) for rho in RHOS]
    lines = []
    for dataset, name, rho in places:
        for method in (*MORE_METHODS, *(one + PAPER for one in MORE_METHODS[1:])):
            ece = values(results, dataset, method, "ece_against", rho)
            if len(ece):
                shown = [
                    mean_of(values(results, dataset, method, metric, rho), form)
                    for metric, form in COLUMNS
                ]
                lines.append([name, decimal(rho), LABELS[method], _with_error(ece), *shown])
    return f"{INTRODUCTION}\n\n{table(HEADER, lines)}"


HEADER = (
    "data",
    "ρ",
    "method",
    "ECE",
    "coverage, selected against",
    "width, selected against",
    "coverage, well sampled",
    "width, well sampled",
    "NLL",
    "CRPS",
)
COLUMNS: tuple[tuple[str, Form], ...] = (
    ("coverage90_against", PERCENT),
    ("width90_against", NUMBER),
    ("coverage90_well", PERCENT),
    ("width90_well", NUMBER),
    ("nll_against", NUMBER),
    ("crps_against", NUMBER),
)


def _with_error(found: np.ndarray) -> str:
    return f"{NUMBER.value(float(found.mean()))} ± {NUMBER.value(standard_error(found))}"
