"""Mixtures of many sinh-arcsinh and t components in stacked arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, ndtr

from heckesel.math import student
from heckesel.math.sinh_arcsinh import stretch
from heckesel.math.truncated import invert_cdf
from heckesel.predictive import Normal, Predictive, Shaped, Student, mixed

SQRT_2PI = np.sqrt(2 * np.pi)
# Numbers of one array that a search works on at once: a few such arrays fit into a cache.
SEARCHED_AT_ONCE = 2**16
HUGE = 1e300  # a square that is as good as infinite, but whose product with zero is zero


@dataclass(frozen=True)
class ShapedMixture:
    """k components y = location + scale e, for each of m points.

    weight : (k,), adding up to one; location, scale : (k, m)
    skewness, log_tail : (k - students,) of sinh-arcsinh components, see `Shaped`
    students : how many components, the last ones, are t with `df` degrees of freedom
    """

    weight: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    skewness: np.ndarray
    log_tail: np.ndarray
    students: int
    df: float

    def cdf(self, y):
        if np.ndim(y) > 1:  # several y per point
            return np.stack([self.cdf(row) for row in y])
        return self.weight @ np.concatenate([part.cdf(y) for part in self._families])

    def log_density(self, y):
        if np.ndim(y) > 1:
            return np.stack([self.log_density(row) for row in y])
        each = np.concatenate([part.log_density(y) for part in self._families])
        return logsumexp(each + np.log(self.weight)[:, None], axis=0)

    def quantile(self, p):
        """(m,), between the quantiles of the components."""
        m = self.location.shape[1]
        at_once = max(1, SEARCHED_AT_ONCE // len(self.weight))
        parts = [self.take(slice(at, at + at_once))._search(p) for at in range(0, m, at_once)]
        return np.concatenate(parts) if parts else np.empty(0)

    def sample(self, size, rng):
        """(size, m): a component for each draw and point, then a draw from it."""
        count, m = len(self.skewness), self.location.shape[1]
        chosen = rng.choice(len(self.weight), size=(size, m), p=self.weight)
        shapes = np.pad([self.skewness, self.log_tail], ((0, 0), (0, self.students)))[:, chosen]
        e = stretch(rng.standard_normal((size, m)), *shapes)
        if self.students:
            e = np.where(chosen < count, e, rng.standard_t(self.df, (size, m)))
        points = np.arange(m)
        return self.location[chosen, points] + self.scale[chosen, points] * e

    def take(self, rows) -> ShapedMixture:
        return replace(self, location=self.location[:, rows], scale=self.scale[:, rows])

    @property
    def _families(self) -> list[Shaped | Student]:
        """Distributions with fields (k', m)."""
        count, found = len(self.skewness), list[Shaped | Student]()
        if count:
            shape = self.skewness[:, None], self.log_tail[:, None]
            inner = Normal(np.zeros((count, 1)), np.ones((count, 1)))
            found.append(Shaped(self.location[:count], self.scale[:count], inner, *shape))
        if self.students:
            found.append(Student(self.location[count:], self.scale[count:], self.df))
        return found

    def _search(self, p: float) -> np.ndarray:
        each = np.concatenate([part.quantile(p) for part in self._families])
        start, scale = self.weight @ each, self.scale.max(axis=0)
        bracket = ((end - start) / scale for end in (each.min(axis=0), each.max(axis=0)))

        def cdf_and_density(e, at):
            some = self if len(at) == len(start) else self.take(at)
            cdf, density = some._cdf_and_density(start[at] + scale[at] * e)
            return cdf, density * scale[at]

        level, here = np.full(len(start), p), np.zeros(len(start))
        return start + scale * invert_cdf(level, cdf_and_density, here, tuple(bracket))

    def _cdf_and_density(self, y):
        """Both from one pass; unlike `log_density`, the density may underflow far out."""
        count = len(self.skewness)
        e = (y - self.location) / self.scale
        cdf, density = np.empty_like(e), np.empty_like(e)
        cdf[:count], density[:count] = _of_shapes(e[:count], self.skewness, self.log_tail)
        if self.students:
            cdf[count:] = student.cdf(e[count:], self.df)
            density[count:] = np.exp(student.log_density(e[count:], self.df).value)
        return self.weight @ cdf, self.weight @ (density / self.scale)


def _of_shapes(e, skewness, log_tail):
    r"""Distribution function and density of sinh-arcsinh errors: with :math:`q = \sinh t`,
    :math:`\Phi(q)` and :math:`\phi(q)\,d\,\cosh t/\sqrt{1 + e^2}`.

    e : (k, m); skewness, log_tail : (k,)
    """
    tail = np.exp(log_tail)[:, None]
    with np.errstate(over="ignore"):
        q = np.sinh(tail * np.arcsinh(e) - skewness[:, None])
        square = np.minimum(q * q, HUGE)
        slope = tail * np.sqrt((1 + square) / (1 + np.minimum(e * e, HUGE)))
    return ndtr(q), np.exp(-0.5 * square) * slope / SQRT_2PI


def mixed_shapes(distribution: ShapedMixture, mean, epistemic, aleatoric) -> Predictive:
    """The predictive of a mixture whose components have these moments, (k, m) each."""
    return mixed(distribution.weight[:, None], mean, epistemic, aleatoric, distribution)
