"""Mixtures: `Mixture` of components of one family, `PredictiveMixture` of any predictives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.special import logsumexp, ndtri

from heckesel.numerics.normal import inverse_mills
from heckesel.numerics.truncated import invert_cdf
from heckesel.predictive.distribution import Predictive, predict_given_selection
from heckesel.predictive.families import GivenSelection, Normal

REACH = 40.0  # scales around the mean that contain all but 1e-17 of any component


@dataclass(frozen=True)
class Mixture:
    """weight : (j, m), sums to one over j; components : a distribution with fields (j, m)"""

    weight: np.ndarray
    components: Normal | GivenSelection

    def cdf(self, y):
        return (self.weight * self.components.cdf(y)).sum(axis=0)

    def log_density(self, y):
        with np.errstate(divide="ignore"):
            return logsumexp(self.components.log_density(y) + np.log(self.weight), axis=0)

    def quantile(self, p):
        mean, scale = self._mean_and_scale()
        low, high = (mean - REACH * scale).min(axis=0), (mean + REACH * scale).max(axis=0)
        start = (self.weight * (mean + scale * ndtri(p))).sum(axis=0)
        return _search(self, p, start, scale.max(axis=0), low, high)

    def sample(self, size, rng):
        """(size, m): a component for each draw and point, then a draw from it."""
        below = np.cumsum(self.weight, axis=0)[:-1]  # (j - 1, m)
        drawn = (rng.random((size, 1, below.shape[1])) > below).sum(axis=1)  # (size, m)
        points = np.arange(below.shape[1])
        chosen = _with_fields(self.components, lambda values: values[drawn, points].ravel())
        return chosen.sample(1, rng).reshape(size, -1)

    def take(self, rows) -> Mixture:
        return Mixture(
            self.weight[:, rows], _with_fields(self.components, lambda values: values[:, rows])
        )

    def _mean_and_scale(self):
        """Of each component; if selection is unlikely, the mean is far from the location."""
        each = self.components
        if isinstance(each, Normal):
            return each.mean, each.std
        return each.location + each.scale * each.rho * inverse_mills(each.index), each.scale


@dataclass(frozen=True)
class PredictiveMixture:
    """Predictives that may be of different families.

    weight : (j, m), sums to one over components
    """

    components: tuple[Predictive, ...]
    weight: np.ndarray

    def cdf(self, y):
        return self._average([part.cdf(y) for part in self.components])

    def log_density(self, y):
        each = [part.log_density(y) for part in self.components]
        with np.errstate(divide="ignore"):
            return logsumexp(each + np.log(self.weight), axis=0)

    def quantile(self, p):
        """(m,), between the quantiles of the components."""
        each = np.stack([part.quantile(p) for part in self.components])
        scale = np.max([part.std for part in self.components], axis=0)
        return _search(self, p, self._average(each), scale, each.min(axis=0), each.max(axis=0))

    def sample(self, size, rng):
        """(size, m): draws from every component, then one of these for each draw and point."""
        each = np.stack([part.sample(size, rng) for part in self.components])
        below = np.cumsum(self.weight, axis=0)[:-1]
        chosen = (rng.random((1, size, 1, below.shape[1])) > below).sum(axis=2)
        return np.take_along_axis(each, chosen, axis=0)[0]

    def take(self, rows) -> PredictiveMixture:
        components = tuple(part.take(rows) for part in self.components)
        return PredictiveMixture(components, self.weight[:, rows])

    def _average(self, values):
        return (self.weight * np.asarray(values)).sum(axis=0)


def _search(distribution: Mixture | PredictiveMixture, p, start, scale, low, high) -> np.ndarray:
    """(m,) the quantile between low and high, searched for in units of `scale` around `start`."""

    def cdf_and_density(e, at):
        some, y = distribution.take(at), start[at] + scale[at] * e
        return some.cdf(y), np.exp(some.log_density(y)) * scale[at]

    bracket = (low - start) / scale, (high - start) / scale
    level, here = np.full(len(start), p), np.zeros(len(start))
    return start + scale * invert_cdf(level, cdf_and_density, here, bracket)


def _with_fields(distribution, change):
    values = {field.name: getattr(distribution, field.name) for field in fields(distribution)}
    return replace(distribution, **{name: change(value) for name, value in values.items()})


def mix_predictives(components: Sequence[Predictive], log_weight=None) -> Predictive:
    """The mixture with these log weights (j, m), or with equal weights; the variance of the means
    is epistemic."""
    means, epistemic, aleatoric = (
        np.stack([getattr(part, name) for part in components])
        for name in ("mean", "epistemic", "aleatoric")
    )
    if log_weight is None:
        log_weight = np.zeros_like(means)
    weight = np.exp(log_weight - logsumexp(log_weight, axis=0))
    distribution = PredictiveMixture(tuple(components), weight)
    return mixed(weight, means, epistemic, aleatoric, distribution)


def mixed_normal(weight, mean, epistemic, sigma) -> Predictive:
    """Components N(mean, epistemic + sigma^2) with weight (j,); the others (j, m) or (j, 1)."""
    mean, epistemic, sigma = np.broadcast_arrays(mean, epistemic, sigma)
    weight = np.broadcast_to(weight[:, None], mean.shape)
    components = Normal(mean, np.sqrt(epistemic + sigma**2))
    return mixed(weight, mean, epistemic, sigma**2, Mixture(weight, components))


def mixed_given_selection(log_weight, mean, epistemic, sigma, covariance, index) -> Predictive:
    """Components as in `predict_given_selection`; log_weight, index : (j, m).

    The weight of a component is that of its model among selected units, so the caller adds
    log P(selected) under each model to the log weights.
    """
    each = predict_given_selection(mean, epistemic, sigma, covariance, index)
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight = weight / weight.sum(axis=0)
    components = _with_fields(each.distribution, lambda values: np.broadcast_to(values, mean.shape))
    distribution = Mixture(weight, components)
    return mixed(weight, each.mean, each.epistemic, each.aleatoric, distribution)


def mixed(weight, mean, epistemic, aleatoric, distribution) -> Predictive:
    r"""The whole mixture: :math:`\sum w_j (\tau_j^2 + (\mu_j - \mu)^2)` is epistemic and
    :math:`\sum w_j\sigma_j^2` aleatoric."""
    overall = (weight * mean).sum(axis=0)
    between = (weight * (epistemic + (mean - overall) ** 2)).sum(axis=0)
    noise = (weight * aleatoric).sum(axis=0)
    return Predictive(overall, between, noise, distribution)
