"""The rest of X4: how many members, A-E1 as a control, and errors with heavier tails."""

from __future__ import annotations

import numpy as np

from reproduction.e1_controlled import ALPHAS, RHOS
from reproduction.pages.ours.targets import (
    NUMBER,
    PERCENT,
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
from reproduction.pages.paired import signed_rank
from reproduction.pages.rows import Results
from reproduction.pages.verdicts import LABELS, p_text
from reproduction.x4_calibrated import CONTROL_METHODS, MEMBERS, NETWORK, TAIL_METHODS

SIZES = (("california", 0.8), ("wine", 0.8), ("controlled", 0.9))
SIZE_NAMES = {"california": "California housing", "wine": "wine quality", "controlled": "A-E1"}
TAIL_RHOS = (0.0, 0.6, 0.9)
LARGEST = max(MEMBERS)
CORRECTED = [method for method in CONTROL_METHODS if method != "deep_ensemble"]
PAPERS_OWN = {"heckman_averaged": "heckman_two_step"}  # what a method that is not the paper's was


def targets(results: Results) -> list[Judged]:
    control = [
        _not_worse(results, method, alpha) for alpha in reversed(ALPHAS) for method in CORRECTED
    ]
    return control + [judged for rho in TAIL_RHOS for judged in _tails(results, rho)]


def text(results: Results) -> str:
    return "\n\n".join(
        [
            "### How many members",
            _more_members(results),
            _members_table(results),
            "### A-E1 as a control",
            "The pools of A-E1, selected-against region. *Before* are the paper's settings "
            "(`results/e1_controlled.json`; for the average those of the two-step), *now* members "
            "on folds; p of the exact signed-rank test of ECE over seeds, two-sided.",
            _furthest(results),
            _control_table(results),
            "### Errors with heavier tails",
            "The pools of A-E1 with t errors of five degrees of freedom and the instrument. NLL is "
            "that of a normal with the predictive's moments and cannot reward the shape of a "
            "predictive; CRPS and coverage judge the whole of it. Bias, coverage and width are "
            "those of the selected-against region.",
            _tails_table(results),
        ]
    )


def control(results: Results, method: str, metric: str, rho: float, alpha: float):
    """A metric of A-E1 before and now, over the same seeds."""
    cell = {"rho": rho, "alpha": alpha}
    usual = {"dataset": "controlled", "members": NETWORK.n_members}
    return (
        seeds(results.e1, metric, method=PAPERS_OWN.get(method, method), **cell),
        seeds(results.x4, metric, method=method, **cell, **usual),
    )


def _not_worse(results: Results, method: str, alpha: float) -> Judged:
    pairs = {rho: control(results, method, "ece_against", rho, alpha) for rho in RHOS}
    return not_above(f"A-E1, α = {decimal(alpha)}", method, pairs)


def not_above(where: str, method: str, pairs: dict[float, tuple[np.ndarray, np.ndarray]]) -> Judged:
    """pairs : by rho, the calibration error with the paper's settings and now"""
    parts = [
        below(now, before, name="before", label=f"ρ = {decimal(rho)}")
        for rho, (before, now) in pairs.items()
    ]
    says = f"{where}: mean region-ECE not above that of the paper's settings"
    return judge(says, method, *parts)


def tails(results: Results, method: str, metric: str, rho: float) -> np.ndarray:
    return seeds(results.x4, metric, dataset="controlled-t", method=method, rho=rho)


def _tails(results: Results, rho: float) -> list[Judged]:
    normal, heavy = TAIL_METHODS
    where = f"t(5) errors, ρ = {decimal(rho)}"
    ours, theirs = (tails(results, method, "nll", rho) for method in (heavy, normal))
    off, other = (tails(results, method, "rho_hat", rho) - rho for method in (heavy, normal))
    return [
        judge(
            f"{where}: NLL below that of normal errors",
            heavy,
            below(ours, theirs, name="normal errors"),
        ),
        judge(
            f"{where}: bias in ρ smaller than with normal errors",
            heavy,
            Part(off, high=_size(other), beside=f" (normal errors {mean_of(other)})"),
            size=True,
        ),
    ]


def _size(values: np.ndarray) -> float:
    return abs(float(values.mean())) if len(values) else 0.0


def _sizes(results: Results, dataset: str, rho: float, metric: str, members: int) -> np.ndarray:
    cell = {"dataset": dataset, "rho": rho, "alpha": 1.0, "method": "heckman_two_step"}
    return seeds(results.x4, metric, members=members, **cell)


def _more_members(results: Results) -> str:
    usual, changes = NETWORK.n_members, []
    for dataset, rho in SIZES:
        ece, nll = (
            np.mean(
                _sizes(results, dataset, rho, metric, LARGEST)
                - _sizes(results, dataset, rho, metric, usual)
            )
            for metric in ("ece_against", "nll_against")
        )
        changes.append(f"{SIZE_NAMES[dataset]} ECE by {ece:+.3f} and NLL by {nll:+.3f}")
    return (
        f"From {usual} members, the default, to {LARGEST} the two-step changes in the "
        "selected-against region: " + "; ".join(changes) + "."
    )


def _members_table(results: Results) -> str:
    columns = (
        ("ece_against", NUMBER),
        ("coverage90_against", PERCENT),
        ("width90_against", NUMBER),
        ("nll_against", NUMBER),
        ("crps_against", NUMBER),
    )
    lines = [
        [
            SIZE_NAMES[dataset],
            decimal(rho),
            str(members),
            *(spread(_sizes(results, dataset, rho, name, members), form) for name, form in columns),
        ]
        for dataset, rho in SIZES
        for members in MEMBERS
    ]
    header = ("data", "ρ", "members", "ECE", "coverage", "width", "NLL", "CRPS")
    return table(header, lines)


def _furthest(results: Results) -> str:
    """Where members on folds lose most against the paper's settings."""
    found = []
    for method in CONTROL_METHODS:
        cells = [(rho, alpha) for alpha in ALPHAS for rho in RHOS]
        ece = {cell: control(results, method, "ece_against", *cell) for cell in cells}
        rise = {cell: float(np.mean(now) - np.mean(before)) for cell, (before, now) in ece.items()}
        rho, alpha = max(rise, key=lambda cell: rise[cell])
        bias = mean_of(control(results, method, "bias_f0_against", rho, alpha)[1])
        found.append(
            f"{LABELS[method]} {rise[rho, alpha]:+.3f} (ρ = {decimal(rho)}, α = {decimal(alpha)}, "
            f"where its bias is now {bias})"
        )
    return "The largest rise of ECE from before to now: " + ", ".join(found) + "."


def _control_table(results: Results) -> str:
    header = ["α", "ρ", "method", "ECE before", "now", "p", "coverage before", "now"]
    header += ["width before", "now", "bias before", "now"]
    lines = []
    for alpha in ALPHAS:
        for rho in RHOS:
            for method in CONTROL_METHODS:
                ece = control(results, method, "ece_against", rho, alpha)
                shown = [mean_of(values) for values in ece] + [p_text(signed_rank(*ece))]
                for metric, form in (
                    ("coverage90_against", PERCENT),
                    ("width90_against", NUMBER),
                    ("bias_f0_against", NUMBER),
                ):
                    pair = control(results, method, metric, rho, alpha)
                    shown += [mean_of(values, form) for values in pair]
                lines.append([decimal(alpha), decimal(rho), LABELS[method], *shown])
    return table(header, lines)


def _tails_table(results: Results) -> str:
    header = ["ρ", "errors", "estimate of ρ", "bias of the mean", "coverage", "width"]
    header += ["NLL", "CRPS", "degrees of freedom"]
    lines = []
    for rho in TAIL_RHOS:
        for method, name in zip(TAIL_METHODS, ("normal", "t"), strict=True):

            def shown(metric, form=NUMBER, method=method, rho=rho):
                found = tails(results, method, metric, rho)
                return spread(found, form)

            lines.append(
                [
                    decimal(rho),
                    name,
                    shown("rho_hat"),
                    shown("bias_f0_against"),
                    shown("coverage90_against", PERCENT),
                    shown("width90_against"),
                    shown("nll"),
                    shown("crps"),
                    shown("df_hat") if name == "t" else "",
                ]
            )
    return table(header, lines)
