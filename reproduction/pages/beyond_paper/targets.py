"""A target, its measured value, and whether it is met: one rule for all of them; with numbers and
tables in Markdown.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from heckesel.errors import DataError
from reproduction.pages.macros import fixed
from reproduction.pages.method_labels import LABELS
from reproduction.pages.rows import Row, over_seeds

MET, MISSED, NOT_RUN = "met", "missed", "not run"


@dataclass(frozen=True)
class NumberFormat:
    """How a value and a distance between two values are written."""

    value: Callable[[float], str]
    distance: Callable[[float], str]


NUMBER = NumberFormat(lambda v: fixed(v, 3), lambda v: _distance(v, 3))
# A distance between two percentages is in points.
PERCENT = NumberFormat(
    lambda v: f"{fixed(100 * v, 1)} %", lambda v: f"{_distance(100 * v, 1)} points"
)


def seed_values(rows: Sequence[Row], metric: str, **cell) -> np.ndarray:
    """The metric over seeds, empty where the cell has not been run or has no such metric."""
    try:
        return over_seeds(rows, metric, **cell)
    except (DataError, KeyError):
        return np.array([])


def mean_and_sd(values: np.ndarray, form: NumberFormat = NUMBER) -> str:
    """Mean ± standard deviation over seeds (divisor n)."""
    if len(values) == 0:
        return ""
    mean, sd = form.value(float(values.mean())), form.value(float(values.std()))
    return f"{mean.removesuffix(' %')} ± {sd}"


def decimal(value: float) -> str:
    """.9 as `.9`, -.5 as `-.5`, 1.0 as `1`, 0.0 as `0`."""
    sign = "-" if value < 0 else ""
    return sign + (f"{abs(value):g}".removeprefix("0") or "0")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _distance(value: float, digits: int) -> str:
    """A distance that would round to zero is written as below the last digit."""
    unit = 10**-digits
    return f"less than {unit:.{digits}f}" if value < unit / 2 else fixed(value, digits)


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


def number_row(says: str, method: str, value, low=-inf, high=inf, form=NUMBER, measured=""):
    """One number with its bounds, ends included, or several with bounds in the same order.

    measured : how the numbers are shown, if not as they are
    """
    value, label = np.atleast_1d(value).astype(float), LABELS.get(method, method)
    if np.isnan(value).any() or np.isnan([*np.atleast_1d(low), *np.atleast_1d(high)]).any():
        return TargetRow(says, label, "", NOT_RUN)
    excess = float(np.max(np.maximum(np.subtract(low, value), np.subtract(value, high))))
    verdict = MET if excess <= 0 else f"{MISSED} by {form.distance(excess)}"
    return TargetRow(says, label, measured or "; ".join(map(form.value, value)), verdict)


def seeds_row(says: str, method: str, values, low=-inf, high=inf, form=NUMBER, statistic=np.mean):
    """A statistic over seeds or regimes, shown as their mean ± standard deviation."""
    value = statistic(values) if len(values) else np.nan
    return number_row(says, method, value, low, high, form, mean_and_sd(values, form))
