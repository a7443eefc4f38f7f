"""The table of main results that opens `paper/ours.md` and is shown in the README."""

from __future__ import annotations

from math import inf

import numpy as np

from reproduction.pages.ours import x1, x2, x3, x4, x4_more
from reproduction.pages.ours.targets import (
    NUMBER,
    PERCENT,
    SHOWN,
    Form,
    Part,
    judge,
    mean_of,
    table,
)
from reproduction.pages.rows import Results, over_seeds, read_paper
from reproduction.pages.verdicts import LABELS
from reproduction.x4_calibrated import PAPER

HEADER = ("data", "method", "measure", "paper's two-step", "heckesel", "target", "result")
NO_INSTRUMENT = {"alpha": 0.0, "rho": 0.9}
COVERAGE = "coverage of 90 % intervals"
DRAWS = {"": "8 draws", "more": x4_more.DRAWS}  # those of A-E2, and others


def headline(results: Results) -> str:
    return table(HEADER, lines(results))


def lines(results: Results) -> list[list[str]]:
    """At most eight rows: the failures are among them."""
    return [
        *_no_instrument(results),
        _skewed_errors(results),
        *(_calibration(results, dataset, draws) for dataset in x4.PAPERS for draws in DRAWS),
        _wrong_verdicts(results),
    ]


def _no_instrument(results: Results) -> list[list[str]]:
    def both(metric: str) -> tuple[np.ndarray, np.ndarray]:
        paper = read_paper().e1
        theirs = over_seeds(paper, f"{metric}_against", method="heckman_two_step", **NO_INSTRUMENT)
        return theirs, x1.values(results, "curve", "heckman_profile", metric, **NO_INSTRUMENT)

    data, method = "simulated, no instrument, ρ = .9", "heckman_profile"
    within = {"low": 0.87, "high": 0.93, "form": PERCENT}
    return [
        _line(data, method, COVERAGE, *both("coverage90"), "87–93 %", **within),
        _line(data, method, "bias", *both("bias_f0"), "at most 0.050", high=0.05, size=True),
    ]


def _skewed_errors(results: Results) -> list[str]:
    cell = {"errors": "chi2", "alpha": 0.0, "rho": 0.0}
    found = x2.values(results, "heckman_profile", "coverage90", **cell)
    data = "the same, skewed errors, ρ = 0"
    return _line(data, "heckman_profile", COVERAGE, np.array([]), found, "none set", form=PERCENT)


def _calibration(results: Results, dataset: str, draws: str) -> list[str]:
    of = x4_more.values if draws else x4.values
    ours, limit = of(results, dataset, "heckman_averaged", "ece_against"), x4.ECE_LIMIT[dataset]
    if draws:
        theirs = of(results, dataset, "heckman_two_step" + PAPER, "ece_against")
    else:
        cell = {"dataset": dataset, "method": "heckman_two_step", "rho": 0.8}
        theirs = over_seeds(read_paper().e2, "ece_against", **cell)
    return _line(
        f"{x4.TABLES[dataset]}, {DRAWS[draws]}",
        "heckman_averaged",
        "calibration error",
        theirs,
        ours,
        f"at most {NUMBER.value(limit)}",
        high=limit,
    )


def _wrong_verdicts(results: Results) -> list[str]:
    found = x3.identified(results, instrument="none")
    data = f"{len(found)} simulated datasets, no instrument"
    measure = "verdict `identified by an instrument`"
    return _line(data, "identify", measure, np.array([]), found, "never", high=0.0, form=PERCENT)


def _line(
    data: str,
    method: str,
    measure: str,
    theirs: np.ndarray,
    ours: np.ndarray,
    target: str,
    *,
    low: float = -inf,
    high: float = inf,
    form: Form = NUMBER,
    size: bool = False,
) -> list[str]:
    verdict = judge(target, method, Part(ours, low, high), form=form, size=size).verdict
    means = mean_of(theirs, form), mean_of(ours, form)
    result = "no target" if verdict == SHOWN else verdict
    return [data, LABELS.get(method, method), measure, *means, target, result]
