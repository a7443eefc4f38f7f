"""Claims on A-E1 without the instrument, on the warm-up, and on which of the two fits to prefer."""

import numpy as np

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
from reproduction.pages.paired_tests import signed_rank
from reproduction.pages.rows import Results, members, over_seeds

COLLAPSED = 0.3  # members nearer to 0 than this have collapsed


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
        percent(*controlled(results, "coverage90", "heckman_two_step", alpha=alpha).values())
        for alpha in (1.0, 0.0)
    )
    return graded(holds=all(clear), partly=any(on_average)), (
        f"coverage of the two-step at ρ = .9 falls from {before} to {after}; ECE at "
        + "; ".join(parts)
    )


def biased_without(results):
    with_it = [controlled(results, "bias_f0", *HECKMAN, rho=rho) for rho in (0.0, *RHOS)]
    small = {m: max(abs(bias[m].mean()) for bias in with_it) for m in HECKMAN}
    others = (*BASELINES, "weighted_ensemble", "blind_two_head")
    large = controlled(results, "bias_f0", *HECKMAN, *others, alpha=0.0)
    good = max(small.values()) < 0.02 and min(v.mean() for v in large.values()) > 0.2
    return graded(holds=good), (
        f"largest |mean bias| with: {listed(small, number)}; at ρ = .9 without: "
        f"{listed(large, number)}"
    )


def rho_collapses(results):
    rho = _members(results)
    right, wrong = rho[rho > COLLAPSED], rho[rho < -COLLAPSED]
    near = rho.size - right.size - wrong.size
    return graded(holds=near > rho.size / 2, partly=near > 0), (
        f"the mean is {rho.mean():.2f}, but {near} of {rho.size} members are near 0: {right.size} "
        f"are at {_span(right)}, {wrong.size} at {_span(wrong)}; the mean averages two modes"
    )


def inflated_intervals(results):
    width, wide, coverage = (
        controlled(results, metric, "heckman_joint", alpha=alpha)["heckman_joint"]
        for metric, alpha in (("width90", 1.0), ("width90", 0.0), ("coverage90", 0.0))
    )
    rho, p = _members(results), signed_rank(wide, width, "greater")
    near, wider = int(np.sum(np.abs(rho) < COLLAPSED)), p <= SIGNIFICANT
    return graded(holds=wider and near > 0, partly=wider), (
        f"{percent(coverage)} with intervals {number(wide, 2)} wide, against "
        f"{number(width, 2)} with the instrument ({p_text(p)}); sd of ρ over the members of "
        f"an ensemble {rho.std(axis=1).mean():.2f}, {near} of {rho.size} members near 0"
    )


def two_step_exposes(results):
    methods = (*HECKMAN, "deep_ensemble")
    ours, joint, ensemble = controlled(results, "coverage90", *methods, alpha=0.0).values()
    width, joint_width, _ = controlled(results, "width90", *methods, alpha=0.0).values()
    p = signed_rank(ours, joint, "less")
    return graded(holds=p <= SIGNIFICANT), (
        f"{percent(ours)} with width {number(width, 2)}, joint {percent(joint)} "
        f"with {number(joint_width, 2)} ({p_text(p)}), deep ensemble {percent(ensemble)}"
    )


def nothing_to_trust(results):
    bias, coverage = (
        controlled(results, metric, *HECKMAN, alpha=0.0) for metric in ("bias_f0", "coverage90")
    )
    bad = all(bias[m].mean() > 0.2 and coverage[m].std() > 0.1 for m in HECKMAN)
    rho = _members(results)
    right = int(np.sum(np.abs(rho - 0.9) < 0.1))
    return graded(holds=bad and not right, partly=bad), (
        f"bias {listed(bias, number)}; coverage "
        f"{listed(coverage, lambda v: f'{percent(v)} ± {100 * v.std():.1f}')}; but "
        f"{right} of {rho.size} joint members have ρ within .1 of the truth, and equal weights mix "
        "them with the others"
    )


def _members(results: Results) -> np.ndarray:
    """rho of every member of the joint fits at rho = .9: (n_seeds, k)"""
    return members(results.e1, method="heckman_joint", rho=0.9, alpha=0.0)


def _span(values: np.ndarray) -> str:
    return f"{values.min():.2f} to {values.max():.2f}" if values.size else "none"


def _warm_up(results: Results, schedule: str, rho: float) -> list[np.ndarray]:
    """Estimates of rho without and with the warm-up, with the instrument."""
    cell = {"schedule": schedule, "rho": rho, "alpha": 1.0}
    return [over_seeds(results.warm_up, "rho_hat", warm_up=epochs, **cell) for epochs in (0, 100)]


def _both(without: np.ndarray, with_it: np.ndarray, digits: int) -> str:
    first, second = (f"{v.mean():.{digits}f} ± {v.std():.{digits}f}" for v in (without, with_it))
    return f"{first} without, {second} with"


def warm_up_needed(results):
    parts, drops = [], []
    for rho in (0.8, 0.9):
        without, with_it = _warm_up(results, "paper", rho)
        drops.append(np.mean(with_it - without))
        most = f"largest difference over seeds {np.abs(with_it - without).max():.1e}"
        parts.append(f"true {rho}: {_both(without, with_it, 3)} ({most})")
    return graded(holds=min(drops) >= 0.1, partly=max(drops) >= 0.1), "; ".join(parts)


def collapse_is_short_training(results):
    parts, only_without = [], []
    for schedule in ("200 epochs", "learning rate 1e-3"):
        without, with_it = _warm_up(results, schedule, 0.8)
        only_without.append(without.mean() < COLLAPSED <= with_it.mean())
        parts.append(f"{schedule}: {_both(without, with_it, 2)}")
    numbers = f"true .8; {'; '.join(parts)}. ρ̂ collapses when training is short, warm-up or not"
    return graded(holds=all(only_without), partly=any(only_without)), numbers


def two_step_more_stable(results):
    every, high = [], {}
    for metric, name in (("coverage90", "coverage"), ("bias_f0", "bias"), ("ece", "ECE")):
        for rho in (0.0, *RHOS):
            two_step, joint = controlled(results, metric, *HECKMAN, rho=rho).values()
            every.append(joint.std() / two_step.std())
        high[name] = every[-1]
    numbers = f"at ρ = .9 {listed(high, '{:.2f}'.format)}"
    numbers += f"; over all ρ {min(every):.2f} to {max(every):.2f}"
    return graded(holds=min(high.values()) > 1.5, partly=max(every) > 1.5), numbers


def two_step_default(results):
    parts, gaps, lower = [], [], False
    for name, (two_step, joint) in paired_ece(results, *HECKMAN).items():
        p = signed_rank(two_step, joint)
        gaps.append(np.mean(two_step - joint))
        lower |= gaps[-1] < 0 and p <= SIGNIFICANT
        parts.append(f"{name}: {gaps[-1]:+.3f} ({p_text(p)})")
    return graded(holds=max(gaps) <= 0 and lower, partly=min(gaps) < 0), "; ".join(parts)
