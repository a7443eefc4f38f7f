"""Targets of X1: the whole likelihood over rho, on the paper's curve and on five columns."""

from math import inf

import numpy as np

from reproduction.pages.beyond_paper import targets as md
from reproduction.pages.rows import Results
from reproduction.x1_profile import OTHERS, PROFILE

DRAWS = {"curve": "the paper's curve", "interactions": "five columns with interactions"}
NAIVE = "deep_ensemble"
# Alpha, rho, the target in words, its metric and bounds; NAIVE is the mean of that method.
WITHOUT = (
    (0.0, 0.9, "coverage 87–93 %", "coverage90", 0.87, 0.93),
    (0.0, 0.9, "\\|bias\\| ≤ .05", "bias_f0", -0.05, 0.05),
    (0.0, 0.9, "main mode ≥ .85 at every seed", "mode0_rho", 0.85, inf),
)
WITH = (
    (1.0, 0.9, "region-ECE ≤ .028", "ece", 0, 0.028),
    (1.0, 0.9, "coverage 88–92 %", "coverage90", 0.88, 0.92),
)
TARGETS = (
    *(("curve", *target) for target in WITHOUT),
    ("curve", 0.0, 0.6, "coverage ≥ 85 %", "coverage90", 0.85, inf),
    ("curve", 0.0, 0.6, "interval score below the deep ensemble's", "interval_score90", 0, NAIVE),
    ("curve", 0.0, 0.3, "coverage ≥ 85 %", "coverage90", 0.85, inf),
    ("curve", 0.0, 0.3, "interval score below the deep ensemble's", "interval_score90", 0, NAIVE),
    ("curve", 0.0, 0.0, "coverage ≥ 87 %", "coverage90", 0.87, inf),
    *(("curve", *target) for target in WITH),
    *(("interactions", *target) for target in (*WITHOUT, *WITH)),
)


def targets(results: Results) -> list[md.TargetRow]:
    found = []
    for draw, alpha, rho, says, metric, low, high in TARGETS:
        cell = {"rho": rho, "alpha": alpha}
        where = f"{DRAWS[draw]}, α = {md.decimal(alpha)}, ρ = {md.decimal(rho)}: {says}"
        if high == NAIVE:
            theirs = values(results, draw, NAIVE, metric, **cell)
            high = theirs.mean() if len(theirs) else np.nan
        form = md.PERCENT if metric.startswith("coverage") else md.NUMBER
        statistic = np.min if metric.startswith("mode") else np.mean
        own = values(results, draw, PROFILE, metric, **cell)
        found.append(md.seeds_row(where, PROFILE, own, low, high, form, statistic))
    return found


def values(results: Results, draw: str, method: str, metric: str, **cell):
    """Over seeds, in the selected-against region, with a uniform prior unless `cell` has another;
    on the curve, values of the paper's methods come from A-E1."""
    name = metric if metric.startswith("mode") else f"{metric}_against"
    if draw == "curve" and method in OTHERS:
        return md.seed_values(results.e1, name, method=method, rho=cell["rho"], alpha=cell["alpha"])
    cell = {"prior": "uniform", "draw": draw, "method": method} | cell
    return md.seed_values(results.x1, name, **cell)
