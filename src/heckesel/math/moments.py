"""Moments of columns, accumulated over batches, and which columns are linear combinations."""

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


def moments_of(values: np.ndarray) -> Moments:
    """The moments of values (n, p)."""
    if not len(values):
        none = np.zeros(values.shape[1])
        return Moments(0, none, none, none + np.inf, none - np.inf)
    # Column by column, since numpy runs along a dozen columns far more slowly than along rows.
    columns = np.array(values.T, dtype=float, order="C")
    low, high = columns.min(axis=1), columns.max(axis=1)
    first = columns[:, 0].copy()  # a mean far from zero is more precise relative to it
    columns -= first[:, None]
    away = columns.mean(axis=1)
    columns -= away[:, None]
    columns *= columns
    return Moments(len(values), first + away, columns.sum(axis=1), low, high)


# A column whose variance is explained by others up to this share is a linear combination of them:
# cross products are precise to 1e-16, and columns such as age squared leave 1e-4.
COLLINEAR_BELOW = 1e-11


def dependent_in(gram: np.ndarray) -> list[tuple[int, list[int]]]:
    """All columns that earlier ones explain, and which, from cross products of standardised columns
    (p, p): by elimination, which leaves out such columns."""
    size = np.sqrt(np.diag(gram))
    size = np.where(size > 0, size, 1.0)
    gram = gram / size / size[:, None]
    # the squared diagonal of the Cholesky factor is what those before each column do not explain
    try:
        if (np.diag(np.linalg.cholesky(gram)) ** 2 > 10 * COLLINEAR_BELOW).all():
            return []
    except np.linalg.LinAlgError:
        pass
    left = gram.copy()
    kept: list[int] = []
    found: list[tuple[int, list[int]]] = []
    for column in range(len(gram)):
        if left[column, column] < COLLINEAR_BELOW:
            weights = np.linalg.solve(gram[np.ix_(kept, kept)], gram[kept, column])
            found.append((column, [kept[j] for j in np.flatnonzero(np.abs(weights) > 1e-6)]))
            continue
        kept.append(column)
        after = slice(column + 1, None)
        row = left[column, after] / left[column, column]
        left[after, after] -= np.outer(left[column, after], row)
    return found
