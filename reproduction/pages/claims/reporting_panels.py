"""Claims on benchmark reporting panels (A-E4), computed from another dump than the paper's."""

from __future__ import annotations

import numpy as np

from heckesel.linear.estimates import NEAR_BOUNDARY
from reproduction import e4_timm
from reproduction.pages.claims.claim import (
    RHOS,
    SIGNIFICANT,
    UNTESTED,
    claim,
    graded,
    listed,
    number,
)
from reproduction.pages.macros import PANELS, main_panels
from reproduction.pages.paired_tests import signed_rank
from reproduction.pages.rows import Results, matching, members, over_seeds

NO_ROWS = "the panels have not been run, because their data are not in the repository"
NAIVE = "least squares"
CORRECTIONS = {"two-step": "two-step", "ml": "maximum likelihood"}


@claim(
    "abstract, 7",
    says="Most panel and pairwise fits hit the |ρ̂| = 1 boundary (8 of 13).",
    test="Fits with |ρ̂| > .99 in our main table, without an instrument. Holds if more than half.",
)
def most_on_boundary(results):
    rows = main_panels(results)
    if not rows:
        return UNTESTED, NO_ROWS
    count = int(sum(row["boundary"] for row in rows))
    other = [row for row in matching(results.e4, instrument="") if row not in rows]
    second = int(sum(row["boundary"] for row in other))
    numbers = f"{count} of {len(rows)}; in the second table {second} of {len(other)}"
    return graded(holds=count > len(rows) / 2, partly=count > 0), numbers


@claim(
    "7",
    says="Interior estimates are sign-unstable across panels.",
    test="Signs of ρ̂ inside the boundary, and of all fits. Holds if the interior has both.",
)
def signs_unstable(results):
    rows = main_panels(results)
    if not rows:
        return UNTESTED, NO_ROWS
    interior = [row["rho"] for row in rows if not row["boundary"]]
    edge = [row["rho"] for row in rows if row["boundary"]]
    numbers = f"interior: {_signs(interior)}; on the boundary: {_signs(edge)}"
    both = any(rho > 0 for rho in interior) and any(rho < 0 for rho in interior)
    return graded(holds=both, partly=len({rho > 0 for rho in interior + edge}) == 2), numbers


@claim(
    "7",
    says="ImageNet → ImageNet ReaL reporting selects positively on unobservables (.87 ± .09).",
    test="That pair in our dumps. Holds if ρ̂ is interior and two standard errors above 0.",
)
def imagenet_real(results):
    rows = matching(results.e4, task="Image Classification", target="ImageNet ReaL", instrument="")
    if not rows:
        reason = "the available dumps have no such pair" if results.e4 else NO_ROWS
        return UNTESTED, reason
    rho, se = rows[0]["rho"], rows[0].get("rho_se")
    if se is None:
        return graded(holds=False), f"ρ̂ {rho:.2f}, on the boundary, where it has no standard error"
    return graded(holds=rho - 2 * se > 0), f"ρ̂ {rho:.2f}, standard error {se:.2f}"


@claim(
    "1, 7",
    says="The boundary fits appear exactly as the controlled experiments predict.",
    test="Members of A-E1 without the instrument with |ρ| > .99. Holds if there are any.",
)
def predicted_by_controlled(results: Results):
    rho = np.concatenate(
        [
            members(results.e1, method="heckman_joint", rho=value, alpha=0.0).ravel()
            for value in (0.0, *RHOS)
        ]
    )
    count = int(np.sum(np.abs(rho) > NEAR_BOUNDARY))
    numbers = (
        f"{count} of {rho.size} joint members; the largest |ρ| is {np.abs(rho).max():.2f}: with "
        "2000 units the fits converge to interior modes of either sign"
    )
    return graded(holds=count > 0), numbers


@claim(
    "7",
    says="A reporting instrument is what such panels need; release dates of datasets are a "
    "candidate.",
    test="The fits again with the age of the dataset in the selection equation: how many are on "
    "the boundary, with and without it on the same cells? Holds if fewer than half remain.",
)
def dates_as_instrument(results):
    rows = matching(results.e4, source=PANELS["source"], instrument="age")
    if not rows:
        return UNTESTED, NO_ROWS
    with_age = int(sum(row["boundary"] for row in rows))
    without = int(sum(row["boundary_without"] for row in rows))
    numbers = f"{with_age} of {len(rows)} with it, {without} without"
    return graded(holds=2 * with_age < without, partly=with_age < without), numbers


@claim(
    "7",
    says="Benchmark-panel corrections need a reporting instrument.",
    test="A complete panel, timm's models on six test sets, half of its scores hidden by a known "
    "rule. The error is that of the predicted mean of the hidden scores, in standard deviations of "
    "a test set, for two corrections and least squares, three ρ, ability known or as reported. "
    "Holds if all corrections are significantly further off than least squares without the "
    "instrument, and nearer with it where ρ > 0; partly if most are.",
)
def complete_panel(results):
    if not results.e4_timm:
        return UNTESTED, NO_ROWS
    parts, shares = [], []
    for words, alpha, side, rhos in (
        ("further off without it", 0.0, "greater", e4_timm.RHOS),
        ("nearer with it", 1.0, "less", e4_timm.RHOS[1:]),
    ):
        cells = [{"ability": a, "rho": r, "alpha": alpha} for a in e4_timm.ABILITIES for r in rhos]
        found = {
            name: [
                signed_rank(*(_off(results, m, cell) for m in (method, NAIVE)), side) <= SIGNIFICANT
                for cell in cells
            ]
            for method, name in CORRECTIONS.items()
        }
        shares.append(np.mean(list(found.values())))
        counts = {name: f"{sum(each)} of {len(each)}" for name, each in found.items()}
        off = {
            name: number(_off(results, method, cells[-1]))
            for method, name in ({NAIVE: NAIVE} | CORRECTIONS).items()
        }
        parts.append(f"{words}: {listed(counts)} (ρ = .8, ability as reported: {listed(off)})")
    return graded(holds=min(shares) == 1, partly=min(shares) > 0.5), "; ".join(parts)


def _off(results: Results, method: str, cell: dict) -> np.ndarray:
    """Distance of predicted from true mean of the hidden scores, over seeds."""
    return np.abs(over_seeds(results.e4_timm, "bias", method=method, **cell))


def _signs(values: list[float]) -> str:
    return f"{sum(v > 0 for v in values)} positive, {sum(v < 0 for v in values)} negative"
