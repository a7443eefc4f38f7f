"""Predictions under sinh-arcsinh errors."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from heckesel.numerics.sinh_arcsinh import moments_given_selection, population_moments, stretch
from heckesel.predictive.distribution import Distribution, GivenSelection, Normal, Predictive


@dataclass(frozen=True)
class Shaped:
    """y = location + scale sinh((asinh q + skewness)/tail), q of `inner`.

    location, scale : (m,); skewness, log_tail : numbers, or (k, 1) if the others are (k, m)
    """

    inner: Distribution
    location: np.ndarray
    scale: np.ndarray
    skewness: Any
    log_tail: Any

    def _argument(self, y):
        """t with q = sinh t, and e."""
        e = (y - self.location) / self.scale
        return np.exp(self.log_tail) * np.arcsinh(e) - self.skewness, e

    def _outcome(self, q):
        return self.location + self.scale * stretch(q, self.skewness, self.log_tail)

    def cdf(self, y):
        return self.inner.cdf(_sinh(self._argument(y)[0]))

    def quantile(self, p):
        return self._outcome(self.inner.quantile(p))

    def sample(self, size, rng):
        return self._outcome(self.inner.sample(size, rng))

    def log_density(self, y):
        t, e = self._argument(y)
        log_cosh = np.logaddexp(t, -t) - np.log(2.0)
        slope = self.log_tail + log_cosh - np.log(np.hypot(1.0, e)) - np.log(self.scale)
        with np.errstate(over="ignore"):  # the density is zero there
            return self.inner.log_density(_sinh(t)) + slope


def _sinh(t):
    with np.errstate(over="ignore"):  # where q is infinite its probabilities are 0 and 1
        return np.sinh(t)


def predict_shape(
    location, epistemic, sigma, skewness, log_tail, *, index=None, atanh_rho=0.0
) -> Predictive:
    """y = location + sigma e, or with `index`, y given u > -index.

    The uncertainty of the mean (epistemic) widens the distribution around its mean.

    location, epistemic, sigma, index : (m,). For units that were not selected give -index and
    -atanh_rho.
    """
    zero, one = np.zeros(len(location)), np.ones(len(location))
    inner: Distribution = Normal(zero, one)
    moments = population_moments(skewness, log_tail)
    if index is not None:
        inner = GivenSelection(zero, one, index, np.full(len(location), np.tanh(atanh_rho)))
        moments = moments_given_selection(index, atanh_rho, skewness, log_tail)
    mean, aleatoric = location + sigma * moments.mean, sigma**2 * moments.variance
    wider = np.sqrt(1 + epistemic / aleatoric)
    around = Shaped(inner, mean + wider * (location - mean), wider * sigma, skewness, log_tail)
    return Predictive(mean, epistemic, aleatoric, around)
