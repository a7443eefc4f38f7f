"""Estimates of the ends of bounds, and what each unit contributes to them.

Every estimator computes a lower end. The upper end is minus the lower end of -y.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from heckesel.classical.covariance import critical_value
from heckesel.diagnostics.bounds.bounded_sample import BoundedSample

ROUNDING = 1e-12  # cumulative shares err by less


@dataclass(frozen=True)
class Maxima:
    """A weighted sum of maxima over estimates, of which several may be the largest.

    contributions : (n, j) of the estimates
    largest : (j,) positions of the maxima
    candidates : (j, j) bool, row by row the estimates that may be the maximum
    share : (j,) weights of the maxima
    """

    contributions: np.ndarray
    largest: np.ndarray
    candidates: np.ndarray
    share: np.ndarray

    @property
    def regular(self) -> bool:
        """Whether every maximum has one candidate only, so that the sum is linear."""
        return bool((self.candidates.sum(axis=1) == 1).all())

    @property
    def linear(self) -> np.ndarray:
        """(n,) contributions to the sum if the largest estimates remain so."""
        return self.contributions @ np.bincount(self.largest, self.share, len(self.share))

    def derivative(self, error: np.ndarray) -> np.ndarray:
        """(b,) the change of the sum for each of b errors (b, j) of the estimates."""
        largest = np.where(self.candidates, error[:, None, :], -np.inf).max(axis=2)
        return largest @ self.share


@dataclass(frozen=True)
class End:
    """A lower end.

    linear : (n,) contributions to the part that is not in `maxima`
    maxima : the other terms of its sum
    unlimited : whether no finite confidence limit exists
    """

    value: float
    linear: np.ndarray
    maxima: tuple[Maxima, ...] = ()
    unlimited: bool = False

    def __add__(self, other: End) -> End:
        return End(
            self.value + other.value,
            self.linear + other.linear,
            self.maxima + other.maxima,
            self.unlimited or other.unlimited,
        )


@dataclass(frozen=True)
class Ends:
    """The lower end of a quantity and that of its negative."""

    lower: End
    mirrored: End

    @property
    def width(self) -> float:
        return -self.mirrored.value - self.lower.value

    def minus(self, other: Ends) -> Ends:
        """Bounds of the difference of two quantities."""
        return Ends(self.lower + other.mirrored, self.mirrored + other.lower)


def both_ends(lower_end: Callable[..., End], sample: BoundedSample, *rest) -> Ends:
    """Both ends, from a function that estimates the lower one."""
    return Ends(lower_end(sample, *rest), lower_end(sample.mirror(), *rest))


def target_end(sample: BoundedSample, values, share, contributions_of: Callable) -> End:
    """The mean or the quantile of (n,) values with weights `share`, which add up to one.

    contributions_of : from (n,) values to their (n,) contributions to the mean ``share @ values``

    An infinite value that has a weight makes the mean infinite. The standard error of a quantile is
    Woodruff's: the quantiles at both ends of an interval of the distribution function at the
    estimate, divided by the width of that interval in standard errors.
    """
    zeros = np.zeros(sample.n)
    if sample.quantile is None:
        if not np.isfinite(values[share > 0]).all():
            return End(-np.inf, zeros, unlimited=True)
        values = np.where(share > 0, values, 0.0)
        return End(float(share @ values), contributions_of(values))
    order = np.argsort(values, kind="stable")
    order = order[share[order] > 0]
    ends = values[order], np.cumsum(share[order])
    estimate = _quantile(*ends, sample.quantile, sample.mirrored)
    contributions = contributions_of((values <= estimate).astype(float))
    error = np.sqrt(sample.covariance(contributions[:, None])[0, 0])
    half = critical_value(0.95) * error
    around = sample.quantile - half, sample.quantile + half
    low, high = (_quantile(*ends, p, sample.mirrored) for p in around)
    if half == 0:
        return End(estimate, zeros, unlimited=not np.isfinite(estimate))
    if not np.isfinite([low, high]).all():
        return End(estimate, zeros, unlimited=True)
    return End(estimate, contributions * (low - high) / (2 * half))


def _quantile(values, cumulated, p: float, right: bool) -> float:
    """The smallest of the sorted values with a share of at least p at or below it; with `right`,
    of more than p, so that quantiles of -y are those of y."""
    at = np.searchsorted(cumulated, p + ROUNDING if right else p - ROUNDING, side="left")
    return float(values[min(at, len(values) - 1)])
