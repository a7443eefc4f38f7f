"""Claims on the controlled experiment (A-E1) with the instrument, and on oracle weighting."""

from functools import partial
from itertools import product

import numpy as np
from scipy.stats import norm

from reproduction.pages.claims.claim import (
    BASELINES,
    HECKMAN,
    RHOS,
    SIGNIFICANT,
    below,
    controlled,
    graded,
    listed,
    number,
    p_text,
    paired_ece,
    percent,
)
from reproduction.pages.claims.kill_condition import kill_condition
from reproduction.pages.paired_tests import signed_rank, standard_error
from reproduction.pages.rows import over_seeds
from reproduction.problems import TRAINED

UNCORRECTED = (*BASELINES, "weighted_ensemble")
ENSEMBLES = ("weighted_ensemble", "deep_ensemble")
# Coverage is called restored, or fine, if it differs from the oracle's by at most this.
POINTS = 0.02


def share_selected(results):
    shares = [row["selected_share"] for row in results.e1]
    low, with_it = (norm.cdf(-1.8 / np.sqrt(1 + alpha**2)) for alpha in (0, 1))
    return graded(holds=with_it <= 0.075, partly=True), (
        f"{percent(shares)} selected ({percent(min(shares))} to {percent(max(shares))}); the "
        f"propensity spans {low:.2f} to {1 - low:.2f} without and {with_it:.2f} to "
        f"{1 - with_it:.2f} with the instrument"
    )


def overconfident_where_avoided(results):
    short, parts = {}, []
    for region, name in (("against", "selected-against"), ("well", "well-sampled")):
        coverage = controlled(results, "coverage90", *BASELINES, "oracle", region=region)
        oracle = coverage.pop("oracle")
        short[region] = [below(ours, oracle) for ours in coverage.values()]
        parts.append(f"{name}: {listed(coverage, percent)}")
    if any(short["well"]):
        parts.append("coverage is also too low in the well-sampled region, but by less")
    against = all(short["against"])
    return graded(holds=against and not any(short["well"]), partly=against), "; ".join(parts)


def disagreement_is_silent(results):
    width, wide, bias, biased = (
        controlled(results, metric, "deep_ensemble", rho=rho)["deep_ensemble"]
        for metric, rho in product(("width90", "bias_f0"), (0.0, 0.9))
    )
    return graded(holds=wide.mean() <= width.mean()), (
        f"90 % intervals are {number(width, 2)} wide at ρ = 0 and {number(wide, 2)} at "
        f".9 ({p_text(signed_rank(wide, width, 'less'))} for narrower), while the bias goes from "
        f"{number(bias)} to {number(biased)}"
    )


def baselines_alike(results):
    bias, coverage = (controlled(results, m, *BASELINES) for m in ("bias_f0", "coverage90"))
    ratio = [values.mean() / bias["deep_ensemble"].mean() for values in bias.values()]
    alike = max(ratio) < 1.1 and min(ratio) > 0.9
    p = p_text(signed_rank(coverage["gp"], coverage["deep_ensemble"]))
    return graded(holds=alike and all(v.mean() < 0.8 for v in coverage.values())), (
        f"bias: {listed(bias, number)}; coverage: {listed(coverage, percent)} (GP against "
        f"ensemble {p})"
    )


def fine_at_zero(results):
    wrong = []
    for alpha in (1.0, 0.0):
        coverage, ece = (
            controlled(results, metric, *TRAINED, "oracle", rho=0.0, alpha=alpha)
            for metric in ("coverage90", "ece")
        )
        least, most = coverage["oracle"].mean() - POINTS, ece["oracle"].mean() + 0.03
        wrong += [
            f"{listed({m: f'{percent(coverage[m])}, ECE {number(ece[m])}'})} (α = {alpha:.0f})"
            for m in TRAINED
            if coverage[m].mean() < least or ece[m].mean() > most
        ]
    tried = 2 * len(TRAINED)
    numbers = f"{len(wrong)} of {tried} are not fine: {'; '.join(wrong)}"
    verdict = graded(holds=not wrong, partly=len(wrong) < tried)
    return verdict, numbers if wrong else "all are fine"


def not_sparsity(results):
    lost = []
    for rho in (0.0, 0.9):
        coverage = controlled(results, "coverage90", *UNCORRECTED, "oracle", rho=rho)
        lost.append({m: np.mean(coverage["oracle"] - coverage[m]) for m in UNCORRECTED})
    shares = {m: lost[0][m] / lost[1][m] for m in UNCORRECTED}
    return graded(holds=max(shares.values()) < 0.2), listed(shares, partial(percent, digits=0))


def coverage_restored(results):
    parts, gaps = [], []
    for method, rho in product(HECKMAN, RHOS):
        ours, oracle = controlled(results, "coverage90", method, "oracle", rho=rho).values()
        gaps.append(np.mean(oracle - ours))
        p = p_text(signed_rank(ours, oracle, "less"))
        parts.append(f"{listed({method: percent(ours)})} at {rho} ({p} for less)")
    return graded(holds=max(gaps) <= POINTS), f"{'; '.join(parts)}; oracle {percent(oracle)}"


