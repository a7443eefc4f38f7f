"""A target, its measured value, and whether it is met: one rule for all of them."""

from dataclasses import dataclass
from math import inf

import numpy as np

from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.method_labels import LABELS

MET, MISSED, NOT_RUN = "met", "missed", "not run"


@dataclass(frozen=True)
class Requirement:
    """Values over seeds, and the bounds of their statistic.

    label : distinguishes this requirement from others of the same target
    note : written behind the numbers
    """

    values: np.ndarray
    low: float = -inf
    high: float = inf
    label: str = ""
    note: str = ""


@dataclass(frozen=True)
class TargetRow:
    """One row of the table of targets."""

    target: str
    method: str
    measured: str
    verdict: str

    @property
    def kind(self) -> str:
        """`met`, `missed` or `not run`: the verdict without the distance."""
        return MISSED if self.verdict.startswith(MISSED) else self.verdict


def target_row(
    target: str, method: str, *requirements, form=md.NUMBER, statistic=np.mean, absolute=False
) -> TargetRow:
    """Met if the statistic of every requirement lies within its bounds, ends included.

    requirements : each a `Requirement`
    absolute : compare the absolute value of the statistic
    """
    label = LABELS.get(method, method)
    if any(len(each.values) == 0 for each in requirements):
        return TargetRow(target, label, "", NOT_RUN)
    excess, measured = -inf, []
    for each in requirements:
        value = float(statistic(each.values))
        value = abs(value) if absolute else value
        excess = max(excess, each.low - value, value - each.high)
        measured.append(f"{each.label} {md.mean_and_sd(each.values, form)}{each.note}".lstrip())
    verdict = MET if excess <= 0 else f"{MISSED} by {form.distance(excess)}"
    return TargetRow(target, label, "; ".join(measured), verdict)


def number_row(
    says: str, method: str, value, low=-np.inf, high=np.inf, form=md.NUMBER
) -> TargetRow:
    """One number with its bounds, or several with bounds in the same order."""
    value = np.atleast_1d(value).astype(float)
    if np.isnan(value).any():
        return TargetRow(says, method, "", NOT_RUN)
    excess = float(np.max(np.maximum(np.subtract(low, value), np.subtract(value, high))))
    verdict = MET if excess <= 0 else f"{MISSED} by {form.distance(excess)}"
    return TargetRow(says, method, "; ".join(map(form.value, value)), verdict)


def coverage_target(
    where: str, method: str, values: np.ndarray, low: float, high=inf, *, region="", note=""
) -> TargetRow:
    """Coverage between two shares, or above one."""
    wanted = f"≥ {100 * low:.0f} %" if high == inf else f"{100 * low:.0f}–{100 * high:.0f} %"
    wanted += f", {region}" if region else ""
    requirement = Requirement(values, low, high, note=note)
    return target_row(f"{where}: coverage {wanted}", method, requirement, form=md.PERCENT)


def bias_target(where: str, method: str, values: np.ndarray, limit: float) -> TargetRow:
    """Absolute value of the mean bias at most `limit`."""
    note = f", mean of \\|bias\\| over seeds {md.mean_absolute(values)}"
    requirement = Requirement(values, high=limit, note=note)
    says = f"{where}: \\|bias\\| ≤ {md.decimal(limit)}"
    return target_row(says, method, requirement, absolute=True)


def not_above(values: np.ndarray, theirs: np.ndarray, *, name: str, label: str = "") -> Requirement:
    """At most the mean of another method's values, which is shown; not run without them."""
    if len(theirs) == 0:
        return Requirement(theirs, label=label)
    limit = float(theirs.mean())
    return Requirement(values, high=limit, label=label, note=f" ({name} {md.NUMBER.value(limit)})")
