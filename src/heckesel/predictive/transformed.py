"""Outcomes that are transformed for the fit: from a `Predictive` of z = forward(y) to one of y.

The quantiles of y are inverse(z) of the quantiles of z. The mean is not: E[inverse(z)] differs
from inverse(E[z]).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr

from heckesel.errors import warn_user
from heckesel.predictive.distribution import Predictive, predict_given_selection
from heckesel.predictive.families import Distribution, GivenSelection, Normal, take_points
from heckesel.predictive.mixture import Mixture, PredictiveMixture
from heckesel.predictive.scales import TargetTransform

# The trapezoidal rule, which for smooth functions of a normal z errs by less than 1e-12 at this
# step, and for those whose second derivative jumps, as of roots at 0, by 1e-4 sd. At the outermost
# node Phi is still below 1 in floating point.
NODES = np.linspace(-7.5, 7.5, 61)
WEIGHTS = np.exp(-0.5 * NODES**2)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
# Step of the central differences for the slope of `inverse`, in sd: the error is about 1e-8.
SLOPE_STEP = 1e-4


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
        """The density of z times the slope of `forward`; the slope of functions of the user is one
        over that of `inverse`, by differences."""
        z, possible = self._inside(y)
        if self.transform.functions is None:
            log_slope = self.transform.log_slope(np.where(possible, y, 1.0))
        else:
            ends = (self.transform.inverse(z + move) for move in (self.step, -self.step))
            log_slope = -np.log(np.abs(np.subtract(*ends)) / (2 * self.step))
        return np.where(possible, self.inner.log_density(z) + log_slope, -np.inf)

    def take(self, rows) -> Transformed:
        inner = take_points(self.inner, len(self.step), rows)
        return Transformed(inner, self.transform, self.step[rows])

    def _inside(self, y):
        """z, and whether y is possible: y > 0 for the log; functions of the user return NaN."""
        y = np.asarray(y, dtype=float)
        shift = self.transform.shift
        possible = np.ones(y.shape, dtype=bool) if shift is None else y > -shift
        return self.transform.forward(np.where(possible, y, 1.0)), possible


def transformed(predictive: Predictive, transform: TargetTransform | None) -> Predictive:
    """The predictive of y from one of z; the epistemic share of the variance stays the same.

    If `inverse` is undefined on part of the distribution of z, the mean of y is NaN.
    """
    if transform is None:
        return predictive
    moments = _moments if transform.shift is None else _log_moments
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


def mean_and_slopes(
    transform: TargetTransform, location, log_sigma, atanh_rho: float, index=None, sign: float = 1.0
) -> tuple[np.ndarray, list[np.ndarray]]:
    r"""(m,) E[y] of y = inverse(z) where z has normal errors, and its slopes (m,) in the location,
    :math:`\log\sigma`, :math:`\operatorname{atanh}\rho` and the index, by central differences.

    index : None for the population; sign : -1 for the unselected, whose index is negative
    """
    location, log_sigma = np.broadcast_arrays(location, log_sigma)
    given = [location, log_sigma, atanh_rho, *([] if index is None else [index])]

    def mean(location, log_sigma, atanh_rho, index=None):
        sigma = np.exp(log_sigma)
        if index is None:
            z = Predictive.normal(location, 0.0, sigma**2)
        else:
            cross = sign * np.tanh(atanh_rho) * sigma
            z = predict_given_selection(location, np.zeros_like(location), sigma, cross, index)
        return transformed(z, transform).mean

    slopes = []
    for k in range(len(given)):
        step = SLOPE_STEP * (float(np.exp(log_sigma.mean())) if k == 0 else 1.0)
        ends = [mean(*(v + move * (j == k) for j, v in enumerate(given))) for move in (step, -step)]
        slopes.append((ends[0] - ends[1]) / (2 * step))
    return mean(*given), slopes


def _log_moments(distribution: Distribution, transform: TargetTransform):
    r"""Mean and variance of :math:`e^z - c`, exact if :math:`E[e^{tz}]` has a closed form."""
    if not _has_formula(distribution):
        return _moments(distribution, transform)
    log_mean, log_square = (_log_moment(distribution, t) for t in (1.0, 2.0))
    variance = np.exp(2 * log_mean) * np.expm1(log_square - 2 * log_mean)
    return np.exp(log_mean) - transform.shift, variance


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
    r"""Mean and variance of g(z), g the inverse, by quadrature in t:

    .. math:: E[g(z)] = \int g\big(Q(\Phi(t))\big)\,\varphi(t)\,dt ,

    where Q is the quantile function of z. For a normal z this is the usual rule.
    """
    if isinstance(distribution, Normal):
        z = distribution.mean + distribution.std * NODES[:, None]  # (nodes, m)
    else:
        z = np.stack([distribution.quantile(float(p)) for p in ndtr(NODES)])
    with np.errstate(all="ignore"):
        values = transform.inverse(z)
    if np.isnan(values).any():
        warn_user(
            "the inverse of target_transform is undefined on part of the distribution of some of "
            "the points, so their mean is NaN",
            UserWarning,
        )
    mean = WEIGHTS @ values
    return mean, WEIGHTS @ (values - mean) ** 2
