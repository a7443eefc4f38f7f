"""The chapter X1: the whole likelihood over rho, on the paper's curve and on five columns."""

from functools import partial
from itertools import product

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
from reproduction.pages.method_labels import LABELS
from reproduction.pages.rows import Results
from reproduction.x1_profile import ALPHAS, OTHERS, PRIORS, PROFILE, RHOS, WEIGHING

DRAWS = {"curve": "the paper's curve", "interactions": "five columns with interactions"}
COLUMNS = (
    md.Column("coverage", "coverage90", md.mean_percent),
    md.Column("width", "width90"),
    md.Column("bias", "bias_f0"),
    md.Column("mean of \\|bias\\|", "bias_f0", md.mean_absolute),
    md.Column("ECE", "ece"),
    md.Column("central ECE", "ece_central"),
    md.Column("interval score", "interval_score90"),
    md.Column("main mode, smallest", "mode0_rho", lambda v: f"{v.min():.3f}" if len(v) else ""),
    md.Column("median", "mode0_rho", lambda v: f"{np.median(v):.3f}" if len(v) else ""),
)


def targets(results: Results) -> list[TargetRow]:
    kinds = {"curve": (_high_rho, _lower_rho, _no_selection, _with_instrument)}
    kinds["interactions"] = (_high_rho, _with_instrument)
    return [row for draw in DRAWS for find in kinds[draw] for row in find(results, draw, PROFILE)]


def parts(results: Results) -> dict[str, str]:
    tables = {f"{d}_{a:g}": _table(results, d, a) for d, a in product(DRAWS, ALPHAS)}
    return tables | {"wrong_sign": _wrong_sign(results)}


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


def _wrong_sign(results: Results) -> str:
    """The cost of a prior with the wrong sign, without and with the instrument."""
    sentences = []
    for alpha, where in ((0.0, "Without the instrument"), (1.0, "With it")):
        costs = []
        for method in WEIGHING:
            find = partial(_at(results, "curve", method, 0.9, alpha)[1], prior="negative")
            coverage, bias = md.mean_percent(find("coverage90")), md.mean_of(find("bias_f0"))
            costs.append(f"{LABELS[method]} coverage {coverage}, bias {bias}")
        says = f"{where}, a prior of the wrong sign at ρ = .9 on the paper's curve gives "
        sentences.append(f"{says}{'; '.join(costs)}.")
    return " ".join(sentences)


def _table(results: Results, draw: str, alpha: float) -> str:
    lines, choices = [], [*product(WEIGHING, PRIORS), *((method, "") for method in OTHERS)]
    for rho, (method, prior) in product(RHOS, choices):
        find = partial(_at(results, draw, method, rho, alpha)[1], prior=prior or "uniform")
        lines.append(([md.decimal(rho), LABELS[method], prior], find))
    return md.metric_table(("ρ", "method", "prior"), COLUMNS, lines)
