"""Claims on what is left of the correction without an instrument (A-E1, alpha = 0)."""

from __future__ import annotations

import numpy as np

from reproduction.pages.paired import signed_rank
from reproduction.pages.rows import members
from reproduction.pages.verdicts import (
    BASELINES,
    FAILS,
    HOLDS,
    PARTLY,
    SIGNIFICANT,
    WITH_INSTRUMENT,
    WITHOUT_INSTRUMENT,
    claim,
    controlled,
    graded,
    listed,
    number,
    p_text,
    percent,
)

RHOS = (0.3, 0.6, 0.9)
# Members nearer to 0 than this have collapsed.
COLLAPSED = 0.3


@claim(
    "abstract, 5 (iv)",
    says="Without the instrument the correction degrades gracefully but measurably.",
    test="Paired ECE at α = 0 against the blind two-head, the same network without the correction. "
    "Holds if both Heckman fits are better beyond chance at every ρ > 0; partly if one of them is "
    "better on average at every ρ > 0.",
)
def graceful(results):
    texts, clear, on_average = [], [], []
    for method in ("heckman_two_step", "heckman_joint"):
        pairs = {
            rho: [
                controlled(results, m, "ece", rho=rho, alpha=0.0)
                for m in (method, "blind_two_head")
            ]
            for rho in (0.0, *RHOS)
        }
        on_average.append(all(pairs[rho][0].mean() < pairs[rho][1].mean() for rho in RHOS))
        clear.append(all(signed_rank(*pairs[rho], "less") <= SIGNIFICANT for rho in RHOS))
        texts += [
            f"ρ = {rho}: {listed({method: number(ours)})}, blind {number(blind)} "
            f"({p_text(signed_rank(ours, blind))})"
            for rho, (ours, blind) in pairs.items()
        ]
    coverage = [
        controlled(results, "heckman_two_step", "coverage90", **cell)
        for cell in (WITH_INSTRUMENT, WITHOUT_INSTRUMENT)
    ]
    numbers = (
        f"coverage of the two-step at ρ = .9 falls from {percent(coverage[0])} to "
        f"{percent(coverage[1])}; ECE at " + "; ".join(texts)
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
    heckman = ("heckman_two_step", "heckman_joint")
    small = {
        m: max(
            abs(controlled(results, m, "bias_f0", rho=rho, alpha=1.0).mean())
            for rho in (0.0, *RHOS)
        )
        for m in heckman
    }
    large = {
        m: controlled(results, m, "bias_f0", **WITHOUT_INSTRUMENT)
        for m in (*heckman, *BASELINES, "weighted_ensemble", "blind_two_head")
    }
    numbers = (
        f"largest |mean bias| with: {listed({m: f'{v:.3f}' for m, v in small.items()})}; at ρ = .9 "
        f"without: {listed({m: number(v) for m, v in large.items()})}"
    )
    good = max(small.values()) < 0.02 and min(v.mean() for v in large.values()) > 0.2
    return graded(holds=good), numbers


@claim(
    "5 (iv)",
    says="Without the instrument ρ̂ collapses (to .14 at true .9).",
    test=f"ρ of every member at ρ = .9, α = 0. Holds if most have |ρ| < {COLLAPSED}.",
)
def rho_collapses(results):
    rho = members(results.e1, method="heckman_joint", **WITHOUT_INSTRUMENT)
    right, wrong = rho[rho > COLLAPSED], rho[rho < -COLLAPSED]
    near = rho.size - right.size - wrong.size
    numbers = (
        f"the mean is {rho.mean():.2f}, but {near} of {rho.size} members are near 0: {right.size} "
        f"are at {_span(right)}, {wrong.size} at {_span(wrong)}; the mean is that of two modes"
    )
    return graded(holds=near > rho.size / 2, partly=near > 0), numbers


@claim(
    "5 (iv), Fig. 2",
    says="Without the instrument the joint fit covers well only because weak identification "
    "scatters its members and inflates its intervals.",
    test="Coverage, width and spread of ρ over members at ρ = .9, with and without the instrument. "
    "Holds if the wider intervals come with members spread around one value, partly if they come "
    "with members in two modes.",
)
def inflated_intervals(results):
    width, coverage = (
        [
            controlled(results, "heckman_joint", metric, **cell)
            for cell in (WITH_INSTRUMENT, WITHOUT_INSTRUMENT)
        ]
        for metric in ("width90", "coverage90")
    )
    rho = members(results.e1, method="heckman_joint", **WITHOUT_INSTRUMENT)
    wider = signed_rank(width[1], width[0], "greater")
    near = int(np.sum(np.abs(rho) < COLLAPSED))
    numbers = (
        f"{percent(coverage[1])} with intervals {number(width[1], 2)} wide, against "
        f"{number(width[0], 2)} with the instrument ({p_text(wider)}); sd of ρ over the members of "
        f"an ensemble {rho.std(axis=1).mean():.2f}, {near} of {rho.size} members near 0"
    )
    return graded(holds=wider <= SIGNIFICANT and near > 0, partly=wider <= SIGNIFICANT), numbers


@claim(
    "5 (iv)",
    says="The two-step, which lacks that cushion, shows the damage directly.",
    test="Two-step against joint fit at ρ = .9, α = 0. Holds if it covers less.",
)
def two_step_exposes(results):
    coverage, width = (
        [
            controlled(results, m, metric, **WITHOUT_INSTRUMENT)
            for m in ("heckman_two_step", "heckman_joint", "deep_ensemble")
        ]
        for metric in ("coverage90", "width90")
    )
    p = signed_rank(coverage[0], coverage[1], "less")
    numbers = (
        f"{percent(coverage[0])} with width {number(width[0], 2)}, joint {percent(coverage[1])} "
        f"with {number(width[1], 2)} ({p_text(p)}), deep ensemble {percent(coverage[2])}"
    )
    return graded(holds=p <= SIGNIFICANT), numbers


@claim(
    "5 (iv)",
    says="Without an instrument neither the point estimate nor the coverage should be trusted.",
    test="True of the two estimators if their bias is above .2 and coverage varies by more than "
    "10 points (sd) over seeds at ρ = .9; true of the data only if no member is near the truth.",
)
def nothing_to_trust(results):
    bias, coverage = (
        {
            m: controlled(results, m, metric, **WITHOUT_INSTRUMENT)
            for m in ("heckman_two_step", "heckman_joint")
        }
        for metric in ("bias_f0", "coverage90")
    )
    bad = all(v.mean() > 0.2 for v in bias.values()) and all(
        v.std() > 0.1 for v in coverage.values()
    )
    rho = members(results.e1, method="heckman_joint", **WITHOUT_INSTRUMENT)
    right = int(np.sum(np.abs(rho - 0.9) < 0.1))
    numbers = (
        f"bias {listed({m: number(v) for m, v in bias.items()})}; coverage "
        f"{listed({m: f'{percent(v)} ± {100 * v.std():.1f}' for m, v in coverage.items()})}; but "
        f"{right} of {rho.size} joint members have ρ within .1 of the truth, and equal weights mix "
        "them with the others"
    )
    return (PARTLY if bad and right else HOLDS if bad else FAILS), numbers


def _span(values: np.ndarray) -> str:
    return f"{values.min():.2f} to {values.max():.2f}" if values.size else "none"


CLAIMS = (
    graceful,
    biased_without,
    rho_collapses,
    inflated_intervals,
    two_step_exposes,
    nothing_to_trust,
)
