"""Targets of X4: calibration on real tables, and on A-E1 as a control."""

import numpy as np

from reproduction.e1_controlled import RHOS
from reproduction.pages.beyond_paper import targets as md
from reproduction.pages.rows import Results
from reproduction.problems import AUTO

TABLES = {"california": "California housing", "wine": "wine quality"}
DATA = TABLES | {"controlled": "A-E1, α = 1"}
# Data, rho, the target in words, its metric and bounds.
TARGETS = (
    ("california", 0.8, "region-ECE ≤ .035", "ece_against", 0, 0.035),
    ("wine", 0.8, "region-ECE ≤ .06", "ece_against", 0, 0.06),
    *(("controlled", at, "coverage 86–94 %", "coverage90_against", 0.86, 0.94) for at in RHOS),
    ("controlled", 0.9, "\\|bias\\| ≤ .06", "bias_f0_against", -0.06, 0.06),
)


def targets(results: Results) -> list[md.TargetRow]:
    found = []
    for data, rho, says, metric, low, high in TARGETS:
        form = md.PERCENT if metric.startswith("coverage") else md.NUMBER
        own = values(results, data, AUTO, metric, rho=rho)
        where = f"{DATA[data]}, ρ = {md.decimal(rho)}: {says}"
        found.append(md.seeds_row(where, AUTO, own, low, high, form))
    return found


def values(results: Results, dataset: str, method: str, metric: str, **cell) -> np.ndarray:
    """Over seeds, at rho = .8 with the instrument unless the cell says otherwise."""
    cell = {"rho": 0.8, "alpha": 1.0} | cell
    return md.seed_values(results.x4, metric, dataset=dataset, method=method, **cell)
