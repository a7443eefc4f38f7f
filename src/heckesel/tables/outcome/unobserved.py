"""Values of the outcome that stand for a missing one, such as 0 or 999."""

from numbers import Real

import numpy as np
import pandas as pd

from heckesel.data import SelectionData
from heckesel.errors import DataError

# Values that surveys and forms write where there is no answer.
SUSPECTS = (0.0, -1.0, -9.0, -99.0, -999.0, 9.0, 99.0, 999.0, 9999.0)
# A spike is a value of at least this share of the outcomes that is this many times as frequent as
# every other value. Counts and grades have frequent values, too, but not one so far above the next.
SPIKE_SHARE, SPIKE_RATIO = 0.05, 5
# Of gifts and prices, round numbers are frequent, too: a third of the outcomes need not be so far
# above them.
LARGE_SHARE, LARGE_RATIO = 1 / 3, 2
FEWEST_VALUES = 12  # with at most so many values, a frequent one is no surprise


def unobserved_values(given) -> list:
    """The option `unobserved` as a list of numbers and strings."""
    if given is None:
        return []
    values = list(given) if isinstance(given, list | tuple | set | frozenset) else [given]
    if not all(isinstance(value, str | Real | np.bool_) for value in values):
        raise DataError(
            f"unobserved must be a value of the outcome or a list of values, got {given!r}"
        )
    return values


def without_unobserved(values: np.ndarray, given) -> np.ndarray:
    """(n,) outcomes with the values of `given` set to missing: NaN, or None for objects."""
    codes = unobserved_values(given)
    if not codes:
        return values
    if values.dtype == object:
        labels = pd.Series(values, dtype=object)  # compared as in Python, whatever their type
        return labels.mask(labels.isin(codes), None).to_numpy()
    numbers = [float(code) for code in codes if not isinstance(code, str)]
    return np.where(np.isin(values, numbers), np.nan, values)


def known_values(column: pd.Series, given) -> pd.Series:
    """A column of any type in which the values of `given` are missing."""
    known = column.mask(column.isin(unobserved_values(given)))
    return pd.to_numeric(known) if known.dtype == object else known


def disguised(values: np.ndarray) -> float | None:
    """The value that may stand for a missing outcome: a spike at one of SUSPECTS.

    values : (n,) numbers, NaN where missing
    """
    found, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(found) <= FEWEST_VALUES:
        return None
    most, second = np.argsort(counts)[:-3:-1]
    rules = (SPIKE_SHARE, SPIKE_RATIO), (LARGE_SHARE, LARGE_RATIO)
    least = min(max(share * counts.sum(), ratio * counts[second]) for share, ratio in rules)
    spike = counts[most] >= least
    return float(found[most]) if spike and found[most] in SUSPECTS else None


def question(data) -> str:
    """The sentence that points to a spike of the outcome; empty if there is none, and for rows
    that are read from files one part at a time."""
    value = disguised(data.y) if isinstance(data, SelectionData) else None
    if value is None:
        return ""
    values, name = data.y, data.y_name
    rows, n = np.count_nonzero(values == value), np.count_nonzero(~np.isnan(values))
    return (
        f"the outcome {name!r} is {value:g} in {rows:,} of {n:,} rows; if this value stands for a "
        f"missing outcome, pass unobserved={value:g} (--unobserved {value:g} in the shell)"
    )
