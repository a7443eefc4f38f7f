"""A target, what was measured for it, and whether it is met: one rule for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from heckesel.errors import DataError
from reproduction.pages.numbers import fixed
from reproduction.pages.rows import Row, over_seeds
from reproduction.pages.verdicts import LABELS

MET, MISSED, NOT_RUN, SHOWN = "met", "missed", "not run", "shown"
NO_ROWS = "no rows"


@dataclass(frozen=True)
class Form:
    """How a value and a distance between values are written."""

    value: Callable[[float], str]
    distance: Callable[[float], str]


NUMBER = Form(lambda v: fixed(v, 3), lambda v: _smallest(v, 3))
# A distance between two percentages is in points.
PERCENT = Form(lambda v: f"{fixed(100 * v, 1)} %", lambda v: f"{_smallest(100 * v, 1)} points")


@dataclass(frozen=True)
class Part:
    """Values over seeds, and where their statistic must lie.

    label : what tells this part of a target from its others
    beside : what is said behind the numbers
    """

    values: np.ndarray
    low: float = -inf
    high: float = inf
    label: str = ""
    beside: str = ""


@dataclass(frozen=True)
class Judged:
    """One row of the table of targets."""

    target: str
    method: str
    measured: str
    n_seeds: str
    verdict: str

    @property
    def kind(self) -> str:
        """`met`, `missed`, `not run` or `shown`: the verdict without the distance."""
        return MISSED if self.verdict.startswith(MISSED) else self.verdict


def judge(
    target: str,
    method: str,
    *parts: Part,
    form: Form = NUMBER,
    statistic: Callable[[np.ndarray], float] = np.mean,
    size: bool = False,
) -> Judged:
    """Met if the statistic of every part lies within its bounds, ends included.

    size : judge the absolute value of the statistic
    """
    if any(len(part.values) == 0 for part in parts):
        return Judged(target, LABELS.get(method, method), "", "0", NOT_RUN)
    excess = -inf
    for part in parts:
        value = float(statistic(part.values))
        value = abs(value) if size else value
        excess = max(excess, part.low - value, value - part.high)
    bounded = any(part.low > -inf or part.high < inf for part in parts)
    verdict = MET if excess <= 0 else f"{MISSED} by {form.distance(excess)}"
    return Judged(
        target,
        LABELS.get(method, method),
        "; ".join(_measured(part, form) for part in parts),
        " and ".join(sorted({str(len(part.values)) for part in parts})),
        verdict if bounded else SHOWN,
    )


def seeds(rows: Sequence[Row], metric: str, **cell) -> np.ndarray:
    """The metric over seeds, empty where no cell has been run."""
    try:
        return over_seeds(rows, metric, **cell)
    except DataError:
        return np.array([])


def spread(values: np.ndarray, form: Form = NUMBER) -> str:
    """Mean ± standard deviation over seeds (divisor n)."""
    if len(values) == 0:
        return NO_ROWS
    mean, sd = form.value(float(values.mean())), form.value(float(values.std()))
    return f"{mean.removesuffix(' %')} ± {sd}" if form is PERCENT else f"{mean} ± {sd}"


def mean_of(values: np.ndarray, form: Form = NUMBER) -> str:
    """The mean, or an empty cell of a table."""
    return form.value(float(values.mean())) if len(values) else ""


def mean_size(values: np.ndarray) -> str:
    """The mean of |value| over seeds, which signs cannot make small."""
    return NUMBER.value(float(np.abs(values).mean())) if len(values) else ""


def bias_part(values: np.ndarray, limit: float) -> Part:
    beside = f", mean of per-seed size {mean_size(values)}" if len(values) else ""
    return Part(values, high=limit, beside=beside)


def below(values: np.ndarray, theirs: np.ndarray, *, name: str, label: str = "") -> Part:
    """Not above the mean of another method's values, which is shown; not run without them."""
    if len(theirs) == 0:
        return Part(theirs, label=label)
    limit = float(theirs.mean())
    return Part(values, high=limit, label=label, beside=f" ({name} {NUMBER.value(limit)})")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def decimal(value: float) -> str:
    """.9 as `.9`, 1.0 as `1`, 0.0 as `0`."""
    return f"{value:g}".removeprefix("0") or "0"


def _measured(part: Part, form: Form) -> str:
    label = f"{part.label} " if part.label else ""
    return f"{label}{spread(part.values, form)}{part.beside}"


def _smallest(value: float, digits: int) -> str:
    """A distance that would round to zero is said to be below the last digit."""
    return (
        f"less than {10**-digits:.{digits}f}" if value < 10**-digits / 2 else fixed(value, digits)
    )
