"""Predictives that are spread over several models: `Mixture` of one kind, `Pool` of any kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.special import logsumexp, ndtri

from heckesel.numerics.normal import inverse_mills
from heckesel.numerics.truncated import invert_cdf
from heckesel.predictive.distribution import (
    GivenSelection,
    Normal,
    Predictive,
    predict_given_selection,
)

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
        mean, scale = self._mean_and_scale()
        low, high = (mean - REACH * scale).min(axis=0), (mean + REACH * scale).max(axis=0)
        start = (self.weight * (mean + scale * ndtri(p))).sum(axis=0)
        return _search(self, p, start, scale.max(axis=0), low, high)

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


@dataclass(frozen=True)
class Pool:
    """Each part as likely as the next; they may be of different kinds."""

    parts: tuple[Predictive, ...]

    def cdf(self, y):
        return np.mean([part.cdf(y) for part in self.parts], axis=0)

    def log_density(self, y):
        each = [part.log_density(y) for part in self.parts]
        return logsumexp(each, axis=0) - np.log(len(each))

    def quantile(self, p):
        """It lies between those of the parts, (m,)."""
        each = np.stack([part.quantile(p) for part in self.parts])
        scale = np.max([part.std for part in self.parts], axis=0)
        return _search(self, p, each.mean(axis=0), scale, each.min(axis=0), each.max(axis=0))

    def sample(self, size, rng):
        """(size, m): of every part, then one of these for each draw and point."""
        each = np.stack([part.sample(size, rng) for part in self.parts])
        chosen = rng.integers(len(each), size=(1, *each.shape[1:]))
        return np.take_along_axis(each, chosen, axis=0)[0]

    def take(self, rows) -> Pool:
        return Pool(tuple(part.take(rows) for part in self.parts))


def _search(distribution: Mixture | Pool, p, start, scale, low, high) -> np.ndarray:
    """(m,) the quantile between low and high, looked for in units of `scale` around `start`."""

    def cdf(e, at):
        return distribution.take(at).cdf(start[at] + scale[at] * e)

    def log_density(e, at):
        return distribution.take(at).log_density(start[at] + scale[at] * e) + np.log(scale[at])

    bracket = (low - start) / scale, (high - start) / scale
    level, here = np.full(len(start), p), np.zeros(len(start))
    return start + scale * invert_cdf(level, cdf, log_density, here, bracket)


def _with_fields(parts, change):
    return replace(
        parts, **{field.name: change(getattr(parts, field.name)) for field in fields(parts)}
    )


def pooled(parts: Sequence[Predictive]) -> Predictive:
    """Parts with the same weight, each with its own shape; what their means differ by is doubt."""
    means = np.stack([part.mean for part in parts])
    return Predictive(
        means.mean(axis=0),
        np.mean([part.epistemic for part in parts], axis=0) + means.var(axis=0),
        np.mean([part.aleatoric for part in parts], axis=0),
        Pool(tuple(parts)),
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


@dataclass(frozen=True)
class WeightedPool:
    """Parts of any kinds; weight : (j, m), adds up to one over j."""

    parts: tuple[Predictive, ...]
    weight: np.ndarray

    def cdf(self, y):
        return sum(w * part.cdf(y) for w, part in zip(self.weight, self.parts, strict=True))

    def log_density(self, y):
        with np.errstate(divide="ignore"):
            return logsumexp([p.log_density(y) for p in self.parts] + np.log(self.weight), axis=0)

    def quantile(self, p):
        each = np.stack([part.quantile(p) for part in self.parts])
        scale = np.max([part.std for part in self.parts], axis=0)
        start = (self.weight * each).sum(axis=0)
        return _search(self, p, start, scale, each.min(axis=0), each.max(axis=0))

    def sample(self, size, rng):
        below = np.cumsum(self.weight, axis=0)[:-1]
        chosen = (rng.random((size, 1, below.shape[1])) > below).sum(axis=1)
        each = np.stack([part.sample(size, rng) for part in self.parts])
        return np.take_along_axis(each, chosen[None], axis=0)[0]

    def take(self, rows) -> WeightedPool:
        return WeightedPool(tuple(part.take(rows) for part in self.parts), self.weight[:, rows])


def weighted_pool(parts: Sequence[Predictive], log_weight) -> Predictive:
    """Parts with these log weights (j, m); what their means differ by is epistemic."""
    weight = np.exp(log_weight - logsumexp(log_weight, axis=0))
    means = np.stack([part.mean for part in parts])
    mean = (weight * means).sum(axis=0)
    inside = np.stack([part.epistemic for part in parts])
    return Predictive(
        mean,
        (weight * (inside + (means - mean) ** 2)).sum(axis=0),
        (weight * np.stack([part.aleatoric for part in parts])).sum(axis=0),
        WeightedPool(tuple(parts), weight),
    )
