"""Claims on training: the warm-up of the joint fit, and which of the two fits to prefer."""

from __future__ import annotations

import numpy as np

from reproduction.pages.paired import signed_rank
from reproduction.pages.rows import over_seeds
from reproduction.pages.verdicts import (
    SIGNIFICANT,
    claim,
    controlled,
    graded,
    p_text,
)

RHOS = (0.3, 0.6, 0.9)
# Members nearer to 0 than this have collapsed.
COLLAPSED = 0.3


def _warm_up(results, schedule: str, warm_up: int, rho: float, alpha: float = 1.0) -> np.ndarray:
    cell = {"schedule": schedule, "warm_up": warm_up, "rho": rho, "alpha": alpha}
    return over_seeds(results.warm_up, "rho_hat", **cell)


@claim(
    "abstract, 3, 5",
    says="The joint fit is stable only with the warm-up.",
    test="ρ̂ with 0 and 100 epochs of warm-up on the same draws, the paper's schedule otherwise, "
    "with the instrument. Holds if it is lower without by .1 or more.",
)
def warm_up_needed(results):
    texts, drops = [], []
    for rho in (0.8, 0.9):
        without, with_it = (_warm_up(results, "paper", epochs, rho) for epochs in (0, 100))
        drops.append(np.mean(with_it - without))
        texts.append(
            f"true {rho}: {without.mean():.3f} ± {without.std():.3f} without, "
            f"{with_it.mean():.3f} ± {with_it.std():.3f} with (largest difference over seeds "
            f"{np.abs(with_it - without).max():.1e})"
        )
    return graded(holds=min(drops) >= 0.1, partly=max(drops) >= 0.1), "; ".join(texts)


@claim(
    "3, 5",
    says="Without warm-up ρ̂ collapses towards 0 (.16 at true .8).",
    test="The same with 200 epochs, and with learning rate 1e-3. Holds if ρ̂ is below .3 without "
    "warm-up only; fails if the warm-up does not prevent it.",
)
def collapse_is_short_training(results):
    texts, only_without = [], []
    for schedule in ("200 epochs", "learning rate 1e-3"):
        without, with_it = (_warm_up(results, schedule, epochs, 0.8) for epochs in (0, 100))
        only_without.append(without.mean() < COLLAPSED <= with_it.mean())
        texts.append(
            f"{schedule}: {without.mean():.2f} ± {without.std():.2f} without, "
            f"{with_it.mean():.2f} ± {with_it.std():.2f} with"
        )
    numbers = f"true .8; {'; '.join(texts)}. ρ̂ collapses when training is short, warm-up or not"
    return graded(holds=all(only_without), partly=any(only_without)), numbers


@claim(
    "1",
    says="With deep feature maps the two-step is markedly more stable than the joint fit.",
    test="Standard deviation over seeds with the instrument, joint over two-step, for coverage, "
    "bias and ECE. Holds if all ratios exceed 1.5 at ρ = .9; fails if none does at any ρ.",
)
def two_step_more_stable(results):
    ratio = {
        (metric, rho): controlled(results, "heckman_joint", metric, rho=rho, alpha=1.0).std()
        / controlled(results, "heckman_two_step", metric, rho=rho, alpha=1.0).std()
        for metric in ("coverage90", "bias_f0", "ece")
        for rho in (0.0, *RHOS)
    }
    high = [value for (_, rho), value in ratio.items() if rho == 0.9]
    numbers = (
        "at ρ = .9 "
        + ", ".join(
            f"{name} {ratio[metric, 0.9]:.2f}"
            for metric, name in (("coverage90", "coverage"), ("bias_f0", "bias"), ("ece", "ECE"))
        )
        + f"; over all ρ {min(ratio.values()):.2f} to {max(ratio.values()):.2f}"
    )
    verdict = graded(holds=min(high) > 1.5, partly=max(ratio.values()) > 1.5)
    return verdict, numbers


@claim(
    "5",
    says="The two-step is the better default.",
    test="Paired ECE, two-step less joint: A-E1 with the instrument, A-E2 at ρ = .8. Holds if it "
    "is nowhere higher on average and somewhere lower beyond chance.",
)
def two_step_default(results):
    pairs = {
        f"A-E1 ρ = {rho}": [
            controlled(results, m, "ece", rho=rho, alpha=1.0)
            for m in ("heckman_two_step", "heckman_joint")
        ]
        for rho in RHOS
    }
    for dataset in ("california", "wine"):
        pairs[dataset.capitalize()] = [
            over_seeds(results.e2, "ece_against", method=m, dataset=dataset, rho=0.8)
            for m in ("heckman_two_step", "heckman_joint")
        ]
    p = {name: signed_rank(*pair) for name, pair in pairs.items()}
    gap = {name: np.mean(pair[0] - pair[1]) for name, pair in pairs.items()}
    numbers = "; ".join(f"{name}: {gap[name]:+.3f} ({p_text(p[name])})" for name in pairs)
    lower = any(gap[name] < 0 and p[name] <= SIGNIFICANT for name in pairs)
    verdict = graded(holds=max(gap.values()) <= 0 and lower, partly=min(gap.values()) < 0)
    return verdict, numbers


CLAIMS = (
    warm_up_needed,
    collapse_is_short_training,
    two_step_more_stable,
    two_step_default,
)
