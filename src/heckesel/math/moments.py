"""Mean and sum of squares of columns, accumulated over batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Moments:
    """Mean, weighted sum of squares about it, smallest and largest value.

    weight : the sum of the weights, or the number of rows if they have none
    """

    weight: float
    mean: np.ndarray
    squares: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def of_first(self, columns: int) -> Moments:
        parts = (self.mean, self.squares, self.low, self.high)
        return Moments(self.weight, *(part[:columns] for part in parts))

    def beside(self, other: Moments) -> Moments:
        """The moments of the columns of both, which have the same rows."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        _, *parts = (np.append(here, there) for here, there in pairs)
        return Moments(self.weight, *parts)

    def joined(self, other: Moments) -> Moments:
        """The moments of both batches, without the cancellation of raw sums of squares."""
        if not self.weight or not other.weight:
            return self if self.weight else other
        weight = self.weight + other.weight
        apart = other.mean - self.mean
        return Moments(
            weight,
            self.mean + apart * (other.weight / weight),
            self.squares + other.squares + apart**2 * (self.weight * other.weight / weight),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


def moments_of(values: np.ndarray, weight: np.ndarray | None = None) -> Moments:
    """The moments of values (n, p), optionally with weights (n,)."""
    total = len(values) if weight is None else float(weight.sum())
    if not total:
        none = np.zeros(values.shape[1])
        return Moments(0, none, none, none + np.inf, none - np.inf)
    # Column by column, since numpy runs along a dozen columns far more slowly than along rows.
    columns = np.array(values.T, dtype=float, order="C")
    low, high = columns.min(axis=1), columns.max(axis=1)
    first = columns[:, 0].copy()  # a mean far from zero is more precise relative to it
    columns -= first[:, None]
    away = columns.mean(axis=1) if weight is None else columns @ weight / total
    columns -= away[:, None]
    columns *= columns
    squares = columns.sum(axis=1) if weight is None else columns @ weight
    return Moments(total, first + away, squares, low, high)
