"""`Predictive`: what every method returns for m points, and the three targets it can be about."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from heckesel.data import numeric
from heckesel.errors import DataError, IdentificationWarning, is_one_of, is_share, is_whole
from heckesel.numerics import student, truncated_student
from heckesel.numerics.normal import LOG_2PI, inverse_mills, mills_delta
from heckesel.numerics.truncated import (
    cdf_given_selection,
    log_density_given_selection,
    quantile_given_selection,
    sample_given_selection,
)


class Distribution(Protocol):
    """One distribution for each of m points."""

    def cdf(self, y: np.ndarray) -> np.ndarray: ...

    def quantile(self, p: float) -> np.ndarray: ...

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray: ...

    def log_density(self, y: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class Normal:
    """mean, std : (m,)"""

    mean: np.ndarray
    std: np.ndarray

    def cdf(self, y):
        return ndtr((y - self.mean) / self.std)

    def quantile(self, p):
        return self.mean + self.std * ndtri(p)

    def sample(self, size, rng):
        return self.mean + self.std * rng.standard_normal((size, len(self.mean)))

    def log_density(self, y):
        return -0.5 * ((y - self.mean) / self.std) ** 2 - np.log(self.std) - 0.5 * LOG_2PI


@dataclass(frozen=True)
class Student:
    """location, scale : (m,); df : a number; the variance is scale^2 df/(df - 2)"""

    location: np.ndarray
    scale: np.ndarray
    df: float

    def cdf(self, y):
        return stdtr(self.df, (y - self.location) / self.scale)

    def quantile(self, p):
        return self.location + self.scale * stdtrit(self.df, p)

    def sample(self, size, rng):
        return self.location + self.scale * rng.standard_t(self.df, (size, len(self.location)))

    def log_density(self, y):
        e = (y - self.location) / self.scale
        return student.log_density(e, self.df).value - np.log(self.scale)

    def take(self, rows) -> Student:
        return Student(self.location[rows], self.scale[rows], self.df)


@dataclass(frozen=True)
class GivenSelection:
    """y = location + scale e given that the unit was selected, that is u > -index.

    location, scale, index, rho : (m,); (u, e) standard bivariate normal with correlation rho.
    An unselected unit is one with -u > index, so it is written with -index and -rho.
    """

    location: np.ndarray
    scale: np.ndarray
    index: np.ndarray
    rho: np.ndarray

    def cdf(self, y):
        return cdf_given_selection((y - self.location) / self.scale, self.index, self.rho)

    def quantile(self, p):
        return self.location + self.scale * quantile_given_selection(p, self.index, self.rho)

    def sample(self, size, rng):
        e = sample_given_selection(size, self.index, self.rho, rng)
        return self.location + self.scale * e

    def log_density(self, y):
        e = (y - self.location) / self.scale
        return log_density_given_selection(e, self.index, self.rho) - np.log(self.scale)


@dataclass(frozen=True)
class StudentGivenSelection:
    """`GivenSelection` for (u, e) standard bivariate t with df degrees of freedom."""

    location: np.ndarray
    scale: np.ndarray
    index: np.ndarray
    rho: np.ndarray
    df: float

    def cdf(self, y):
        e = (y - self.location) / self.scale
        return truncated_student.cdf_given_selection(e, self.index, self.rho, self.df)

    def quantile(self, p):
        e = truncated_student.quantile_given_selection(p, self.index, self.rho, self.df)
        return self.location + self.scale * e

    def sample(self, size, rng):
        e = truncated_student.sample_given_selection(size, self.index, self.rho, self.df, rng)
        return self.location + self.scale * e

    def log_density(self, y):
        e = (y - self.location) / self.scale
        density = truncated_student.log_density_given_selection(e, self.index, self.rho, self.df)
        return density - np.log(self.scale)

    def take(self, rows) -> StudentGivenSelection:
        location, scale, index, rho = (
            part[rows] for part in (self.location, self.scale, self.index, self.rho)
        )
        return StudentGivenSelection(location, scale, index, rho, self.df)


def take_points(distribution: Any, m: int, rows: np.ndarray):
    """The distribution of some of its m points.

    Every field must have the points as its last axis; a distribution that holds anything else
    brings its own `take(rows)`.
    """
    if hasattr(distribution, "take"):
        return distribution.take(rows)
    values = {
        field.name: np.asarray(getattr(distribution, field.name)) for field in fields(distribution)
    }
    for name, value in values.items():
        if value.shape[-1:] != (m,):
            raise DataError(
                f"{type(distribution).__name__}.{name} has shape {value.shape} but there are "
                f"{m} points; give the distribution a take(rows) of its own"
            )
    return replace(distribution, **{name: value[..., rows] for name, value in values.items()})


@dataclass(frozen=True)
class Predictive:
    """Predictions for m points, with what is not known (epistemic) apart from noise (aleatoric).

    mean, epistemic, aleatoric : (m,); the last two are variances.
    """

    mean: np.ndarray
    epistemic: np.ndarray
    aleatoric: np.ndarray
    distribution: Distribution

    @classmethod
    def normal(cls, mean, epistemic, aleatoric) -> Predictive:
        """A normal predictive with variance epistemic + aleatoric."""
        mean, epistemic, aleatoric = (
            np.array(part, dtype=float) for part in np.broadcast_arrays(mean, epistemic, aleatoric)
        )
        return cls(mean, epistemic, aleatoric, Normal(mean, np.sqrt(epistemic + aleatoric)))

    @classmethod
    def student(cls, mean, epistemic, aleatoric, df: float) -> Predictive:
        """A t predictive with variance epistemic + aleatoric; df > 2."""
        normal = cls.normal(mean, epistemic, aleatoric)
        scale = normal.std * np.sqrt((df - 2) / df)
        return replace(normal, distribution=Student(normal.mean, scale, float(df)))

    @property
    def std(self) -> np.ndarray:
        return np.sqrt(self.epistemic + self.aleatoric)

    def __len__(self) -> int:
        return len(self.mean)

    def cdf(self, y) -> np.ndarray:
        return self.distribution.cdf(self._points(y))

    def log_density(self, y) -> np.ndarray:
        return self.distribution.log_density(self._points(y))

    def _points(self, y) -> np.ndarray:
        """y as numbers: one, or one per point (several rows of them are several y per point)."""
        values = numeric(y, "y")
        if values.ndim and values.shape[-1] not in (1, len(self)):
            raise DataError(f"y has {values.shape[-1]} values but there are {len(self)} points")
        return values

    def quantile(self, p) -> np.ndarray:
        """(m,) for one level, (len(p), m) for several."""
        levels = numeric(p, "p")
        if levels.ndim > 1 or not levels.size or not ((levels > 0) & (levels < 1)).all():
            raise DataError(f"quantile levels must lie between 0 and 1, got {p!r}")
        if levels.ndim == 0:
            return self.distribution.quantile(float(levels))
        return np.stack([self.distribution.quantile(float(level)) for level in levels])

    def interval(self, level: float = 0.9) -> np.ndarray:
        """Equal-tailed interval, (m, 2)."""
        if not is_share(level):
            raise DataError(f"level must lie between 0 and 1, got {level!r}")
        return self.quantile([(1 - level) / 2, (1 + level) / 2]).T

    def sample(self, size: int, seed: int | np.random.Generator = 0) -> np.ndarray:
        """(size, m) draws."""
        if not is_whole(size) or not 0 <= size < 2**40:
            raise DataError(f"size must be a whole number of draws, got {size!r}")
        try:
            return self.distribution.sample(size, generator(seed))
        except (MemoryError, OverflowError) as error:
            raise DataError(f"{size} draws do not fit into memory ({error})") from None

    def take(self, rows) -> Predictive:
        """The predictive of some of the m points."""
        try:
            mean = self.mean[rows]
            distribution = take_points(self.distribution, len(self), rows)
        except IndexError as error:
            raise DataError(f"rows do not pick from {len(self)} points: {error}") from None
        return Predictive(
            mean=mean,
            epistemic=self.epistemic[rows],
            aleatoric=self.aleatoric[rows],
            distribution=distribution,
        )


def generator(seed) -> np.random.Generator:
    """numpy's generator of a seed, or the generator that was given."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise DataError(
            f"seed must be a whole number from 0 on or a numpy Generator, got {seed!r}"
        ) from None


