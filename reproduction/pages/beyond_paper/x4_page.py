"""Targets of X4: calibration on real tables, and on A-E1 as a control."""

import numpy as np

from reproduction.e1_controlled import RHOS
from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper.targets import (
    Requirement,
    TargetRow,
    bias_target,
    coverage_target,
    target_row,
)
from reproduction.pages.rows import Results
from reproduction.problems import AUTO

TABLES = {"california": "California housing", "wine": "wine quality"}
ECE_LIMIT = {"california": 0.035, "wine": 0.060}
COVERAGE, BIAS = (0.86, 0.94), 0.06


def values(results: Results, dataset: str, method: str, metric: str, **cell) -> np.ndarray:
    """Over seeds, at rho = .8 with the instrument unless the cell says otherwise."""
    cell = {"rho": 0.8, "alpha": 1.0} | cell
    return md.seed_values(results.x4, metric, dataset=dataset, method=method, **cell)


def targets(results: Results) -> list[TargetRow]:
    found = []
    for dataset, limit in ECE_LIMIT.items():
        ece = Requirement(values(results, dataset, AUTO, "ece_against"), high=limit)
        says = f"{TABLES[dataset]}, ρ = .8: region-ECE ≤ {md.decimal(limit)}"
        found.append(target_row(says, AUTO, ece))
    for rho in RHOS:
        where = f"A-E1, α = 1, ρ = {md.decimal(rho)}"
        covered = values(results, "controlled", AUTO, "coverage90_against", rho=rho)
        found.append(coverage_target(where, AUTO, covered, *COVERAGE))
    bias = values(results, "controlled", AUTO, "bias_f0_against", rho=0.9)
    return [*found, bias_target("A-E1, α = 1, ρ = .9", AUTO, bias, BIAS)]
