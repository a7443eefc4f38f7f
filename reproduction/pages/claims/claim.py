"""A claim of the paper, and how its numbers are computed and written."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from reproduction.pages.method_labels import LABELS
from reproduction.pages.paired_tests import signed_rank
from reproduction.pages.rows import Results, over_seeds

HOLDS, PARTLY, FAILS, UNTESTED = "holds", "partly", "does not hold", "not tested here"
SIGNIFICANT = 0.05
BASELINES = ("deep_ensemble", "mc_dropout", "gp")
HECKMAN = ("heckman_two_step", "heckman_joint")
RHOS = (0.3, 0.6, 0.9)  # with selection on unobservables
ByMethod = dict[str, np.ndarray]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and the rule that tests it.

    where : section of the paper
    rule : results -> (verdict, the numbers behind it); None if no committed row can test it
    untested : why there is no rule
    """

    where: str
    says: str
    rule: Callable[[Results], tuple[str, str]] | None
    test: str = "none"
    untested: str = ""

    def decide(self, results: Results) -> tuple[str, str]:
        return self.rule(results) if self.rule else (UNTESTED, self.untested)


def graded(*, holds: bool, partly: bool = False) -> str:
    return HOLDS if holds else PARTLY if partly else FAILS


def controlled(
    results: Results, metric: str, *methods: str, region="against", rho=0.9, alpha=1.0
) -> ByMethod:
    """A metric of A-E1: values over seeds by method."""
    find = partial(over_seeds, results.e1, f"{metric}_{region}", rho=rho, alpha=alpha)
    return {m: find(method=m) for m in methods}


def semireal(
    results: Results, metric: str, dataset: str, *methods: str, region="against", rho=0.8
) -> ByMethod:
    """A metric of A-E2: values over seeds by method."""
    find = partial(over_seeds, results.e2, f"{metric}_{region}", dataset=dataset, rho=rho)
    return {m: find(method=m) for m in methods}


def paired_ece(results: Results, *methods: str) -> dict[str, list[np.ndarray]]:
    """ECE of two methods in the settings where the paper compares them: A-E1 with the instrument,
    and A-E2."""
    pairs = {f"A-E1 ρ = {rho}": controlled(results, "ece", *methods, rho=rho) for rho in RHOS}
    for dataset in ("california", "wine"):
        pairs[dataset.capitalize()] = semireal(results, "ece", dataset, *methods)
    return {name: list(pair.values()) for name, pair in pairs.items()}


def below(first: np.ndarray, second: np.ndarray) -> bool:
    """Lower beyond chance, in a one-sided test over seeds."""
    return signed_rank(first, second, "less") <= SIGNIFICANT


def percent(values, digits: int = 1) -> str:
    return f"{100 * np.mean(values):.{digits}f} %"


def number(values, digits: int = 3) -> str:
    return f"{np.mean(values):.{digits}f}"


def p_text(p: float) -> str:
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".")


def listed(values: dict, show: Callable[..., str] = str) -> str:
    """ "deep ensemble 64.5 %, MC dropout 70.9 %" """
    return ", ".join(f"{LABELS.get(name, name)} {show(value)}" for name, value in values.items())