TARGETS = ("population", "selected", "unselected")
# At a correlation of 1 the distribution given selection has no density.
RHO_LIMIT = 0.999


def check_target(target: str, *, needs_w: bool = False) -> None:
    """Refuse a target that does not exist or, with `needs_w`, one that cannot do without w."""
    if not is_one_of(target, TARGETS):
        raise DataError(f"target must be one of {', '.join(TARGETS)}, got {target!r}")
    if needs_w and target != "population":
        raise DataError(f"target {target!r} needs w, all selection columns")


def predict_given_selection(mean, epistemic, sigma, covariance, index) -> Predictive:
    r"""y given that the unit was selected, with the doubt :math:`\tau^2` about f carried along.

    With :math:`\sigma'^2 = \sigma^2 + \tau^2` and :math:`\rho' = c/\sigma'`, c the covariance of
    the errors, y is :math:`f + \sigma' e` given selection: its mean is :math:`f + c\lambda(\eta)`,
    its variance :math:`\tau^2` and what selection leaves of the noise,
    :math:`\sigma^2 - c^2\delta(\eta)`.

    mean, epistemic : (m,) of f; sigma, covariance : numbers or (m,), |covariance| < sigma;
    index : (m,).
    For units that were not selected give -covariance and -index.
    """
    scale = np.sqrt(sigma**2 + epistemic)
    mills = inverse_mills(index)
    return Predictive(
        mean=mean + covariance * mills,
        epistemic=epistemic,
        aleatoric=sigma**2 - covariance**2 * mills_delta(index, mills),
        distribution=GivenSelection(mean, scale, index, covariance / scale),
    )


