"""Claims on weighting by oracle propensities."""

from __future__ import annotations

import numpy as np

from reproduction.pages.claims.claim import (
    RHOS,
    SIGNIFICANT,
    claim,
    controlled,
    graded,
    listed,
    number,
    p_text,
    paired_ece,
    percent,
)
from reproduction.pages.claims.kill_condition import kill_condition
from reproduction.pages.paired_tests import signed_rank

METHODS = ("weighted_ensemble", "deep_ensemble")


@claim(
    "1, 5 (ii)",
    says="No reweighting, even with exact propensities, recovers the population regression.",
    test="Bias of the ensemble weighted by oracle propensities, paired with the oracle's 0. Holds "
    "if it is above 0 at every ρ > 0, with and without the instrument.",
)
def weighting_is_biased(results):
    parts, biased = [], True
    for alpha in (1.0, 0.0):
        for rho in RHOS:
            bias, _ = controlled(results, "bias_f0", *METHODS, rho=rho, alpha=alpha).values()
            biased &= signed_rank(bias, np.zeros_like(bias), "greater") <= SIGNIFICANT
            parts.append(f"{number(bias)} at ρ = {rho}, α = {alpha:.0f}")
    return graded(holds=bool(biased)), "; ".join(parts)


@claim(
    "5 (ii)",
    says="Oracle weighting covers less than the unweighted ensemble.",
    test="Paired coverage and bias at ρ = .9 with the instrument.",
)
def weighting_is_worse(results):
    coverage, plain = controlled(results, "coverage90", *METHODS).values()
    bias, plain_bias = controlled(results, "bias_f0", *METHODS).values()
    p = signed_rank(coverage, plain, "less")
    numbers = (
        f"{percent(coverage)} against {percent(plain)} ({p_text(p)}), bias {number(bias)} against "
        f"{number(plain_bias)}"
    )
    return graded(holds=p <= SIGNIFICANT), numbers


@claim(
    "5 (ii)",
    says="It is worse because it upweights the units whose noise is most strongly selected.",
    test="Bias beyond the unweighted ensemble's at ρ = .9. Propensities given (x, z) identify "
    "such units only where z affects selection, so the excess must vanish at α = 0.",
)
def weighting_mechanism(results):
    parts, p = [], []
    for alpha in (1.0, 0.0):
        weighted, plain = controlled(results, "bias_f0", *METHODS, alpha=alpha).values()
        p.append(signed_rank(weighted - plain, np.zeros_like(plain), "greater"))
        parts.append(f"{number(weighted - plain)} at α = {alpha:.0f} ({p_text(p[-1])})")
    verdict = graded(holds=p[0] <= SIGNIFICANT < p[1], partly=p[0] <= SIGNIFICANT)
    return verdict, "; ".join(parts)


@claim(
    "1, 5 (ii)",
    says="The pre-registered kill condition does not fire.",
    test="The rule, as `kill_condition` computes it.",
)
def kill(results):
    found = kill_condition(results)
    return graded(holds=not found.fires), found.sentence


@claim(
    "5 (ii)",
    says="The floor of the Wilcoxon test with eight seeds is p = .008.",
    test="p if the differences of all seeds have the same sign.",
)
def wilcoxon_floor(results):
    n = len(controlled(results, "coverage90", *METHODS)["weighted_ensemble"])
    p = signed_rank(np.arange(1.0, n + 1), np.zeros(n))
    return graded(holds=round(p, 3) == 0.008), f"{p:.4f} with {n} seeds"


@claim(
    "8",
    says="Where the identification conditions hold even approximately, the correction beats "
    "reweighting.",
    test="Paired ECE of the two-step and the weighted ensemble, A-E1 with the instrument at every "
    "ρ > 0 and A-E2 at ρ = .8. Holds if lower in each.",
)
def beats_reweighting(results):
    parts, p = [], []
    for name, (ours, weighted) in paired_ece(results, "heckman_two_step", METHODS[0]).items():
        p.append(signed_rank(ours, weighted, "less"))
        parts.append(f"{name}: {number(ours)} against {number(weighted)} ({p_text(p[-1])})")
    return graded(holds=max(p) <= SIGNIFICANT), "; ".join(parts)


@claim(
    "8",
    says="At ρ = 0 importance weighting is consistent, and simpler.",
    test="Bias and coverage of the weighted and the plain ensemble at ρ = 0 with the instrument. "
    "Holds if unbiased and no worse in coverage.",
)
def weighting_at_zero(results):
    bias, _ = controlled(results, "bias_f0", *METHODS, rho=0.0).values()
    coverage = controlled(results, "coverage90", *METHODS, "heckman_two_step", rho=0.0)
    p_bias = signed_rank(bias, np.zeros_like(bias))
    p = signed_rank(*(coverage[m] for m in METHODS), "less")
    numbers = (
        f"bias {number(bias)} ({p_text(p_bias)}); coverage {listed(coverage, percent)} (weighted "
        f"below plain {p_text(p)})"
    )
    unbiased = p_bias > SIGNIFICANT
    return graded(holds=unbiased and p > SIGNIFICANT, partly=unbiased), numbers
