"""The table of main results that opens `paper/ours.md` and is shown in the README."""

from __future__ import annotations

from math import inf

import numpy as np

from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper import x1_page, x2_page, x3_page, x4_page
from reproduction.pages.beyond_paper.targets import SHOWN, Requirement, target_row
from reproduction.pages.method_labels import LABELS
from reproduction.pages.rows import Results, over_seeds, read_paper
from reproduction.x4_calibrated import MORE, PAPER

HEADER = ("data", "method", "measure", "paper's two-step", "heckesel", "target", "result")
NO_INSTRUMENT = {"alpha": 0.0, "rho": 0.9}
COVERAGE = "coverage of 90 % intervals"
DRAWS = {"": "8 draws", MORE: x4_page.DRAWS}  # those of A-E2, and others


def main_results(results: Results) -> str:
    return md.table(HEADER, lines(results))


def lines(results: Results) -> list[list[str]]:
    """At most eight rows: the failures are among them."""
    return [
        *_no_instrument(results),
        _skewed_errors(results),
        *(_calibration(results, dataset, draws) for dataset in x4_page.PAPERS for draws in DRAWS),
        _wrong_verdicts(results),
    ]


def _no_instrument(results: Results) -> list[list[str]]:
    def both(metric: str) -> tuple[np.ndarray, np.ndarray]:
        paper = read_paper().e1
        theirs = over_seeds(paper, f"{metric}_against", method="heckman_two_step", **NO_INSTRUMENT)
        return theirs, x1_page.values(results, "curve", "heckman_profile", metric, **NO_INSTRUMENT)

    data, method = "simulated, no instrument, ρ = .9", "heckman_profile"
    within = {"low": 0.87, "high": 0.93, "form": md.PERCENT}
    return [
        _line(data, method, COVERAGE, *both("coverage90"), "87–93 %", **within),
        _line(data, method, "bias", *both("bias_f0"), "at most 0.050", high=0.05, absolute=True),
    ]


def _skewed_errors(results: Results) -> list[str]:
    cell = {"errors": "chi2", "alpha": 0.0, "rho": 0.0}
    found = x2_page.values(results, "heckman_profile", "coverage90", **cell)
    data, paper = "the same, skewed errors, ρ = 0", np.array([])
    return _line(data, "heckman_profile", COVERAGE, paper, found, "none set", form=md.PERCENT)


def _calibration(results: Results, dataset: str, draws: str) -> list[str]:
    def ece(method: str) -> np.ndarray:
        return x4_page.values(results, draws + dataset, method, "ece_against")

    if draws:
        theirs = ece("heckman_two_step" + PAPER)
    else:
        cell = {"dataset": dataset, "method": "heckman_two_step", "rho": 0.8}
        theirs = over_seeds(read_paper().e2, "ece_against", **cell)
    limit = x4_page.ECE_LIMIT[dataset]
    return _line(
        f"{x4_page.TABLES[dataset]}, {DRAWS[draws]}",
        "heckman_averaged",
        "calibration error",
        theirs,
        ece("heckman_averaged"),
        f"at most {md.NUMBER.value(limit)}",
        high=limit,
    )


def _wrong_verdicts(results: Results) -> list[str]:
    found, paper = x3_page.identified(results, instrument="none"), np.array([])
    data = f"{len(found)} simulated datasets, no instrument"
    measure = "verdict `identified by an instrument`"
    return _line(data, "identify", measure, paper, found, "never", high=0.0, form=md.PERCENT)


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
    form: md.NumberFormat = md.NUMBER,
    absolute: bool = False,
) -> list[str]:
    requirement = Requirement(ours, low, high)
    verdict = target_row(target, method, requirement, form=form, absolute=absolute).verdict
    means = md.mean_of(theirs, form), md.mean_of(ours, form)
    result = "no target" if verdict == SHOWN else verdict
    return [data, LABELS.get(method, method), measure, *means, target, result]
