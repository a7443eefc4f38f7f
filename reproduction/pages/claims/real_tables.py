"""Claims on real tables with induced selection (A-E2/E3)."""

from collections.abc import Callable
from itertools import product

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

from heckesel.metrics import LEVELS
from reproduction.pages.claims.claim import (
    BASELINES,
    HECKMAN,
    SIGNIFICANT,
    controlled,
    graded,
    listed,
    number,
    p_text,
    percent,
    semireal,
)
from reproduction.pages.macros import pooled_pvalue
from reproduction.pages.method_labels import LABELS
from reproduction.pages.paired_tests import signed_rank

DATASETS = ("california", "wine")
NOMINAL = 0.9
COMPETITORS = (*BASELINES, "weighted_ensemble", "blind_two_head", "heckman_joint")


def on_each_dataset(grade: Callable[[list], str]) -> Callable[[Callable], Callable]:
    """A rule from a function of results and dataset that returns a finding and a sentence about
    that dataset; grade : findings -> verdict"""

    def rule_of(find):
        def rule(results):
            findings, parts = zip(*(find(results, dataset) for dataset in DATASETS), strict=True)
            named = zip(DATASETS, parts, strict=True)
            numbers = "; ".join(f"{name.capitalize()}: {text}" for name, text in named)
            return grade(list(findings)), numbers

        return rule

    return rule_of


def all_clear(found: list[tuple[bool, bool]], some: Callable) -> str:
    """The verdict from whether ours is first on each dataset, and whether that is beyond chance."""
    first = [each[0] for each in found]
    return graded(holds=all(map(all, found)), partly=some(first))


def half_selected(results):
    shares = [row["selected_share"] for row in results.e2]
    text = f"{percent(min(shares))} to {percent(max(shares))}"
    return graded(holds=max(abs(share - 0.5) for share in shares) < 0.005), text


@on_each_dataset(lambda found: all_clear(found, any))
def best_calibrated(results, dataset):
    ece = semireal(results, "ece", dataset, "heckman_two_step", *COMPETITORS)
    ours = ece.pop("heckman_two_step")
    p = {m: signed_rank(ours, values, "less") for m, values in ece.items()}
    lowest = all(ours.mean() < values.mean() for values in ece.values())
    others = {m: f"{number(values)} ({p_text(p[m])})" for m, values in ece.items()}
    clear = max(p.values()) <= SIGNIFICANT
    return (lowest, clear), f"two-step {number(ours)}, {listed(others)}"


def pooled_tests(results):
    p = {m: pooled_pvalue(results, m) for m in COMPETITORS}
    tested = {m: p.pop(m) for m in ("deep_ensemble", "weighted_ensemble", "mc_dropout")}
    shown, others = listed(tested, lambda p: f"p = {p:.5f}"), listed(p, p_text)
    numbers = f"{shown}; not tested by the paper: {others}"
    return graded(holds=max(tested.values()) < 0.001), numbers


@on_each_dataset(lambda closed: graded(holds=min(closed) >= 0.75, partly=max(closed) >= 0.75))
def near_skyline(results, dataset):
    methods = ("heckman_two_step", "deep_ensemble", "skyline")
    ece = semireal(results, "ece", dataset, *methods)
    two_step, ensemble, skyline = (values.mean() for values in ece.values())
    closed = (ensemble - two_step) / (ensemble - skyline)
    between = f"{two_step:.3f} between {ensemble:.3f} and {skyline:.3f}"
    return closed, f"{between}, {percent(closed, 0)} closed"


@on_each_dataset(lambda matched: graded(holds=any(matched)))
def coverage_is_muddier(results, dataset):
    methods = ("heckman_two_step", "mc_dropout", "gp")
    coverage = semireal(results, "coverage90", dataset, *methods)
    ours, *others = (values.mean() for values in coverage.values())
    return max(others) >= ours, listed(coverage, percent)


def only_by_widening(results):
    parts, wide = [], []
    for dataset in DATASETS:
        coverage, well = (
            semireal(results, "coverage90", dataset, "heckman_two_step", *BASELINES, region=region)
            for region in ("against", "well")
        )
        own = well["heckman_two_step"]
        for m in BASELINES:
            if coverage[m].mean() >= coverage["heckman_two_step"].mean():
                wide.append(well[m].mean() > max(NOMINAL, own.mean()))
                parts.append(
                    f"{dataset.capitalize()}: {LABELS[m]} covers {percent(well[m])} of the "
                    f"well-sampled region, the two-step {percent(own)}"
                )
    return graded(holds=all(wide), partly=any(wide)), "; ".join(parts)


