"""Numbers and tables in Markdown."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from heckesel.errors import DataError
from reproduction.pages.macros import fixed
from reproduction.pages.rows import Row, over_seeds


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
