"""The rest of X4: how many members, A-E1 as a control, and errors with heavier tails."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

from reproduction.e1_controlled import ALPHAS, RHOS
from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper.targets import (
    Requirement,
    TargetRow,
    not_above,
    target_row,
)
from reproduction.pages.claims.claim import p_text
from reproduction.pages.method_labels import LABELS
from reproduction.pages.paired_tests import signed_rank
from reproduction.pages.rows import Results
from reproduction.x4_calibrated import CONTROL_METHODS, MEMBERS, NETWORK, TAIL_METHODS

SIZES = (("california", 0.8), ("wine", 0.8), ("controlled", 0.9))
SIZE_NAMES = {"california": "California housing", "wine": "wine quality", "controlled": "A-E1"}
TAIL_RHOS = (0.0, 0.6, 0.9)
LARGEST = max(MEMBERS)
CORRECTED = [method for method in CONTROL_METHODS if method != "deep_ensemble"]
PAPERS_OWN = {"heckman_averaged": "heckman_two_step"}  # what a method that is not the paper's was
percent_and_sd = partial(md.mean_and_sd, form=md.PERCENT)
MEMBER_COLUMNS = (
    md.Column("ECE", "ece_against", md.mean_and_sd),
    md.Column("coverage", "coverage90_against", percent_and_sd),
    md.Column("width", "width90_against", md.mean_and_sd),
    md.Column("NLL", "nll_against", md.mean_and_sd),
    md.Column("CRPS", "crps_against", md.mean_and_sd),
)


def _before_and_now(name: str, metric: str, show=md.mean_of) -> list[md.Column]:
    return [
        md.Column(f"{name} before", metric, lambda pair: show(pair[0])),
        md.Column("now", metric, lambda pair: show(pair[1])),
    ]


CONTROL_COLUMNS = (
    *_before_and_now("ECE", "ece_against"),
    md.Column("p", "ece_against", lambda pair: p_text(signed_rank(*pair))),
    *_before_and_now("coverage", "coverage90_against", md.mean_percent),
    *_before_and_now("width", "width90_against"),
    *_before_and_now("bias", "bias_f0_against"),
)
TAIL_COLUMNS = (
    md.Column("estimate of ρ", "rho_hat", md.mean_and_sd),
    md.Column("bias of the mean", "bias_f0_against", md.mean_and_sd),
    md.Column("coverage", "coverage90_against", percent_and_sd),
    md.Column("width", "width90_against", md.mean_and_sd),
    md.Column("NLL", "nll", md.mean_and_sd),
    md.Column("CRPS", "crps", md.mean_and_sd),
    md.Column("degrees of freedom", "df_hat", lambda df: md.mean_and_sd(df) if len(df) else ""),
)


def targets(results: Results) -> list[TargetRow]:
    control = [
        _not_worse(results, method, alpha) for alpha in reversed(ALPHAS) for method in CORRECTED
    ]
    return control + [row for rho in TAIL_RHOS for row in _tails(results, rho)]


def text(results: Results) -> str:
    return "\n\n".join(
        [
            "### How many members",
            _more_members(results),
            _members_table(results),
            "### A-E1 as a control",
            "The pools of A-E1, selected-against region. *Before* marks the paper's settings "
            "(`results/e1_controlled.json`; for the average those of the two-step), *now* members "
            "that hold out one fold each. p is that of the exact two-sided signed-rank test of ECE "
            "over seeds.",
            _furthest(results),
            _control_table(results),
            "### Errors with heavier tails",
            "The pools of A-E1 with t errors of five degrees of freedom and the instrument. NLL is "
            "that of a normal with the predictive's moments and ignores the shape of the "
            "predictive; CRPS and coverage depend on all of it. Bias, coverage and width are those "
            "of the selected-against region.",
            _tails_table(results),
        ]
    )


def control(results: Results, method: str, metric: str, rho: float, alpha: float):
    """A metric of A-E1 before and now, over the same seeds."""
    cell = {"rho": rho, "alpha": alpha}
    usual = {"dataset": "controlled", "members": NETWORK.n_members}
    return (
        md.seed_values(results.e1, metric, method=PAPERS_OWN.get(method, method), **cell),
        md.seed_values(results.x4, metric, method=method, **cell, **usual),
    )


def _not_worse(results: Results, method: str, alpha: float) -> TargetRow:
    pairs = {rho: control(results, method, "ece_against", rho, alpha) for rho in RHOS}
    return not_above_before(f"A-E1, α = {md.decimal(alpha)}", method, pairs)


def not_above_before(where: str, method: str, pairs: dict[float, tuple]) -> TargetRow:
    """pairs : by rho, the calibration error with the paper's settings and now"""
    parts = [
        not_above(now, before, name="before", label=f"ρ = {md.decimal(rho)}")
        for rho, (before, now) in pairs.items()
    ]
    says = f"{where}: mean region-ECE not above that of the paper's settings"
    return target_row(says, method, *parts)


