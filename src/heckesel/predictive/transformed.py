"""Outcomes fitted on another scale: what a `Predictive` there says about y itself.

A model of z = forward(y) gives a distribution of z. That of y = inverse(z) has the mapped
quantiles, but not the mapped mean: E[inverse(z)] is not inverse(E[z]).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr

from heckesel.errors import DataError
from heckesel.predictive.distribution import (
    Distribution,
    GivenSelection,
    Normal,
    Predictive,
    take_points,
)
from heckesel.predictive.mixture import Mixture, Pool

# Gauss-Hermite: 20 nodes are exact for polynomials of degree 39, and the outermost, at 7.6 sd,
# is the last place where 1 - Phi still differs from 0 in floating point.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
# The slope of `inverse` by central differences over this share of an sd errs by about 1e-8.
SLOPE_STEP = 1e-4
ROUND_TRIP = 1e-6  # forward and inverse of one another, up to functions in single precision


@dataclass(frozen=True)
class TargetTransform:
    """z = forward(y) and y = inverse(z), strictly monotone; is_log : where formulas are exact."""

    forward: Callable[[np.ndarray], np.ndarray]
    inverse: Callable[[np.ndarray], np.ndarray]
    is_log: bool = False
    increasing: bool = True


@dataclass(frozen=True)
class Transformed:
    """The distribution of inverse(z) for z of `inner`; step : (m,) for slopes of `inverse`."""

    inner: Distribution
    transform: TargetTransform
    step: np.ndarray

    def cdf(self, y):
        z, possible = self._inside(y)
        below = self.inner.cdf(z)
        below = below if self.transform.increasing else 1.0 - below
        return np.where(possible, below, 0.0)

    def quantile(self, p):
        return self.transform.inverse(
            self.inner.quantile(p if self.transform.increasing else 1 - p)
        )

    def sample(self, size, rng):
        return self.transform.inverse(self.inner.sample(size, rng))

    def log_density(self, y):
        """The density of z over the slope of `inverse` there."""
        z, possible = self._inside(y)
        if self.transform.is_log:
            log_slope = z
        else:
            ends = (self.transform.inverse(z + move) for move in (self.step, -self.step))
            log_slope = np.log(np.abs(np.subtract(*ends)) / (2 * self.step))
        return np.where(possible, self.inner.log_density(z) - log_slope, -np.inf)

    def take(self, rows) -> Transformed:
        inner = take_points(self.inner, len(self.step), rows)
        return Transformed(inner, self.transform, self.step[rows])

    def _inside(self, y):
        """z, and where y is possible: the logarithm knows its domain, other functions say NaN."""
        y = np.asarray(y, dtype=float)
        possible = y > 0 if self.transform.is_log else np.ones(y.shape, dtype=bool)
        return self.transform.forward(np.where(possible, y, 1.0)), possible


def transformed(predictive: Predictive, transform: TargetTransform | None) -> Predictive:
    """`predictive` of z as one of y; what is epistemic keeps its share of the variance.

    Where `inverse` has no value for part of the distribution of z, y has no mean: NaN.
    """
    if transform is None:
        return predictive
    moments = _log_moments if transform.is_log else _moments
    mean, variance = moments(predictive.distribution, transform)
    total = predictive.epistemic + predictive.aleatoric
    epistemic = variance * predictive.epistemic / total
    return Predictive(
        mean=mean,
        epistemic=epistemic,
        aleatoric=variance - epistemic,
        distribution=transformed_distribution(predictive, transform),
    )


def transformed_distribution(predictive: Predictive, transform: TargetTransform | None):
    """The distribution of y alone, for which no moments are needed."""
    if transform is None:
        return predictive.distribution
    return Transformed(predictive.distribution, transform, SLOPE_STEP * predictive.std)


def _log_moments(distribution: Distribution, transform: TargetTransform):
    r"""Mean and variance of :math:`e^z`, exact where :math:`E[e^{tz}]` has a formula."""
    if not _has_formula(distribution):
        return _moments(distribution, transform)
    log_mean, log_square = (_log_moment(distribution, t) for t in (1.0, 2.0))
    return np.exp(log_mean), np.exp(2 * log_mean) * np.expm1(log_square - 2 * log_mean)


def _has_formula(distribution: Distribution) -> bool:
    if isinstance(distribution, Pool):
        return all(_has_formula(part.distribution) for part in distribution.parts)
    return isinstance(
        distribution.parts if isinstance(distribution, Mixture) else distribution,
        Normal | GivenSelection,
    )


def _log_moment(distribution, t: float) -> np.ndarray:
    r"""(m,) of :math:`\log E[e^{tz}]`, :math:`t\mu + t^2\sigma^2/2` for a normal z, for one given
    selection

    .. math:: E[e^{tz} \mid s=1] = e^{t\mu + t^2\sigma^2/2}\,\Phi(\eta + t\rho\sigma)/\Phi(\eta) ,

    and for a mixture or a pool of these the weighted mean of its parts.
    """
    if isinstance(distribution, Pool):
        each = [_log_moment(part.distribution, t) for part in distribution.parts]
        return logsumexp(each, axis=0) - np.log(len(each))
    if isinstance(distribution, Mixture):
        with np.errstate(divide="ignore"):
            return logsumexp(
                _log_moment(distribution.parts, t) + np.log(distribution.weight), axis=0
            )
    if isinstance(distribution, Normal):
        return t * distribution.mean + 0.5 * (t * distribution.std) ** 2
    location, scale = distribution.location, distribution.scale
    index, slope = distribution.index, distribution.rho * distribution.scale
    tilt = log_ndtr(index + t * slope) - log_ndtr(index)
    return t * location + 0.5 * (t * scale) ** 2 + tilt


def _moments(distribution: Distribution, transform: TargetTransform):
    r"""Mean and variance of g(z), g the inverse, by Gauss-Hermite quadrature in t:

    .. math:: E[g(z)] = \int g\big(Q(\Phi(t))\big)\,\varphi(t)\,dt ,

    Q the quantile function of z. For a normal z this is the usual rule.
    """
    if isinstance(distribution, Normal):
        z = distribution.mean + distribution.std * NODES[:, None]  # (nodes, m)
    else:
        z = np.stack([distribution.quantile(float(p)) for p in ndtr(NODES)])
    with np.errstate(all="ignore"):
        values = transform.inverse(z)
    lost = np.isnan(values).any(axis=0).sum()
    if lost:
        warnings.warn(
            f"the inverse of target_transform has no value for part of the distribution at {lost} "
            "of the points, which therefore have no mean: NaN",
            UserWarning,
            stacklevel=5,
        )
    mean = WEIGHTS @ values
    return mean, WEIGHTS @ (values - mean) ** 2


def target_transform(given) -> TargetTransform | None:
    """From what a user writes: None, "log" or a pair of functions (forward, inverse)."""
    if given is None:
        return None
    if isinstance(given, str) and given == "log":
        return TargetTransform(np.log, np.exp, is_log=True)
    if isinstance(given, tuple | list) and len(given) == 2 and all(map(callable, given)):
        return TargetTransform(*given)
    raise DataError(
        f"target_transform must be None, 'log' or two functions (forward, inverse), got {given!r}"
    )


def transform_outcome(y, transform: TargetTransform, y_name: str):
    """(n,) z = forward(y), NaN where y is, and the transform with its direction.

    What the functions cannot carry there and back is an error that names the row.
    """
    seen = np.flatnonzero(~np.isnan(y))
    z = np.full(len(y), np.nan)
    with np.errstate(all="ignore"):
        z[seen] = transform.forward(y[seen])
        back = transform.inverse(z[seen])
    bad = seen[~np.isfinite(z[seen])]
    if len(bad):
        needs = "needs positive values" if transform.is_log else f"makes it {z[bad[0]]:g}"
        raise DataError(
            f"the outcome {y_name!r} is {y[bad[0]]:g} in row {bad[0]}, and target_transform "
            f"{needs}; use another transformation, or leave the outcome missing"
        )
    size = np.abs(y[seen]) + (np.ptp(y[seen]) if len(seen) else 0.0)
    lost = seen[~(np.abs(back - y[seen]) <= ROUND_TRIP * size)]
    if len(lost):
        raise DataError(
            f"target_transform does not lead back: the outcome {y_name!r} is {y[lost[0]]:g} in "
            f"row {lost[0]}, and inverse(forward(y)) is not; give functions that undo each other"
        )
    return z, _directed(transform, y[seen], z[seen])


def _directed(transform: TargetTransform, y, z) -> TargetTransform:
    steps = np.diff(z[np.argsort(y, kind="stable")])
    if (steps >= 0).all():
        return transform
    if (steps <= 0).all():
        return TargetTransform(transform.forward, transform.inverse, increasing=False)
    raise DataError("target_transform must be monotone: forward rises and falls over the outcomes")
