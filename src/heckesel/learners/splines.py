"""Linear and spline regression with a ridge penalty, for all folds from one Gram matrix."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

KNOTS = 6  # of a natural cubic spline, at quantiles: four curved columns
MANY_KNOTS, FEW_COLUMNS = 10, 20  # knots of the outcome, where x has few columns
MOST_FOR_PRODUCTS = 14  # columns; beyond that their pairwise products are too many to pay
MARGIN = 0.5  # beyond the middle 99 % of a column, as a share of its width, a function may vary
SAMPLE = 65_536  # rows, about, from which knots are learned
BLOCK = 8_192  # rows of the basis in memory at a time
PENALTIES = 10.0 ** np.arange(-4.0, 2.1, 0.75)  # per row, of standardised curved columns
ALMOST_FREE = 1e-6  # penalty per row of the linear columns, so that collinear ones have a solution


@dataclass(frozen=True)
class Basis:
    """Columns 1, x, natural cubic splines of x, products of two columns, all standardised.

    center, scale, low, high : (p,) of x; beyond low and high every function is constant, since an
        outlier among the selected says nothing about others
    knots : (p, c), NaN where a column enters linearly
    line, size : (p, 2, c - 2) and (p, c - 2): the straight lines that are subtracted from
        the splines, and what they are divided by
    pairs : (2, h) columns that are multiplied; pair_center, pair_scale : (h,)
    """

    center: np.ndarray
    scale: np.ndarray
    low: np.ndarray
    high: np.ndarray
    knots: np.ndarray
    line: np.ndarray
    size: np.ndarray
    pairs: np.ndarray
    pair_center: np.ndarray
    pair_scale: np.ndarray

    @property
    def width(self) -> int:
        return 1 + len(self.center) + self.curved.sum() * self.size.shape[1] + self.pairs.shape[1]

    @property
    def curved(self) -> np.ndarray:
        return ~np.isnan(self.knots[:, 0])

    @property
    def bent(self) -> np.ndarray:
        """(q,) whether a column is curved or a product, so that the ridge penalty applies."""
        return np.arange(self.width) > len(self.center)

    def unit(self, x: np.ndarray) -> np.ndarray:
        """(m, p) x in units of its standard deviation, inside low and high"""
        return (np.clip(x, self.low, self.high) - self.center) / self.scale

    @property
    def straight(self) -> "Basis":
        """The first columns alone: 1 and x."""
        none = np.zeros(0)
        knots, pairs = np.full_like(self.knots, np.nan), np.zeros((2, 0), int)
        return replace(self, knots=knots, pairs=pairs, pair_center=none, pair_scale=none)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """(m, q)"""
        p, h = len(self.center), self.size.shape[1]
        columns = np.empty((self.width, len(x)))
        columns[0] = 1.0
        unit = columns[1 : 1 + p]
        unit[:] = self.unit(x).T
        end = 1 + p
        for j in np.flatnonzero(self.curved):
            bent = _natural(unit[j], self.knots[j]) - self.line[j, 0][:, None]
            bent -= self.line[j, 1][:, None] * unit[j]
            np.divide(bent, self.size[j][:, None], out=columns[end : end + h])
            end += h
        for (i, j), center, scale in zip(
            self.pairs.T, self.pair_center, self.pair_scale, strict=True
        ):
            columns[end] = (unit[i] * unit[j] - center) / scale
            end += 1
        return columns.T


def _natural(t: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """(c - 2, m) truncated cubes that are straight lines beyond the outer knots."""
    beyond = np.maximum(t - knots[:, None], 0.0)
    cubes = beyond * beyond * beyond  # NumPy's third power takes ten times as long
    slopes = (cubes[:-1] - cubes[-1]) / (knots[-1] - knots[:-1])[:, None]
    return slopes[:-1] - slopes[-1]


def learn_basis(x: np.ndarray, weight=None, *, curved: bool = True, count: int = KNOTS) -> Basis:
    """The basis of these rows; `curved=False` leaves 1 and x; count : of knots"""
    p, h = x.shape[1], count - 2
    weight = np.ones(len(x)) if weight is None else weight
    some = slice(None, None, max(1, len(x) // SAMPLE))

    def quantile(values, levels):
        # of the inverted distribution function, in which a weight is a number of copies
        return np.quantile(values, levels, axis=0, weights=weight[some], method="inverted_cdf")

    low, high = x.min(axis=0), x.max(axis=0)
    inner, outer = quantile(x[some], [0.005, 0.995])
    width = np.where(outer > inner, (1 + MARGIN) * (outer - inner), np.inf)
    low, high = np.maximum(low, outer - width), np.minimum(high, inner + width)
    x = np.clip(x, low, high)
    center, scale = _moments(x, weight)
    knots, line, size = np.full((p, count), np.nan), np.zeros((p, 2, h)), np.ones((p, h))
    sample, share = (x[some] - center) / scale, weight[some]
    for j in range(p if curved else 0):
        values = np.unique(sample[:, j])
        if len(values) < count + 2:
            continue
        levels = np.linspace(0.03, 0.97, count)
        at = quantile(sample[:, j], levels)
        if len(np.unique(at)) < count:
            at = np.quantile(values, levels)
        curves = _natural(sample[:, j], at).T
        straight = np.column_stack([np.ones(len(sample)), sample[:, j]])
        root = np.sqrt(share)[:, None]
        line[j] = np.linalg.lstsq(root * straight, root * curves, rcond=None)[0]
        spread = _moments(curves - straight @ line[j], share)[1]
        if spread.min() > 1e-8 * np.abs(curves).max():
            knots[j], size[j] = at, spread
    few = curved and 1 < p <= MOST_FOR_PRODUCTS
    pairs = np.array(np.triu_indices(p, 1)) if few else np.zeros((2, 0), int)
    products = sample[:, pairs[0]] * sample[:, pairs[1]]
    middle, spread = _moments(products, share)
    vary = np.ptp(products, axis=0) > 1e-8
    return Basis(
        center, scale, low, high, knots, line, size, pairs[:, vary], middle[vary], spread[vary]
    )


def _moments(values, weight):
    """Weighted means and standard deviations, 1 for a constant column."""
    center = np.average(values, axis=0, weights=weight)
    scale = np.sqrt(np.average((values - center) ** 2, axis=0, weights=weight))
    return center, np.where(scale > 0, scale, 1.0)


@dataclass(frozen=True)
class RidgeMembers:
    """k fits on one basis. basis_of_x : Basis; coef : (k, q)"""

    basis: Basis
    coef: np.ndarray

    def predict_members(self, x: np.ndarray) -> np.ndarray:
        """(k, m)"""
        blocks = [self.basis(x[i : i + BLOCK]) @ self.coef.T for i in range(0, len(x), BLOCK)]
        return np.concatenate(blocks).T if blocks else np.zeros((len(self.coef), 0))


@dataclass(frozen=True)
class FoldedRows:
    """Rows that are split into folds, and ridge regressions on them from Gram matrices by fold.

    x : (n, p); weight : (n,); folds : (n,) of 0, 1, ...
    """

    x: np.ndarray
    weight: np.ndarray
    folds: np.ndarray

    @cached_property
    def basis(self) -> Basis:
        count = MANY_KNOTS if self.x.shape[1] <= FEW_COLUMNS else KNOTS
        return learn_basis(self.x, self.weight, count=count)

    @cached_property
    def places(self) -> list[np.ndarray]:
        """The rows of each fold."""
        return [np.flatnonzero(self.folds == k) for k in range(self.folds.max() + 1)]

    def blocks(self, basis: Basis):
        """Fold, some of its rows and their basis, one after the other."""
        for k, rows in enumerate(self.places):
            for start in range(0, len(rows), BLOCK):
                some = rows[start : start + BLOCK]
                yield k, some, basis(self.x[some])

    @cached_property
    def gram(self) -> np.ndarray:
        """(k, q, q)"""
        q = self.basis.width
        gram = np.zeros((len(self.places), q, q))
        for k, rows, b in self.blocks(self.basis):
            b = b * np.sqrt(self.weight[rows])[:, None]
            gram[k] += b.T @ b
        return gram

    def fit_ridge(self, y: np.ndarray, *, curved: bool):
        """Out-of-fold predictions (n,) and the members, one per fold.

        The penalty is the one with the lowest held-out loss.
        """
        basis = self.basis if curved else self.basis.straight
        q, count = basis.width, len(self.places)
        gram, cross = self.gram[:, :q, :q], np.zeros((count, q))
        for k, rows, b in self.blocks(basis):
            cross[k] += (self.weight[rows] * y[rows]) @ b
        total, right, n = gram.sum(axis=0), cross.sum(axis=0), self.weight.sum()
        free = np.full(q, ALMOST_FREE)
        free[0] = 0.0
        squares = self.weight @ y**2
        best: tuple[float, Any] = np.inf, None
        for penalty in PENALTIES if curved else PENALTIES[:1]:
            ridge = n * np.where(basis.bent, penalty, free)
            coef = np.stack(
                [_solve(total - gram[k], right - cross[k], ridge) for k in range(count)]
            )
            loss = squares - 2 * np.sum(coef * cross) + np.einsum("ki,kij,kj", coef, gram, coef)
            if loss < best[0]:
                best = loss, coef
        members = RidgeMembers(basis, best[1])
        held_out = np.empty(len(y))
        for k, rows, b in self.blocks(basis):
            held_out[rows] = b @ members.coef[k]
        return held_out, members


def _solve(gram, right, ridge):
    scale = 1.0 / np.sqrt(np.diag(gram) + ridge + 1e-300)
    scaled = gram * scale[:, None] * scale + np.diag(ridge * scale**2 + 1e-10)
    return scale * cho_solve(cho_factor(scaled), scale * right)
