"""X4 on the page: calibration on real tables, members on folds and sigma(x)."""

from __future__ import annotations

import numpy as np

from reproduction import x4_calibrated
from reproduction.pages.ours import x4_controls, x4_more
from reproduction.pages.ours.targets import (
    NUMBER,
    PERCENT,
    Form,
    Judged,
    Part,
    below,
    decimal,
    judge,
    mean_of,
    seeds,
    spread,
    table,
)
from reproduction.pages.rows import Results, Row, read_paper
from reproduction.pages.verdicts import LABELS
from reproduction.x4_calibrated import (
    METHODS,
    NETWORK,
    OPEN_METHODS,
    SETTLED_ON_TEST_ROWS,
)

TITLE = "X4: calibrated on real tables"
FIGURE = ("x4", "Calibration at ρ = .8 by table and method; hollow: the paper's settings.")
TABLES = {
    "california": "California housing",
    "wine": "wine quality",
    "college_gpa": "college grades",
    "school_tests": "school tests",
}
PAPERS = ("california", "wine")
CORRECTED = ("heckman_averaged", "heckman_two_step", "heckman_joint")
BASELINES = ("blind_two_head", "deep_ensemble", "weighted_ensemble")
ECE_LIMIT = {"california": 0.030, "wine": 0.049}
WITHIN = 0.01  # of the deep ensemble, where there is nothing to correct
REGIONS = {"against": "selected against", "mid": "middle", "well": "well sampled"}
INTRODUCTION = """\
Real outcomes, selection induced by the rule of A-E2, the same treatment (members on folds, noise \
σ(x) where rows left out ask for it) for every method, the baselines included. *Paper* marks the \
paper's settings on the same rows, from `results/e2_semireal.json`. *Averaged* is the mixture of \
the two-step and the *outcome likelihood*, in which selection may look at the outcome itself and \
errors may have any shape (in A-E2 it does, in A-E1 it sees what is unusual about it alone), and \
of splines where units left out do not tell them from the networks. \
*Open* leaves the weight decay and, in the joint likelihood, normal or t errors to the rows left \
out, too. NLL is Gaussian: of a normal with the predictive's mean and standard deviation."""


def cells() -> list:
    return x4_calibrated.cells()


def rows(results: Results) -> list[Row]:
    return list(results.x4)


def values(results: Results, dataset: str, method: str, metric: str, rho: float = 0.8):
    """Over seeds, with the usual number of members."""
    usual = {"members": NETWORK.n_members, "alpha": 1.0}
    return seeds(results.x4, metric, dataset=dataset, method=method, rho=rho, **usual)


def targets(results: Results) -> list[Judged]:
    found = []
    for dataset in PAPERS:
        for method in CORRECTED:
            found += _calibration(results, dataset, method)
            found += [
                _below_baselines(results, dataset, method, "nll"),
                _below_baselines(results, dataset, method, "crps"),
                _nothing_to_correct(results, dataset, method, "nll"),
                _nothing_to_correct(results, dataset, method, "ece"),
            ]
    found += [
        judge(
            f"{TABLES[dataset]}, ρ = .8: region-ECE (no threshold)",
            method,
            Part(values(results, dataset, method, "ece_against")),
        )
        for dataset in TABLES
        if dataset not in PAPERS
        for method in CORRECTED
    ]
    return found + _on_more_draws(results) + x4_controls.targets(results)


def _on_more_draws(results: Results) -> list[Judged]:
    found = []
    for dataset in PAPERS:
        for method in x4_more.CORRECTED:
            found += _calibration(results, dataset, method, more=True)
            found.append(x4_more.skyline_reached(results, dataset, TABLES[dataset], method))
    return found + [x4_more.not_worse(results, method) for method in x4_more.CORRECTED]


def text(results: Results) -> str:
    parts = [INTRODUCTION, _not_clean(), _against_skyline(results)]
    for dataset, name in TABLES.items():
        parts += [f"### {name[0].upper()}{name[1:]}", _table(results, dataset)]
    parts.append(x4_more.text(results, {dataset: TABLES[dataset] for dataset in PAPERS}))
    return "\n\n".join([*parts, x4_controls.text(results)])


def _calibration(
    results: Results, dataset: str, method: str, *, more: bool = False
) -> list[Judged]:
    """On the draws of A-E2, beside what the paper has there, or on `more`."""
    where, of, beside = f"{TABLES[dataset]}, ρ = .8", values, ""
    if more:
        where, of = f"{where}, {x4_more.DRAWS}", x4_more.values
    else:
        beside = _published(dataset)
    limit = ECE_LIMIT[dataset]
    ece = Part(of(results, dataset, method, "ece_against"), high=limit, beside=beside)
    found = [judge(f"{where}: region-ECE ≤ {decimal(limit)}", method, ece)]
    for region, low, high in (("against", 0.86, 0.94), ("well", 0.86, 0.96)):
        width = mean_of(of(results, dataset, method, f"width90_{region}"))
        coverage = of(results, dataset, method, f"coverage90_{region}")
        says = f"{where}: coverage {100 * low:.0f}–{100 * high:.0f} %, {REGIONS[region]}"
        part = Part(coverage, low, high, beside=f", width {width}")
        found.append(judge(says, method, part, form=PERCENT))
    return found


