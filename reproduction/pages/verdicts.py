"""What a claim of the paper is here, and how its numbers are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reproduction.pages.rows import Results, over_seeds

HOLDS, PARTLY, FAILS, UNTESTED = "holds", "partly", "does not hold", "not tested here"
SIGNIFICANT = 0.05
WITH_INSTRUMENT = {"rho": 0.9, "alpha": 1.0}
WITHOUT_INSTRUMENT = {"rho": 0.9, "alpha": 0.0}
LABELS = {
    "deep_ensemble": "deep ensemble",
    "mc_dropout": "MC dropout",
    "gp": "GP",
    "weighted_ensemble": "weighted ensemble",
    "blind_two_head": "blind two-head",
    "heckman_joint": "joint",
    "heckman_two_step": "two-step",
    "heckman_averaged": "averaged",
    "heckman_outcome": "outcome likelihood",
    "oracle": "oracle",
    "skyline": "skyline",
    "heckman_profile": "profile",
    "spline_joint": "spline",
    "heckman_joint_t": "joint, t errors",
    "heckman_two_step_open": "two-step, open",
    "heckman_joint_open": "joint, open",
    "heckman_two_step_paper": "two-step, paper",
    "skyline_paper": "skyline, paper",
    "identify": "`hk.identify`",
}
BASELINES = ("deep_ensemble", "mc_dropout", "gp")


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and what decides it.

    where : section of the paper
    judge : results -> (verdict, the numbers it rests on)
    """

    where: str
    says: str
    test: str
    judge: Callable[[Results], tuple[str, str]]


def claim(where: str, *, says: str, test: str) -> Callable[[Callable], Claim]:
    """Makes the decorated judge a `Claim`."""
    return lambda judge: Claim(where, says, test, judge)


def untested(where: str, *, says: str, because: str) -> Claim:
    """A claim that no committed row can decide."""
    return Claim(where, says, "none", lambda results: (UNTESTED, because))


def graded(*, holds: bool, partly: bool = False) -> str:
    return HOLDS if holds else PARTLY if partly else FAILS


def controlled(results: Results, method: str, metric: str, **cell) -> np.ndarray:
    """A metric of A-E1 in the selected-against region, over seeds."""
    return over_seeds(results.e1, f"{metric}_against", method=method, **cell)


def semireal(results: Results, method: str, metric: str, dataset: str, rho: float = 0.8):
    """A metric of A-E2 in the selected-against region, over seeds."""
    return over_seeds(results.e2, f"{metric}_against", method=method, dataset=dataset, rho=rho)


def percent(values, digits: int = 1) -> str:
    return f"{100 * np.mean(values):.{digits}f} %"


def number(values, digits: int = 3) -> str:
    return f"{np.mean(values):.{digits}f}"


def p_text(p: float) -> str:
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".")


def listed(values: dict[str, str]) -> str:
    """ "deep ensemble 64.5 %, MC dropout 70.9 %" """
    return ", ".join(f"{LABELS.get(name, name)} {text}" for name, text in values.items())
