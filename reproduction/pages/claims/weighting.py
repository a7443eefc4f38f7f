"""Claims on weighting by oracle propensities."""

from __future__ import annotations

import numpy as np

from reproduction.kill_condition import kill_condition
from reproduction.pages.paired import signed_rank
from reproduction.pages.rows import over_seeds
from reproduction.pages.verdicts import (
    SIGNIFICANT,
    WITH_INSTRUMENT,
    claim,
    controlled,
    graded,
    listed,
    number,
    p_text,
    percent,
)

RHOS = (0.3, 0.6, 0.9)


@claim(
    "1, 5 (ii)",
    says="No reweighting, even with exact propensities, recovers the population regression.",
    test="Bias of the ensemble weighted by oracle propensities, paired with the oracle's 0. Holds "
    "if it is above 0 at every ρ > 0, with and without the instrument.",
)
def weighting_is_biased(results):
    texts, biased = [], True
    for alpha in (1.0, 0.0):
        for rho in RHOS:
            bias = controlled(results, "weighted_ensemble", "bias_f0", rho=rho, alpha=alpha)
            biased &= signed_rank(bias, np.zeros_like(bias), "greater") <= SIGNIFICANT
            texts.append(f"{number(bias)} at ρ = {rho}, α = {alpha:.0f}")
    return graded(holds=bool(biased)), "; ".join(texts)


@claim(
    "5 (ii)",
    says="Oracle weighting covers less than the unweighted ensemble.",
    test="Paired coverage and bias at ρ = .9 with the instrument.",
)
def weighting_is_worse(results):
    coverage, bias = (
        [
            controlled(results, m, metric, **WITH_INSTRUMENT)
            for m in ("weighted_ensemble", "deep_ensemble")
        ]
        for metric in ("coverage90", "bias_f0")
    )
    p = signed_rank(*coverage, "less")
    numbers = (
        f"{percent(coverage[0])} against {percent(coverage[1])} ({p_text(p)}), bias "
        f"{number(bias[0])} against {number(bias[1])}"
    )
    return graded(holds=p <= SIGNIFICANT), numbers


@claim(
    "5 (ii)",
    says="It is worse because it upweights the units whose noise is most strongly selected.",
    test="Bias beyond the unweighted ensemble's at ρ = .9. Propensities given (x, z) single such "
    "units out only where z moves selection, so the excess must vanish at α = 0.",
)
def weighting_mechanism(results):
    excess = {
        alpha: controlled(results, "weighted_ensemble", "bias_f0", rho=0.9, alpha=alpha)
        - controlled(results, "deep_ensemble", "bias_f0", rho=0.9, alpha=alpha)
        for alpha in (1.0, 0.0)
    }
    zero = np.zeros_like(excess[1.0])
    p = {alpha: signed_rank(values, zero, "greater") for alpha, values in excess.items()}
    numbers = "; ".join(f"{number(excess[a])} at α = {a:.0f} ({p_text(p[a])})" for a in (1.0, 0.0))
    return graded(holds=p[1.0] <= SIGNIFICANT < p[0.0], partly=p[1.0] <= SIGNIFICANT), numbers


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
    test="p where the differences of all seeds have one sign.",
)
def wilcoxon_floor(results):
    n = len(controlled(results, "weighted_ensemble", "coverage90", **WITH_INSTRUMENT))
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
    pairs = {
        f"A-E1 ρ = {rho}": [
            controlled(results, m, "ece", rho=rho, alpha=1.0)
            for m in ("heckman_two_step", "weighted_ensemble")
        ]
        for rho in RHOS
    }
    for dataset in ("california", "wine"):
        pairs[f"{dataset.capitalize()} ρ = 0.8"] = [
            over_seeds(results.e2, "ece_against", method=m, dataset=dataset, rho=0.8)
            for m in ("heckman_two_step", "weighted_ensemble")
        ]
    p = {name: signed_rank(*pair, "less") for name, pair in pairs.items()}
    numbers = "; ".join(
        f"{name}: {number(pair[0])} against {number(pair[1])} ({p_text(p[name])})"
        for name, pair in pairs.items()
    )
    return graded(holds=max(p.values()) <= SIGNIFICANT), numbers


@claim(
    "8",
    says="At ρ = 0 importance weighting is consistent, and simpler.",
    test="Bias and coverage of the weighted and the plain ensemble at ρ = 0 with the instrument. "
    "Holds if unbiased and no worse in coverage.",
)
def weighting_at_zero(results):
    cell = {"rho": 0.0, "alpha": 1.0}
    bias = controlled(results, "weighted_ensemble", "bias_f0", **cell)
    coverage = {
        m: controlled(results, m, "coverage90", **cell)
        for m in ("weighted_ensemble", "deep_ensemble", "heckman_two_step")
    }
    p_bias = signed_rank(bias, np.zeros_like(bias))
    p = signed_rank(coverage["weighted_ensemble"], coverage["deep_ensemble"], "less")
    unbiased = p_bias > SIGNIFICANT
    numbers = (
        f"bias {number(bias)} ({p_text(p_bias)}); coverage "
        f"{listed({m: percent(v) for m, v in coverage.items()})} (weighted below plain {p_text(p)})"
    )
    return graded(holds=unbiased and p > SIGNIFICANT, partly=unbiased), numbers


CLAIMS = (
    weighting_is_biased,
    weighting_is_worse,
    weighting_mechanism,
    kill,
    wilcoxon_floor,
    beats_reweighting,
    weighting_at_zero,
)
