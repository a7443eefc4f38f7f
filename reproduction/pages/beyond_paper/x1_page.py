"""Targets of X1: the whole likelihood over rho, on the paper's curve and on five columns."""

from functools import partial

import numpy as np

from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper.targets import (
    Requirement,
    TargetRow,
    bias_target,
    coverage_target,
    not_above,
    target_row,
)
from reproduction.pages.rows import Results
from reproduction.x1_profile import OTHERS, PROFILE

DRAWS = {"curve": "the paper's curve", "interactions": "five columns with interactions"}


def targets(results: Results) -> list[TargetRow]:
    kinds = {"curve": (_high_rho, _lower_rho, _no_selection, _with_instrument)}
    kinds["interactions"] = (_high_rho, _with_instrument)
    return [row for draw in DRAWS for find in kinds[draw] for row in find(results, draw, PROFILE)]


def values(results: Results, draw: str, method: str, metric: str, **cell):
    """Over seeds, in the selected-against region, with a uniform prior unless `cell` has another;
    on the curve, values of the paper's methods come from A-E1."""
    name = metric if metric.startswith("mode") else f"{metric}_against"
    if draw == "curve" and method in OTHERS:
        return md.seed_values(results.e1, name, method=method, rho=cell["rho"], alpha=cell["alpha"])
    cell = {"prior": "uniform", "draw": draw, "method": method} | cell
    return md.seed_values(results.x1, name, **cell)


def _at(results: Results, draw: str, method: str, rho: float, alpha: float = 0.0):
    """The setting of a target in words, and a function from a metric to its values there."""
    where = f"{DRAWS[draw]}, α = {md.decimal(alpha)}, ρ = {md.decimal(rho)}"
    return where, partial(values, results, draw, method, rho=rho, alpha=alpha)


def _high_rho(results: Results, draw: str, method: str) -> list[TargetRow]:
    where, find = _at(results, draw, method, 0.9)
    mode = find("mode0_rho")
    note = f", smallest {mode.min():.3f}" if len(mode) else ""
    says, wanted = f"{where}: main mode ≥ .85 at every seed", Requirement(mode, 0.85, note=note)
    return [
        coverage_target(where, method, find("coverage90"), 0.87, 0.93),
        bias_target(where, method, find("bias_f0"), 0.05),
        target_row(says, method, wanted, statistic=np.min),
    ]


def _lower_rho(results: Results, draw: str, method: str) -> list[TargetRow]:
    found = []
    for rho in (0.6, 0.3):
        where, find = _at(results, draw, method, rho)
        theirs = _at(results, draw, "deep_ensemble", rho)[1]("interval_score90")
        score = not_above(find("interval_score90"), theirs, name="deep ensemble")
        found += [
            coverage_target(where, method, find("coverage90"), 0.85),
            target_row(f"{where}: interval score below the deep ensemble's", method, score),
        ]
    return found


def _no_selection(results: Results, draw: str, method: str) -> list[TargetRow]:
    where, find = _at(results, draw, method, 0.0)
    return [coverage_target(where, method, find("coverage90"), 0.87)]


def _with_instrument(results: Results, draw: str, method: str) -> list[TargetRow]:
    where, find = _at(results, draw, method, 0.9, alpha=1.0)
    central = f", central ECE {md.mean_of(find('ece_central'))}"
    ece = Requirement(find("ece"), high=0.028, note=central)
    return [
        target_row(f"{where}: region-ECE ≤ .028", method, ece),
        coverage_target(where, method, find("coverage90"), 0.88, 0.92),
    ]