def predict_student(location, epistemic, sigma, df: float) -> Predictive:
    """y = location + sigma e, e a t; for df <= 2 it has no finite variance, only quantiles."""
    if df > 2:
        return Predictive.student(location, epistemic, sigma**2 * df / (df - 2), df)
    scale, aleatoric = np.sqrt(sigma**2 + epistemic), np.full_like(location, np.inf)
    return Predictive(location, epistemic, aleatoric, Student(location, scale, df))


def predict_student_given_selection(
    location, epistemic, sigma, covariance, index, df: float
) -> Predictive:
    r"""`predict_given_selection` for bivariate t errors; needs df > 1.

    Given selection the mean is :math:`f + c\,m(\eta)`; the variance, infinite for df <= 2, is
    :math:`c^2 \mathrm{Var}(u) + (\sigma^2 - c^2) K`, so a doubt :math:`\tau^2` about f widens the
    scale by :math:`\tau^2/K`.
    """
    mean, _, _ = truncated_student.mean_of_selection(index, df)
    spread = truncated_student.spread_of_selection(index, df) if df > 2 else 1.0
    variance = truncated_student.variance_given_selection(index, covariance / sigma, df)
    scale = np.sqrt(sigma**2 + epistemic / spread)
    return Predictive(
        mean=location + covariance * mean,
        epistemic=epistemic,
        aleatoric=sigma**2 * variance,
        distribution=StudentGivenSelection(location, scale, index, covariance / scale, df),
    )


def possible_covariance(covariance, sigma):
    """`covariance`, or with a warning the largest that a distribution given selection can have;
    numbers or (m,)."""
    rho = np.asarray(covariance / sigma)
    if (np.abs(rho) <= RHO_LIMIT).all():
        return covariance
    worst = float(rho.flat[np.abs(rho).argmax()])
    warnings.warn(
        f"the correlation of the errors was estimated as {worst:.3f}; "
        f"predictions given selection use {np.copysign(RHO_LIMIT, worst):.3f}",
        IdentificationWarning,
        stacklevel=3,
    )
    return rho.clip(-RHO_LIMIT, RHO_LIMIT) * sigma
