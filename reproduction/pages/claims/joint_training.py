"""Claims on training: the warm-up of the joint fit, and which of the two fits to prefer."""

from __future__ import annotations

import numpy as np

from reproduction.pages.claims.claim import (
    COLLAPSED,
    HECKMAN,
    RHOS,
    SIGNIFICANT,
    claim,
    controlled,
    graded,
    p_text,
    paired_ece,
)
from reproduction.pages.paired_tests import signed_rank
from reproduction.pages.rows import Results, over_seeds


def _warm_up(results: Results, schedule: str, rho: float) -> list[np.ndarray]:
    """Estimates of rho without and with the warm-up, with the instrument."""
    cell = {"schedule": schedule, "rho": rho, "alpha": 1.0}
    return [over_seeds(results.warm_up, "rho_hat", warm_up=epochs, **cell) for epochs in (0, 100)]


@claim(
    "abstract, 3, 5",
    says="The joint fit is stable only with the warm-up.",
    test="ρ̂ with 0 and 100 epochs of warm-up on the same draws, the paper's schedule otherwise, "
    "with the instrument. Holds if it is lower by .1 or more without warm-up.",
)
def warm_up_needed(results):
    parts, drops = [], []
    for rho in (0.8, 0.9):
        without, with_it = _warm_up(results, "paper", rho)
        drops.append(np.mean(with_it - without))
        parts.append(
            f"true {rho}: {without.mean():.3f} ± {without.std():.3f} without, "
            f"{with_it.mean():.3f} ± {with_it.std():.3f} with (largest difference over seeds "
            f"{np.abs(with_it - without).max():.1e})"
        )
    return graded(holds=min(drops) >= 0.1, partly=max(drops) >= 0.1), "; ".join(parts)


@claim(
    "3, 5",
    says="Without warm-up ρ̂ collapses towards 0 (.16 at true .8).",
    test="The same with 200 epochs, and with learning rate 1e-3. Holds if ρ̂ is below .3 without "
    "warm-up only; fails if the warm-up does not prevent it.",
)
def collapse_is_short_training(results):
    parts, only_without = [], []
    for schedule in ("200 epochs", "learning rate 1e-3"):
        without, with_it = _warm_up(results, schedule, 0.8)
        only_without.append(without.mean() < COLLAPSED <= with_it.mean())
        parts.append(
            f"{schedule}: {without.mean():.2f} ± {without.std():.2f} without, "
            f"{with_it.mean():.2f} ± {with_it.std():.2f} with"
        )
    numbers = f"true .8; {'; '.join(parts)}. ρ̂ collapses when training is short, warm-up or not"
    return graded(holds=all(only_without), partly=any(only_without)), numbers


@claim(
    "1",
    says="With deep feature maps the two-step is markedly more stable than the joint fit.",
    test="Standard deviation over seeds with the instrument, joint over two-step, for coverage, "
    "bias and ECE. Holds if all ratios exceed 1.5 at ρ = .9; fails if none does at any ρ.",
)
def two_step_more_stable(results):
    names = {"coverage90": "coverage", "bias_f0": "bias", "ece": "ECE"}
    ratio = {}
    for metric in names:
        for rho in (0.0, *RHOS):
            two_step, joint = controlled(results, metric, *HECKMAN, rho=rho).values()
            ratio[metric, rho] = joint.std() / two_step.std()
    high = {name: ratio[metric, 0.9] for metric, name in names.items()}
    most = max(ratio.values())
    numbers = (
        f"at ρ = .9 {', '.join(f'{name} {value:.2f}' for name, value in high.items())}; over all "
        f"ρ {min(ratio.values()):.2f} to {most:.2f}"
    )
    return graded(holds=min(high.values()) > 1.5, partly=most > 1.5), numbers


@claim(
    "5",
    says="The two-step is the better default.",
    test="Paired ECE, two-step minus joint: A-E1 with the instrument, A-E2 at ρ = .8. Holds if it "
    "is higher on average nowhere and significantly lower somewhere.",
)
def two_step_default(results):
    parts, gaps, lower = [], [], False
    for name, (two_step, joint) in paired_ece(results, *HECKMAN).items():
        p = signed_rank(two_step, joint)
        gaps.append(np.mean(two_step - joint))
        lower |= gaps[-1] < 0 and p <= SIGNIFICANT
        parts.append(f"{name}: {gaps[-1]:+.3f} ({p_text(p)})")
    return graded(holds=max(gaps) <= 0 and lower, partly=min(gaps) < 0), "; ".join(parts)
