"""Numbers and tables of `paper/ours.md`, in Markdown."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from heckesel.errors import DataError
from reproduction.pages.macros import fixed
from reproduction.pages.paired_tests import standard_error
from reproduction.pages.rows import Row, over_seeds

NO_ROWS = "no rows"
INTERVALS = {"coverage": "coverage90_against", "width": "width90_against"}


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
        return NO_ROWS
    mean, sd = form.value(float(values.mean())), form.value(float(values.std()))
    return f"{mean.removesuffix(' %')} ± {sd}"


def mean_and_error(values: np.ndarray) -> str:
    """Mean ± its standard error."""
    return f"{mean_of(values)} ± {NUMBER.value(standard_error(values))}"


def mean_of(values: np.ndarray, form: NumberFormat = NUMBER) -> str:
    """The mean, or an empty string where there are no values."""
    return form.value(float(values.mean())) if len(values) else ""


mean_percent = partial(mean_of, form=PERCENT)


def mean_absolute(values: np.ndarray) -> str:
    """The mean of |value| over seeds, where signs do not cancel."""
    return mean_of(np.abs(values))


def decimal(value: float) -> str:
    """.9 as `.9`, -.5 as `-.5`, 1.0 as `1`, 0.0 as `0`."""
    sign = "-" if value < 0 else ""
    return sign + (f"{abs(value):g}".removeprefix("0") or "0")


@dataclass(frozen=True)
class Column:
    """A column of a table: its header, the metric it is made from, and how that is written."""

    header: str
    metric: str
    show: Callable[[Any], str] = mean_of


def columns(metrics: dict[str, str], show: Callable[..., str] = mean_of) -> list[Column]:
    """Columns by header, written by `show`; coverage as a percentage."""
    percent = partial(show, form=PERCENT)
    return [
        Column(header, metric, percent if metric.startswith("coverage") else show)
        for header, metric in metrics.items()
    ]


def metric_table(
    keys: Sequence[str],
    columns: Sequence[Column],
    lines: Iterable[tuple[Sequence[str], Callable[[str], Any]]],
) -> str:
    """A line for each setting.

    keys : headers of the columns that identify a line
    lines : the values of these columns, and a function from a metric to its values
    """
    header = [*keys, *(column.header for column in columns)]
    rows = [[*labels, *(c.show(find(c.metric)) for c in columns)] for labels, find in lines]
    return table(header, rows)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _distance(value: float, digits: int) -> str:
    """A distance that would round to zero is written as below the last digit."""
    unit = 10**-digits
    return f"less than {unit:.{digits}f}" if value < unit / 2 else fixed(value, digits)
