"""A random sample of a long table that keeps rare units, with weights that correct for this."""

from dataclasses import replace

import numpy as np

from heckesel.data import SelectionData

MOST_UNITS = 20_000
FEWEST_OF_KIND = 2_000  # of the selected and of the unselected units
FEWEST_OF_LEVEL = 20  # selected and unselected units of each level, to avoid separation


def sampled_units(data: SelectionData, seed: int) -> SelectionData:
    """About `MOST_UNITS` units, or all of them if there are no more.

    A unit is kept with a probability that depends on whether it is selected and on its rarest
    level, and its weight is divided by that probability. The weights keep their mean.
    """
    if data.n <= MOST_UNITS:
        return data
    kept = np.full(data.n, MOST_UNITS / data.n)
    for rows in (data.s, ~data.s):
        count = max(int(rows.sum()), 1)
        kept[rows] = np.maximum(kept[rows], min(FEWEST_OF_KIND / count, 1.0))
        for column in data.w.T:
            rare = _rarer_value(column) & rows
            kept[rare] = np.maximum(kept[rare], min(FEWEST_OF_LEVEL / max(rare.sum(), 1), 1.0))
    chosen = np.random.default_rng(seed).random(data.n) < kept
    some = data.take(chosen)
    weight = some.weight / kept[chosen]
    return replace(some, weight=weight * (data.weight.mean() / weight.mean()))


def _rarer_value(column: np.ndarray) -> np.ndarray:
    """(n,) the rows with the rarer of two values; none if a column has more values."""
    low, high = column.min(), column.max()
    is_high = column == high
    if not (is_high | (column == low)).all() or low == high:
        return np.zeros(len(column), dtype=bool)
    return is_high if is_high.mean() <= 0.5 else ~is_high
