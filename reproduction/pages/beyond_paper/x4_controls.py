"""The rest of X4: how many members, A-E1 as a control, and errors with heavier tails."""

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

from reproduction.e1_controlled import ALPHAS, RHOS
from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.beyond_paper.targets import Requirement, TargetRow, not_above, target_row
from reproduction.pages.claims.claim import p_text
from reproduction.pages.method_labels import LABELS
from reproduction.pages.paired_tests import signed_rank
from reproduction.pages.rows import Results
from reproduction.x4_calibrated import CONTROL_METHODS, MEMBERS, MORE, NETWORK, TAIL_METHODS

USUAL = NETWORK.n_members
SIZES = {
    "california": ("California housing", 0.8),
    "wine": ("wine quality", 0.8),
    "controlled": ("A-E1", 0.9),
}
TAIL_RHOS = (0.0, 0.6, 0.9)
TAIL_ERRORS = dict(zip(TAIL_METHODS, ("normal", "t"), strict=True))
CORRECTED = [method for method in CONTROL_METHODS if method != "deep_ensemble"]
PAPERS_OWN = {"heckman_averaged": "heckman_two_step"}  # the paper's method that preceded it
SCORES = {"NLL": "nll_against", "CRPS": "crps_against"}
MEMBER_COLUMNS = md.columns({"ECE": "ece_against"} | md.INTERVALS | SCORES, md.mean_and_sd)


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
ESTIMATES = {"estimate of ρ": "rho_hat", "bias of the mean": "bias_f0_against"}
TAIL_COLUMNS = (
    *md.columns(ESTIMATES | md.INTERVALS | {"NLL": "nll", "CRPS": "crps"}, md.mean_and_sd),
    md.Column("degrees of freedom", "df_hat", lambda df: md.mean_and_sd(df) if len(df) else ""),
)


def targets(results: Results) -> list[TargetRow]:
    found = []
    for alpha, method in product(reversed(ALPHAS), CORRECTED):
        pairs = {rho: control(results, method, "ece_against", rho, alpha) for rho in RHOS}
        found.append(not_above_before(f"A-E1, α = {md.decimal(alpha)}", method, pairs))
    return found + [row for rho in TAIL_RHOS for row in _tails(results, rho)]


def parts(results: Results) -> dict[str, object]:
    """The parts of `text/x4.md` on the controls."""
    return {
        "usual": USUAL,
        "largest": max(MEMBERS),
        "more_members": _more_members(results),
        "members": _members_table(results),
        "furthest": _furthest(results),
        "control": _control_table(results),
        "tails": _tails_table(results),
    }


def values(
    results: Results, dataset: str, method: str, metric: str, rho=0.8, alpha=1.0, members=USUAL
) -> np.ndarray:
    """Over seeds; on further draws a method has one number of members."""
    cell = {"dataset": dataset, "method": method, "rho": rho, "alpha": alpha}
    usual = {} if dataset.startswith(MORE) else {"members": members}
    return md.seed_values(results.x4, metric, **cell, **usual)


def control(results: Results, method: str, metric: str, rho: float, alpha: float):
    """A metric of A-E1 before and now, over the same seeds."""
    before = {"method": PAPERS_OWN.get(method, method), "rho": rho, "alpha": alpha}
    now = values(results, "controlled", method, metric, rho, alpha)
    return md.seed_values(results.e1, metric, **before), now


def not_above_before(where: str, method: str, pairs: dict[float, tuple]) -> TargetRow:
    """pairs : by rho, the calibration error with the paper's settings and now"""
    parts = [
        not_above(now, before, name="before", label=f"ρ = {md.decimal(rho)}")
        for rho, (before, now) in pairs.items()
    ]
    says = f"{where}: mean region-ECE not above that of the paper's settings"
    return target_row(says, method, *parts)


def _tails(results: Results, rho: float) -> list[TargetRow]:
    normal, heavy = (partial(values, results, "controlled-t", m, rho=rho) for m in TAIL_METHODS)
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


def _two_step(results: Results, dataset: str, members: int) -> Callable[..., np.ndarray]:
    rho = SIZES[dataset][1]
    return partial(values, results, dataset, "heckman_two_step", rho=rho, members=members)


def _more_members(results: Results) -> str:
    changes = []
    for dataset, (name, _) in SIZES.items():
        few, many = (_two_step(results, dataset, n) for n in (USUAL, max(MEMBERS)))
        ece, nll = (np.mean(many(m) - few(m)) for m in ("ece_against", "nll_against"))
        changes.append(f"{name} ECE {ece:+.3f} and NLL {nll:+.3f}")
    return "; ".join(changes)


def _members_table(results: Results) -> str:
    lines = [
        ([name, md.decimal(rho), str(members)], _two_step(results, dataset, members))
        for (dataset, (name, rho)), members in product(SIZES.items(), MEMBERS)
    ]
    return md.metric_table(("data", "ρ", "members"), MEMBER_COLUMNS, lines)


def _furthest(results: Results) -> str:
    """The setting in which members on folds lose most compared with the paper's settings."""
    found = []
    for method in CONTROL_METHODS:
        rise = {}
        for alpha, rho in product(ALPHAS, RHOS):
            before, now = control(results, method, "ece_against", rho, alpha)
            rise[rho, alpha] = float(np.mean(now) - np.mean(before))
        rho, alpha = max(rise, key=rise.__getitem__)
        bias = md.mean_of(control(results, method, "bias_f0_against", rho, alpha)[1])
        where = f"ρ = {md.decimal(rho)}, α = {md.decimal(alpha)}, where the bias is now {bias}"
        found.append(f"{LABELS[method]} {rise[rho, alpha]:+.3f} ({where})")
    return ", ".join(found)


def _control_table(results: Results) -> str:
    lines = []
    for alpha, rho, method in product(ALPHAS, RHOS, CONTROL_METHODS):
        find = partial(control, results, method, rho=rho, alpha=alpha)
        lines.append(([md.decimal(alpha), md.decimal(rho), LABELS[method]], find))
    return md.metric_table(("α", "ρ", "method"), CONTROL_COLUMNS, lines)


def _tails_table(results: Results) -> str:
    find = partial(values, results, "controlled-t")
    lines = [
        ([md.decimal(rho), errors], partial(find, method, rho=rho))
        for rho, (method, errors) in product(TAIL_RHOS, TAIL_ERRORS.items())
    ]
    return md.metric_table(("ρ", "errors"), TAIL_COLUMNS, lines)