def cannot_be_gamed(results):
    start = np.mean(*controlled(results, "ece", "deep_ensemble").values())
    bias = brentq(lambda b: _normal_ece(b, 1.0) - start, 0.0, 3.0)
    best = minimize_scalar(lambda k: _normal_ece(bias, k), bounds=(1.0, 10.0), method="bounded")
    safe = _normal_ece(0.0, 2.0) > _normal_ece(0.0, 1.0)
    return graded(holds=best.fun > start - 0.001, partly=safe), (
        f"with b = {bias:.2f} widening by {best.x:.2f} lowers ECE from {start:.3f} to "
        f"{best.fun:.3f}; with b = 0 widening by 2 raises it from 0 to {_normal_ece(0.0, 2.0):.3f}"
    )


@on_each_dataset(lambda found: all_clear(found, all))
def weighting_is_worst(results, dataset):
    ece = semireal(results, "ece", dataset, *COMPETITORS, "heckman_two_step")
    weighted = ece.pop("weighted_ensemble")
    second = max(ece, key=lambda m: ece[m].mean())
    p = signed_rank(weighted, ece[second], "greater")
    highest = weighted.mean() > ece[second].mean()
    next_worst = listed({second: number(ece[second])})
    return (highest, p <= SIGNIFICANT), f"{number(weighted)}, next {next_worst} ({p_text(p)})"


def skyline_undercovers(results):
    coverage = {d: semireal(results, "coverage90", d, "skyline")["skyline"] for d in DATASETS}
    below = np.mean(coverage["wine"] < NOMINAL)
    numbers = "; ".join(f"{d.capitalize()} {percent(v)}" for d, v in coverage.items())
    return graded(holds=False, partly=below > 0.5), (
        f"{numbers}; the cause remains open: no row has a regularised skyline"
    )


@on_each_dataset(lambda best: graded(holds=max(best) < NOMINAL))
def none_reaches_nominal(results, dataset):
    methods = ("heckman_two_step", *COMPETITORS, "skyline")
    coverage = semireal(results, "coverage90", dataset, *methods)
    top = max(coverage, key=lambda m: coverage[m].mean())
    return coverage[top].mean(), listed({top: percent(coverage[top])})


@on_each_dataset(lambda small: graded(holds=all(small), partly=any(small)))
def coincide_at_zero(results, dataset):
    methods = ("heckman_two_step", "deep_ensemble")
    two_step, ensemble = semireal(results, "coverage90", dataset, *methods, rho=0.0).values()
    gap = np.mean(two_step - ensemble)
    both = f"{percent(two_step)} against {percent(ensemble)}"
    return abs(gap) < 0.02, f"{both} ({100 * gap:+.1f} points)"


def costs_nothing(results):
    others = ("blind_two_head", "deep_ensemble")
    worse, parts = {1.0: [], 0.0: []}, []
    for alpha, found in worse.items():
        for metric, name, side in (
            ("nll", "NLL", "greater"),
            ("ece", "ECE", "greater"),
            ("coverage90", "coverage", "less"),
        ):
            values = controlled(results, metric, *HECKMAN, *others, rho=0.0, alpha=alpha)
            for ours, other in product(HECKMAN, others):
                p = signed_rank(values[ours], values[other], side)
                if p <= SIGNIFICANT:
                    found.append(f"{name} of {LABELS[ours]} against {LABELS[other]} ({p_text(p)})")
            if metric == "ece":
                parts.append(f"ECE at α = {alpha:.0f}: {listed(values, number)}")
    lists = [f"α = {alpha:.0f}: {', '.join(found) or 'none'}" for alpha, found in worse.items()]
    numbers = f"{'; '.join(parts)}; significantly worse: {'; '.join(lists)}"
    return graded(holds=not worse[1.0] and not worse[0.0], partly=not worse[1.0]), numbers


def _normal_ece(bias: float, scale: float) -> float:
    """Region-ECE of the prediction N(bias, scale²) where outcomes are N(0, 1)."""
    below = norm.cdf(bias + scale * norm.ppf(LEVELS))
    return float(np.mean(np.abs(below - LEVELS)))