def tails(results: Results, method: str, rho: float, metric: str) -> np.ndarray:
    if metric == "df_hat" and method == "heckman_joint":  # normal errors have none
        return np.array([])
    return md.seed_values(results.x4, metric, dataset="controlled-t", method=method, rho=rho)


def _tails(results: Results, rho: float) -> list[TargetRow]:
    normal, heavy = (partial(tails, results, method, rho) for method in TAIL_METHODS)
    where, method = f"t(5) errors, ρ = {md.decimal(rho)}", TAIL_METHODS[1]
    nll = not_above(heavy("nll"), normal("nll"), name="normal errors")
    ours, theirs = heavy("rho_hat") - rho, normal("rho_hat") - rho
    limit = abs(float(theirs.mean())) if len(theirs) else 0.0
    bias = Requirement(ours, high=limit, note=f" (normal errors {md.mean_of(theirs)})")
    says = f"{where}: bias in ρ smaller than with normal errors"
    return [
        target_row(f"{where}: NLL below that of normal errors", method, nll),
        target_row(says, method, bias, absolute=True),
    ]


def _sizes(results: Results, dataset: str, rho: float, members: int, metric: str) -> np.ndarray:
    cell = {"dataset": dataset, "rho": rho, "alpha": 1.0, "method": "heckman_two_step"}
    return md.seed_values(results.x4, metric, members=members, **cell)


def _more_members(results: Results) -> str:
    usual, changes = NETWORK.n_members, []
    for dataset, rho in SIZES:
        few, many = (partial(_sizes, results, dataset, rho, n) for n in (usual, LARGEST))
        ece, nll = (np.mean(many(m) - few(m)) for m in ("ece_against", "nll_against"))
        changes.append(f"{SIZE_NAMES[dataset]} ECE {ece:+.3f} and NLL {nll:+.3f}")
    return (
        f"Changes of the two-step in the selected-against region from {usual} members, the "
        f"default, to {LARGEST}: " + "; ".join(changes) + "."
    )


def _members_table(results: Results) -> str:
    lines = [
        (
            [SIZE_NAMES[dataset], md.decimal(rho), str(members)],
            partial(_sizes, results, dataset, rho, members),
        )
        for (dataset, rho), members in product(SIZES, MEMBERS)
    ]
    return md.metric_table(("data", "ρ", "members"), MEMBER_COLUMNS, lines)


def _furthest(results: Results) -> str:
    """Where members on folds lose most against the paper's settings."""
    found = []
    for method in CONTROL_METHODS:
        cells = [(rho, alpha) for alpha in ALPHAS for rho in RHOS]
        ece = {cell: control(results, method, "ece_against", *cell) for cell in cells}
        rise = {cell: float(np.mean(now) - np.mean(before)) for cell, (before, now) in ece.items()}
        rho, alpha = max(rise, key=lambda cell: rise[cell])
        bias = md.mean_of(control(results, method, "bias_f0_against", rho, alpha)[1])
        where = f"ρ = {md.decimal(rho)}, α = {md.decimal(alpha)}, where the bias is now {bias}"
        found.append(f"{LABELS[method]} {rise[rho, alpha]:+.3f} ({where})")
    return "The largest increase of ECE from before to now: " + ", ".join(found) + "."


def _control_table(results: Results) -> str:
    lines = [
        (
            [md.decimal(alpha), md.decimal(rho), LABELS[method]],
            partial(control, results, method, rho=rho, alpha=alpha),
        )
        for alpha, rho, method in product(ALPHAS, RHOS, CONTROL_METHODS)
    ]
    return md.metric_table(("α", "ρ", "method"), CONTROL_COLUMNS, lines)


def _tails_table(results: Results) -> str:
    names = dict(zip(TAIL_METHODS, ("normal", "t"), strict=True))
    lines = [
        ([md.decimal(rho), names[method]], partial(tails, results, method, rho))
        for rho, method in product(TAIL_RHOS, TAIL_METHODS)
    ]
    return md.metric_table(("ρ", "errors"), TAIL_COLUMNS, lines)