def order_of_magnitude(results):
    ece = controlled(results, "ece", "heckman_two_step", *UNCORRECTED)
    two_step = ece.pop("heckman_two_step").mean()
    ratio = {m: values.mean() / two_step for m, values in ece.items()}
    least = min(ratio.values())
    numbers = listed(ratio, lambda r: f"{r:.1f} times")
    return graded(holds=least >= 10, partly=least > 5), f"ECE {two_step:.3f}; {numbers}"


def near_oracle(results):
    ece = controlled(results, "ece", *HECKMAN, "deep_ensemble", "oracle")
    ours, _, ensemble, oracle = (values.mean() for values in ece.values())
    closed, ratio = (ensemble - ours) / (ensemble - oracle), ours / oracle
    p = p_text(signed_rank(ece["heckman_two_step"], ece["oracle"]))
    return graded(holds=closed >= 0.9 and ratio < 2, partly=closed >= 0.9), (
        f"{listed(ece, number)}: {percent(closed, 0)} closed, still {ratio:.1f} times the "
        f"oracle's ({p})"
    )


def rho_recovered(results):
    parts, good = [], True
    for rho in (0.0, *RHOS):
        found = over_seeds(results.e1, "rho_hat", method="heckman_joint", rho=rho, alpha=1.0)
        good &= abs(found.mean() - rho) <= 2 * standard_error(found)
        parts.append(f"{found.mean():.2f} ± {found.std():.2f} at {rho}")
    return graded(holds=bool(good)), "; ".join(parts)


def joint_matches(results):
    parts, worse = [], False
    for metric, name, show in (("coverage90", "coverage", percent), ("ece", "ECE", number)):
        two_step, joint = controlled(results, metric, *HECKMAN).values()
        p = signed_rank(joint, two_step)
        behind = (joint.mean() > two_step.mean()) == (metric == "ece")  # a lower ECE is better
        worse |= p <= SIGNIFICANT and behind
        parts.append(f"{name}: joint {show(joint)}, two-step {show(two_step)} ({p_text(p)})")
    return graded(holds=not worse), "; ".join(parts)


def not_the_head(results):
    methods = ("deep_ensemble", "blind_two_head", "heckman_joint")
    coverage = controlled(results, "coverage90", *methods)
    low, blind, high = (values.mean() for values in coverage.values())
    part = (blind - low) / (high - low)
    return graded(holds=part < 0.25), f"{listed(coverage, percent)}: {percent(part, 0)}"


def weighting_is_biased(results):
    parts, biased = [], True
    for alpha, rho in product((1.0, 0.0), RHOS):
        bias, _ = controlled(results, "bias_f0", *ENSEMBLES, rho=rho, alpha=alpha).values()
        biased &= below(-bias, np.zeros_like(bias))
        parts.append(f"{number(bias)} at ρ = {rho}, α = {alpha:.0f}")
    return graded(holds=bool(biased)), "; ".join(parts)


def weighting_is_worse(results):
    coverage, plain = controlled(results, "coverage90", *ENSEMBLES).values()
    bias, plain_bias = controlled(results, "bias_f0", *ENSEMBLES).values()
    p = signed_rank(coverage, plain, "less")
    return graded(holds=p <= SIGNIFICANT), (
        f"{percent(coverage)} against {percent(plain)} ({p_text(p)}), bias {number(bias)} against "
        f"{number(plain_bias)}"
    )


def weighting_mechanism(results):
    parts, p = [], []
    for alpha in (1.0, 0.0):
        weighted, plain = controlled(results, "bias_f0", *ENSEMBLES, alpha=alpha).values()
        p.append(signed_rank(weighted - plain, np.zeros_like(plain), "greater"))
        parts.append(f"{number(weighted - plain)} at α = {alpha:.0f} ({p_text(p[-1])})")
    more = p[0] <= SIGNIFICANT
    return graded(holds=more and p[1] > SIGNIFICANT, partly=more), "; ".join(parts)


def kill(results):
    fires, sentence = kill_condition(results)
    return graded(holds=not fires), sentence


def wilcoxon_floor(results):
    n = len(controlled(results, "coverage90", *ENSEMBLES)["weighted_ensemble"])
    p = signed_rank(np.arange(1.0, n + 1), np.zeros(n))
    return graded(holds=round(p, 3) == 0.008), f"{p:.4f} with {n} seeds"


def beats_reweighting(results):
    parts, p = [], []
    for name, (ours, weighted) in paired_ece(results, "heckman_two_step", ENSEMBLES[0]).items():
        p.append(signed_rank(ours, weighted, "less"))
        parts.append(f"{name}: {number(ours)} against {number(weighted)} ({p_text(p[-1])})")
    return graded(holds=max(p) <= SIGNIFICANT), "; ".join(parts)


def weighting_at_zero(results):
    bias, _ = controlled(results, "bias_f0", *ENSEMBLES, rho=0.0).values()
    coverage = controlled(results, "coverage90", *ENSEMBLES, "heckman_two_step", rho=0.0)
    p_bias = signed_rank(bias, np.zeros_like(bias))
    p = signed_rank(*(coverage[m] for m in ENSEMBLES), "less")
    unbiased = p_bias > SIGNIFICANT
    return graded(holds=unbiased and p > SIGNIFICANT, partly=unbiased), (
        f"bias {number(bias)} ({p_text(p_bias)}); coverage {listed(coverage, percent)} (weighted "
        f"below plain {p_text(p)})"
    )
