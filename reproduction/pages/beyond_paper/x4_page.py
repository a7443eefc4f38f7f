"""The chapter X4: calibration on real tables, and on A-E1 as a control."""

from functools import partial
from itertools import product

import numpy as np

from reproduction.e1_controlled import ALPHAS, RHOS
from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper.targets import (
    Requirement,
    TargetRow,
    bias_target,
    coverage_target,
    target_row,
)
from reproduction.pages.method_labels import LABELS
from reproduction.pages.rows import Results, read_paper
from reproduction.problems import AUTO
from reproduction.x4_calibrated import CONTROL_METHODS, METHODS, SEEDS

TABLES = {"california": "California housing", "wine": "wine quality"}
SHOWN = ("heckman_two_step", "heckman_joint")
ECE_LIMIT = {"california": 0.035, "wine": 0.060}
COVERAGE, BIAS = (0.86, 0.94), 0.06
COLUMNS = md.columns(
    {
        "ECE": "ece_against",
        "coverage, selected against": "coverage90_against",
        "width, selected against": "width90_against",
        "coverage, well sampled": "coverage90_well",
        "width, well sampled": "width90_well",
        "bias": "bias_f0_against",
        "CRPS, selected against": "crps_against",
        "CRPS, all points": "crps",
    }
)


def values(results: Results, dataset: str, method: str, metric: str, **cell) -> np.ndarray:
    """Over seeds, at rho = .8 with the instrument unless the cell says otherwise."""
    cell = {"rho": 0.8, "alpha": 1.0} | cell
    return md.seed_values(results.x4, metric, dataset=dataset, method=method, **cell)


def targets(results: Results) -> list[TargetRow]:
    found = []
    for dataset, method in product(TABLES, (AUTO, *SHOWN)):
        limit = ECE_LIMIT[dataset]
        bound = {"high": limit} if method == AUTO else {}
        ece = Requirement(values(results, dataset, method, "ece_against"), **bound)
        says = f"{TABLES[dataset]}, ρ = .8: region-ECE ≤ {md.decimal(limit)}"
        found.append(target_row(says, method, ece))
    for rho in RHOS:
        where = f"A-E1, α = 1, ρ = {md.decimal(rho)}"
        covered = values(results, "controlled", AUTO, "coverage90_against", rho=rho)
        found.append(coverage_target(where, AUTO, covered, *COVERAGE))
    bias = values(results, "controlled", AUTO, "bias_f0_against", rho=0.9)
    return [*found, bias_target("A-E1, α = 1, ρ = .9", AUTO, bias, BIAS)]


def parts(results: Results) -> dict[str, str]:
    return {dataset: _table(results, dataset) for dataset in TABLES} | {
        "published": ", ".join(f"{_published(dataset)} ({TABLES[dataset]})" for dataset in TABLES),
        "control": _control(results),
    }


def _published(dataset: str) -> str:
    """The mean of the paper's two-step, from its published rows."""
    cell = {"dataset": dataset, "method": "heckman_two_step", "rho": 0.8}
    return md.mean_of(md.seed_values(read_paper().e2, "ece_against", **cell))


def _table(results: Results, dataset: str) -> str:
    lines = [
        ([md.decimal(rho), LABELS[method]], partial(values, results, dataset, method, rho=rho))
        for rho, method in product(SEEDS, METHODS)
    ]
    return md.metric_table(("ρ", "method"), COLUMNS, lines)


def _control(results: Results) -> str:
    lines = []
    for alpha, rho, method in product(ALPHAS[::-1], RHOS, CONTROL_METHODS):
        find = partial(values, results, "controlled", method, rho=rho, alpha=alpha)
        lines.append(([md.decimal(alpha), md.decimal(rho), LABELS[method]], find))
    return md.metric_table(("α", "ρ", "method"), COLUMNS, lines)
