"""A target, its measured value, and whether it is met: one rule for all of them."""

from dataclasses import dataclass
from math import inf

import numpy as np

from reproduction.pages.beyond_paper import markdown as md
from reproduction.pages.method_labels import LABELS

MET, MISSED, NOT_RUN = "met", "missed", "not run"


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


def number_row(says: str, method: str, value, low=-inf, high=inf, form=md.NUMBER, measured=""):
    """One number with its bounds, ends included, or several with bounds in the same order.

    measured : how the numbers are shown, if not as they are
    """
    value, label = np.atleast_1d(value).astype(float), LABELS.get(method, method)
    if np.isnan(value).any() or np.isnan([*np.atleast_1d(low), *np.atleast_1d(high)]).any():
        return TargetRow(says, label, "", NOT_RUN)
    excess = float(np.max(np.maximum(np.subtract(low, value), np.subtract(value, high))))
    verdict = MET if excess <= 0 else f"{MISSED} by {form.distance(excess)}"
    return TargetRow(says, label, measured or "; ".join(map(form.value, value)), verdict)


def seeds_row(
    says: str, method: str, values, low=-inf, high=inf, form=md.NUMBER, statistic=np.mean
):
    """A statistic over seeds or regimes, shown as their mean ± standard deviation."""
    value = statistic(values) if len(values) else np.nan
    return number_row(says, method, value, low, high, form, md.mean_and_sd(values, form))
