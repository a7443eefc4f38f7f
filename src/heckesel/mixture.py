"""`Mixture`: a predictive that is spread over several models, as many at each of m points."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.special import logsumexp, ndtri

from heckesel.numerics.normal import inverse_mills
from heckesel.predictive import GivenSelection, Normal, Predictive, predict_given_selection

# Newton needs five or six steps; the bracket halves otherwise, and 80 halvings bring the widest
# one below one ulp.
QUANTILE_STEPS = 80
QUANTILE_TOLERANCE = 1e-12  # of the largest sd among the parts; the step found there is taken
REACH = 40.0  # scales around its mean that hold all but 1e-17 of any part


@dataclass(frozen=True)
class Mixture:
    """weight : (j, m), adds up to one over j; parts : a distribution with fields (j, m)"""

    weight: np.ndarray
    parts: Normal | GivenSelection

    def cdf(self, y):
        return (self.weight * self.parts.cdf(y)).sum(axis=0)

    def log_density(self, y):
        with np.errstate(divide="ignore"):
            return logsumexp(self.parts.log_density(y) + np.log(self.weight), axis=0)

    def quantile(self, p):
        """Newton on the distribution function inside a shrinking bracket, (m,)."""
        mean, scale = self._mean_and_scale()
        low, high = (mean - REACH * scale).min(axis=0), (mean + REACH * scale).max(axis=0)
        here = (self.weight * (mean + scale * ndtri(p))).sum(axis=0)
        close = QUANTILE_TOLERANCE * scale.max(axis=0)
        active = np.arange(len(here))
        for _ in range(QUANTILE_STEPS):
            own, at = self.take(active), here[active]
            miss = own.cdf(at) - p
            low[active] = np.where(miss < 0, at, low[active])
            high[active] = np.where(miss > 0, at, high[active])
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = -miss * np.exp(-own.log_density(at))
            small = np.abs(step) <= close[active]
            inside = (at + step > low[active]) & (at + step < high[active])
            middle = 0.5 * (low[active] + high[active])
            here[active] = np.where(inside | small, at + step, middle)
            active = active[~small]
            if not len(active):
                break
        return here

    def sample(self, size, rng):
        """(size, m): a part for each draw and point, then a draw from it."""
        below = np.cumsum(self.weight, axis=0)[:-1]  # (j - 1, m)
        part = (rng.random((size, 1, below.shape[1])) > below).sum(axis=1)  # (size, m)
        points = np.arange(below.shape[1])
        chosen = _with_fields(self.parts, lambda values: values[part, points].ravel())
        return chosen.sample(1, rng).reshape(size, -1)

    def take(self, rows) -> Mixture:
        return Mixture(
            self.weight[:, rows], _with_fields(self.parts, lambda values: values[:, rows])
        )

    def _mean_and_scale(self):
        """Given selection against all odds the mean is far from the location."""
        parts = self.parts
        if isinstance(parts, Normal):
            return parts.mean, parts.std
        return parts.location + parts.scale * parts.rho * inverse_mills(parts.index), parts.scale


def _with_fields(parts, change):
    return replace(
        parts, **{field.name: change(getattr(parts, field.name)) for field in fields(parts)}
    )


def mixed_normal(weight, mean, epistemic, sigma) -> Predictive:
    """Parts N(mean, epistemic + sigma^2) with weight (j,); the others (j, m) or (j, 1)."""
    mean, epistemic, sigma = np.broadcast_arrays(mean, epistemic, sigma)
    parts = Normal(mean, np.sqrt(epistemic + sigma**2))
    weight = np.broadcast_to(weight[:, None], mean.shape)
    return _mixed(weight, mean, epistemic, sigma**2, parts)


def mixed_given_selection(log_weight, mean, epistemic, sigma, covariance, index) -> Predictive:
    """Parts as `predict_given_selection` makes them; log_weight, index : (j, m).

    The weight of a part is that of its model among units that were selected, so the caller adds
    log P(selected) under each model to the log weights.
    """
    parts = predict_given_selection(mean, epistemic, sigma, covariance, index)
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight = weight / weight.sum(axis=0)
    distribution = _with_fields(
        parts.distribution, lambda values: np.broadcast_to(values, mean.shape)
    )
    return _mixed(weight, parts.mean, parts.epistemic, parts.aleatoric, distribution)


def _mixed(weight, mean, epistemic, aleatoric, parts) -> Predictive:
    r"""Mean and variances of the whole: parts that disagree about the mean are doubt, so
    :math:`\sum w_j (\tau_j^2 + (\mu_j - \mu)^2)` is epistemic, :math:`\sum w_j\sigma_j^2` noise."""
    overall = (weight * mean).sum(axis=0)
    doubt = (weight * (epistemic + (mean - overall) ** 2)).sum(axis=0)
    noise = (weight * aleatoric).sum(axis=0)
    return Predictive(overall, doubt, noise, Mixture(weight, parts))