def _published(dataset: str) -> str:
    """The paper's own figures, from the rows it published."""
    paper = read_paper().e2
    return "".join(
        f", paper's {LABELS[method]} "
        + mean_of(seeds(paper, "ece_against", dataset=dataset, method=method, rho=0.8))
        for method in ("heckman_two_step", "skyline")
    )


def _below_baselines(results: Results, dataset: str, method: str, metric: str) -> Judged:
    """Against the best of the baselines, in the selected-against region and over all points."""
    parts = []
    for name, label in ((f"{metric}_against", "selected against"), (metric, "all points")):
        theirs = {m: values(results, dataset, m, name) for m in BASELINES}
        best = min(BASELINES, key=lambda m: theirs[m].mean() if len(theirs[m]) else -np.inf)
        ours = values(results, dataset, method, name)
        parts.append(below(ours, theirs[best], name=LABELS[best], label=label))
    says = f"{TABLES[dataset]}, ρ = .8: {metric.upper()} below that of every baseline on folds"
    return judge(says, method, *parts)


def _nothing_to_correct(results: Results, dataset: str, method: str, metric: str) -> Judged:
    """Ours less the deep ensemble's, seed by seed."""
    parts = []
    for name, label in ((f"{metric}_against", "selected against"), (metric, "all points")):
        ours, theirs = (
            values(results, dataset, m, name, rho=0.0) for m in (method, "deep_ensemble")
        )
        parts.append(Part(ours - theirs, high=WITHIN, label=label))
    says = (
        f"{TABLES[dataset]}, ρ = 0: {metric.upper()} at most {decimal(WITHIN)} above the deep "
        "ensemble's (difference)"
    )
    return judge(says, method, *parts)


def _not_clean() -> str:
    settled = "\n".join(f"- {choice};" for choice in SETTLED_ON_TEST_ROWS)
    return (
        "These choices were settled after looking at test rows of A-E2, so that California and "
        "wine are not clean tests:\n\n" + settled.removesuffix(";") + ".\n\nNothing was chosen on "
        "college grades and school tests: they are the clean tests."
    )


def _against_skyline(results: Results) -> str:
    """How far two methods stay from the same networks given every outcome."""
    shown, sentences = ("heckman_averaged", "heckman_two_step", "skyline"), []
    for dataset, name in TABLES.items():
        found = [values(results, dataset, m, "ece_against") for m in shown]
        if all(map(len, found)):
            first, second, sky = map(spread, found)
            sentences.append(f"{name} {first} and {second} against {sky}")
    return (
        "Selected-against ECE at ρ = .8, the average and the two-step against the skyline on the "
        "same folds, which sees every outcome: " + "; ".join(sentences) + "."
    )


HEADER = (
    "ρ",
    "method",
    "ECE",
    *(f"{word}{name}" for name in REGIONS.values() for word in ("coverage, ", "width, ")),
    "NLL",
    "CRPS",
    "NLL, all points",
    "CRPS, all points",
)
COLUMNS: tuple[tuple[str, Form], ...] = (
    ("ece_against", NUMBER),
    *(
        (f"{metric}_{region}", form)
        for region in REGIONS
        for metric, form in (("coverage90", PERCENT), ("width90", NUMBER))
    ),
    ("nll_against", NUMBER),
    ("crps_against", NUMBER),
    ("nll", NUMBER),
    ("crps", NUMBER),
)


def _table(results: Results, dataset: str) -> str:
    lines = []
    for rho in x4_calibrated.SEEDS:
        for method in (*METHODS, *(OPEN_METHODS if rho == 0.8 else ())):
            cell = {"dataset": dataset, "method": method, "rho": rho}
            usual = {"members": NETWORK.n_members, "alpha": 1.0}
            lines.append(_line(rho, LABELS[method], results.x4, **cell, **usual))
        for method in ("heckman_two_step", "skyline") if dataset in PAPERS else ():
            cell = {"dataset": dataset, "method": method, "rho": rho}
            lines.append(_line(rho, f"{LABELS[method]}, paper", results.e2, **cell))
    return table(HEADER, lines)


def _line(shown_rho: float, name: str, rows, **cell) -> list[str]:
    numbers = [mean_of(seeds(rows, metric, **cell), form) for metric, form in COLUMNS]
    return [decimal(shown_rho), name, *numbers]
