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
    mean = values.mean(axis=0) if weight is None else weight @ values / total
    apart = values - mean
    squares = np.einsum("ij,ij->j", apart, apart) if weight is None else weight @ apart**2
    return Moments(total, mean, squares, values.min(axis=0), values.max(axis=0))
