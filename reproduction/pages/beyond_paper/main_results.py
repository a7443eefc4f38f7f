"""The table of main results that opens `paper/ours.md` and is shown in the README."""

from functools import partial
from itertools import product

import numpy as np

from heckesel.diagnostics.verdict import IDENTIFIED
from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper import x1_page, x3_page, x4_page, x5_page
from reproduction.pages.beyond_paper.targets import SHOWN, Requirement, target_row
from reproduction.pages.method_labels import LABELS
from reproduction.pages.rows import Results, over_seeds, read_paper
from reproduction.x4_calibrated import MORE, PAPER

HEADER = ("data", "method", "measure", "paper's two-step", "heckesel", "target", "result")
COVERAGE = "coverage of 90 % intervals"
DRAWS = {"": "8 draws", MORE: x4_page.DRAWS}  # those of A-E2, and others
NONE = np.array([])


def main_results(results: Results) -> str:
    return md.table(HEADER, lines(results))


def lines(results: Results) -> list[list[str]]:
    """At most eight rows, which include the failures."""
    cell, method = {"alpha": 0.0, "rho": 0.9}, "heckman_profile"
    paper = partial(over_seeds, read_paper().e1, method="heckman_two_step", **cell)
    ours = partial(x1_page.values, results, "curve", method, **cell)
    line = partial(_line, "simulated, no instrument, ρ = .9", method)
    covered = Requirement(ours("coverage90"), 0.87, 0.93)
    never = Requirement(x3_page.identified(results, instrument="none"), high=0.0)
    verdict = partial(_line, f"{len(never.values)} simulated datasets, no instrument", "identify")
    return [
        line(COVERAGE, paper("coverage90_against"), covered, "87–93 %", form=md.PERCENT),
        _regimes(results, ("strong", "weak"), "regimes with coverage of 85–96 %"),
        _regimes(results, ("none",), "regimes with coverage of at least 85 %"),
        *(_calibration(results, *each) for each in product(x4_page.PAPERS, DRAWS)),
        verdict(f"datasets called `{IDENTIFIED}`", NONE, never, "none", form=md.PERCENT),
    ]


def _regimes(results: Results, instruments: tuple[str, ...], bounds: str) -> list[str]:
    """The share of X5's regimes within their bounds."""
    covered = [x5_page.well_covered(results, x5_page.AUTO, each) for each in instruments]
    wanted = max(x5_page.WANTED[each][1] for each in instruments)
    share = Requirement(np.concatenate(covered), low=wanted)
    where = "with an instrument" if len(instruments) > 1 else x5_page.WHERE[instruments[0]]
    data = f"{len(share.values)} simulated regimes, {where}"
    return _line(
        data, x5_page.AUTO, bounds, NONE, share, f"at least {100 * wanted:.0f} %", form=md.PERCENT
    )


def _calibration(results: Results, dataset: str, draws: str) -> list[str]:
    ece = partial(x4_page.values, results, draws + dataset, metric="ece_against")
    if draws:
        theirs = ece("heckman_two_step" + PAPER)
    else:
        cell = {"dataset": dataset, "method": "heckman_two_step", "rho": 0.8}
        theirs = over_seeds(read_paper().e2, "ece_against", **cell)
    data, method = f"{x4_page.TABLES[dataset]}, {DRAWS[draws]}", "heckman_averaged"
    wanted = Requirement(ece(method), high=x4_page.ECE_LIMIT[dataset])
    target = f"at most {md.NUMBER.value(wanted.high)}"
    return _line(data, method, "calibration error", theirs, wanted, target)


def _line(
    data: str, method: str, measure: str, theirs, ours, target: str, *, form=md.NUMBER, **rule
) -> list[str]:
    verdict = target_row(target, method, ours, form=form, **rule).verdict
    means = md.mean_of(theirs, form), md.mean_of(ours.values, form)
    result = "no target" if verdict == SHOWN else verdict
    return [data, LABELS.get(method, method), measure, *means, target, result]
