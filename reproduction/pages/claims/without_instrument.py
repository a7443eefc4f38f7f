"""Claims on what is left of the correction without an instrument (A-E1, alpha = 0)."""

from __future__ import annotations

import numpy as np

from reproduction.pages.claims.claim import (
    BASELINES,
    COLLAPSED,
    FAILS,
    HECKMAN,
    HOLDS,
    PARTLY,
    RHOS,
    SIGNIFICANT,
    below,
    claim,
    controlled,
    graded,
    listed,
    number,
    p_text,
    percent,
)
from reproduction.pages.paired_tests import signed_rank
from reproduction.pages.rows import Results, members


@claim(
    "abstract, 5 (iv)",
    says="Without the instrument the correction degrades gracefully but measurably.",
    test="Paired ECE at α = 0 against the blind two-head, the same network without the correction. "
    "Holds if both Heckman fits are significantly better at every ρ > 0; partly if one of them is "
    "better on average at every ρ > 0.",
)
def graceful(results):
    parts, clear, on_average = [], [], []
    for method in HECKMAN:
        pairs = {
            rho: controlled(results, "ece", method, "blind_two_head", rho=rho, alpha=0.0).values()
            for rho in (0.0, *RHOS)
        }
        parts += [
            f"ρ = {rho}: {listed({method: number(ours)})}, blind {number(blind)} "
            f"({p_text(signed_rank(ours, blind))})"
            for rho, (ours, blind) in pairs.items()
        ]
        corrected = [pairs[rho] for rho in RHOS]
        on_average.append(all(ours.mean() < blind.mean() for ours, blind in corrected))
        clear.append(all(below(*pair) for pair in corrected))
    before, after = (
        percent(controlled(results, "coverage90", *HECKMAN, alpha=alpha)["heckman_two_step"])
        for alpha in (1.0, 0.0)
    )
    numbers = (
        f"coverage of the two-step at ρ = .9 falls from {before} to {after}; ECE at "
        + "; ".join(parts)
    )
    return graded(holds=all(clear), partly=any(on_average)), numbers


@claim(
    "5 (iv), Fig. 2",
    says="With the instrument the Heckman bias is about 0; without it every method, Heckman "
    "included, stays biased.",
    test="Mean bias in selected-against regions. Holds if below .02 with the instrument at every ρ "
    "and above .2 without it at ρ = .9.",
)
def biased_without(results):
    with_it = [controlled(results, "bias_f0", *HECKMAN, rho=rho) for rho in (0.0, *RHOS)]
    small = {m: max(abs(bias[m].mean()) for bias in with_it) for m in HECKMAN}
    others = (*BASELINES, "weighted_ensemble", "blind_two_head")
    large = controlled(results, "bias_f0", *HECKMAN, *others, alpha=0.0)
    numbers = (
        f"largest |mean bias| with: {listed(small, number)}; at ρ = .9 without: "
        f"{listed(large, number)}"
    )
    good = max(small.values()) < 0.02 and min(v.mean() for v in large.values()) > 0.2
    return graded(holds=good), numbers


@claim(
    "5 (iv)",
    says="Without the instrument ρ̂ collapses (to .14 at true .9).",
    test=f"ρ of every member at ρ = .9, α = 0. Holds if most have |ρ| < {COLLAPSED}.",
)
def rho_collapses(results):
    rho = _members(results)
    right, wrong = rho[rho > COLLAPSED], rho[rho < -COLLAPSED]
    near = rho.size - right.size - wrong.size
    numbers = (
        f"the mean is {rho.mean():.2f}, but {near} of {rho.size} members are near 0: {right.size} "
        f"are at {_span(right)}, {wrong.size} at {_span(wrong)}; the mean averages two modes"
    )
    return graded(holds=near > rho.size / 2, partly=near > 0), numbers


@claim(
    "5 (iv), Fig. 2",
    says="Without the instrument the joint fit covers well only because weak identification "
    "scatters its members and inflates its intervals.",
    test="Coverage, width and standard deviation of ρ over members at ρ = .9, with and without the "
    "instrument. Holds if the intervals are wider and the members scatter around one value, partly "
    "if they are wider and the members lie in two modes.",
)
def inflated_intervals(results):
    width = controlled(results, "width90", *HECKMAN)["heckman_joint"]
    wide, coverage = (
        controlled(results, metric, *HECKMAN, alpha=0.0)["heckman_joint"]
        for metric in ("width90", "coverage90")
    )
    rho = _members(results)
    wider = signed_rank(wide, width, "greater")
    near = int(np.sum(np.abs(rho) < COLLAPSED))
    numbers = (
        f"{percent(coverage)} with intervals {number(wide, 2)} wide, against "
        f"{number(width, 2)} with the instrument ({p_text(wider)}); sd of ρ over the members of "
        f"an ensemble {rho.std(axis=1).mean():.2f}, {near} of {rho.size} members near 0"
    )
    return graded(holds=wider <= SIGNIFICANT and near > 0, partly=wider <= SIGNIFICANT), numbers


@claim(
    "5 (iv)",
    says="The two-step, which lacks that cushion, shows the damage directly.",
    test="Two-step against joint fit at ρ = .9, α = 0. Holds if it covers less.",
)
def two_step_exposes(results):
    methods = (*HECKMAN, "deep_ensemble")
    ours, joint, ensemble = controlled(results, "coverage90", *methods, alpha=0.0).values()
    width, joint_width, _ = controlled(results, "width90", *methods, alpha=0.0).values()
    p = signed_rank(ours, joint, "less")
    numbers = (
        f"{percent(ours)} with width {number(width, 2)}, joint {percent(joint)} "
        f"with {number(joint_width, 2)} ({p_text(p)}), deep ensemble {percent(ensemble)}"
    )
    return graded(holds=p <= SIGNIFICANT), numbers


@claim(
    "5 (iv)",
    says="Without an instrument neither the point estimate nor the coverage should be trusted.",
    test="True of the two estimators if their bias is above .2 and the standard deviation of their "
    "coverage over seeds is above 10 points at ρ = .9; true of the data only if no member is near "
    "the truth.",
)
def nothing_to_trust(results):
    bias, coverage = (
        controlled(results, metric, *HECKMAN, alpha=0.0) for metric in ("bias_f0", "coverage90")
    )
    bad = all(bias[m].mean() > 0.2 and coverage[m].std() > 0.1 for m in HECKMAN)
    rho = _members(results)
    right = int(np.sum(np.abs(rho - 0.9) < 0.1))
    numbers = (
        f"bias {listed(bias, number)}; coverage "
        f"{listed(coverage, lambda v: f'{percent(v)} ± {100 * v.std():.1f}')}; but "
        f"{right} of {rho.size} joint members have ρ within .1 of the truth, and equal weights mix "
        "them with the others"
    )
    return (PARTLY if bad and right else HOLDS if bad else FAILS), numbers


def _members(results: Results) -> np.ndarray:
    """rho of every member of the joint fits at rho = .9: (n_seeds, k)"""
    return members(results.e1, method="heckman_joint", rho=0.9, alpha=0.0)


def _span(values: np.ndarray) -> str:
    return f"{values.min():.2f} to {values.max():.2f}" if values.size else "none"
