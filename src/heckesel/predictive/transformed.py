"""Outcomes that are transformed for the fit: from a `Predictive` of z = forward(y) to one of y.

The quantiles of y are inverse(z) of the quantiles of z. The mean is not: E[inverse(z)] differs
from inverse(E[z]).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr

from heckesel.errors import DataError
from heckesel.predictive.distribution import Predictive
from heckesel.predictive.families import Distribution, GivenSelection, Normal, take_points
from heckesel.predictive.mixture import Mixture, PredictiveMixture

# Gauss-Hermite: 20 nodes are exact for polynomials of degree 39. At the outermost, 7.6 sd, Phi is
# still below 1 in floating point.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
# Step of the central differences for the slope of `inverse`, in sd: the error is about 1e-8.
SLOPE_STEP = 1e-4
ROUND_TRIP = 1e-6  # relative error of inverse(forward(y)); allows for single precision


@dataclass(frozen=True)
class TargetTransform:
    """z = forward(y) and y = inverse(z), strictly monotone; is_log : exact formulas apply."""

    forward: Callable[[np.ndarray], np.ndarray]
    inverse: Callable[[np.ndarray], np.ndarray]
    is_log: bool = False
    increasing: bool = True


@dataclass(frozen=True)
class Transformed:
    """The distribution of inverse(z) with z from `inner`; step : (m,) for slopes of `inverse`."""

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
        """The density of z divided by the slope of `inverse` there."""
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
        """z, and whether y is possible: y > 0 for the log; other functions return NaN."""
        y = np.asarray(y, dtype=float)
        possible = y > 0 if self.transform.is_log else np.ones(y.shape, dtype=bool)
        return self.transform.forward(np.where(possible, y, 1.0)), possible


def transformed(predictive: Predictive, transform: TargetTransform | None) -> Predictive:
    """The predictive of y from one of z; the epistemic share of the variance stays the same.

    If `inverse` is undefined on part of the distribution of z, the mean of y is NaN.
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
    """The distribution of y, without its moments."""
    if transform is None:
        return predictive.distribution
    return Transformed(predictive.distribution, transform, SLOPE_STEP * predictive.std)


def _log_moments(distribution: Distribution, transform: TargetTransform):
    r"""Mean and variance of :math:`e^z`, exact if :math:`E[e^{tz}]` has a closed form."""
    if not _has_formula(distribution):
        return _moments(distribution, transform)
    log_mean, log_square = (_log_moment(distribution, t) for t in (1.0, 2.0))
    return np.exp(log_mean), np.exp(2 * log_mean) * np.expm1(log_square - 2 * log_mean)


def _has_formula(distribution: Distribution) -> bool:
    if isinstance(distribution, PredictiveMixture):
        return all(_has_formula(part.distribution) for part in distribution.components)
    family = distribution.components if isinstance(distribution, Mixture) else distribution
    return isinstance(family, Normal | GivenSelection)


def _log_moment(distribution, t: float) -> np.ndarray:
    r"""(m,) :math:`\log E[e^{tz}]`: :math:`t\mu + t^2\sigma^2/2` for a normal z. Given selection

    .. math:: E[e^{tz} \mid s=1] = e^{t\mu + t^2\sigma^2/2}\,\Phi(\eta + t\rho\sigma)/\Phi(\eta) ,

    and for a mixture :math:`E[e^{tz}]` is the weighted mean over its components.
    """
    if isinstance(distribution, PredictiveMixture):
        each = [_log_moment(part.distribution, t) for part in distribution.components]
        return logsumexp(each, axis=0) - np.log(len(each))
    if isinstance(distribution, Mixture):
        with np.errstate(divide="ignore"):
            return logsumexp(
                _log_moment(distribution.components, t) + np.log(distribution.weight), axis=0
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

    where Q is the quantile function of z. For a normal z this is the usual rule.
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
            f"the inverse of target_transform is undefined on part of the distribution of {lost} "
            "of the points, so their mean is NaN",
            UserWarning,
            stacklevel=5,
        )
    mean = WEIGHTS @ values
    return mean, WEIGHTS @ (values - mean) ** 2


def target_transform(given) -> TargetTransform | None:
    """From the option of an estimator: None, "log" or a pair of functions (forward, inverse)."""
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
    """(n,) z = forward(y), NaN where y is NaN, and the transform with its direction.

    An outcome that inverse(forward(y)) does not recover is an error that names the row.
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
            f"{needs}; use another transformation, or set the outcome to missing"
        )
    size = np.abs(y[seen]) + (np.ptp(y[seen]) if len(seen) else 0.0)
    ok = np.abs(back - y[seen]) <= ROUND_TRIP * size
    if not ok.all():
        lost = seen[~ok]
        raise DataError(
            f"target_transform does not invert: the outcome {y_name!r} is {y[lost[0]]:g} in row "
            f"{lost[0]}, but inverse(forward(y)) is {back[~ok][0]:g}; give two functions that are "
            "inverse to each other"
        )
    return z, _directed(transform, y[seen], z[seen])


def _directed(transform: TargetTransform, y, z) -> TargetTransform:
    steps = np.diff(z[np.argsort(y, kind="stable")])
    if (steps >= 0).all():
        return transform
    if (steps <= 0).all():
        return TargetTransform(transform.forward, transform.inverse, increasing=False)
    raise DataError(
        "target_transform must be monotone, but forward both rises and falls over the outcomes"
    )
