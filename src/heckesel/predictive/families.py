"""The distributions a `Predictive` can have: normal or t, unconditional or given selection."""

from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from heckesel.errors import DataError
from heckesel.numerics import student, truncated_student
from heckesel.numerics.normal import LOG_2PI
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
        return student.cdf((y - self.location) / self.scale, self.df)

    def quantile(self, p):
        return self.location + self.scale * stdtrit(self.df, p)

    def sample(self, size, rng):
        return self.location + self.scale * rng.standard_t(self.df, (size, len(self.location)))

    def log_density(self, y):
        e = (y - self.location) / self.scale
        return student.log_density(e, self.df).value - np.log(self.scale)


@dataclass(frozen=True)
class GivenSelection:
    """y = location + scale e given selection, u > -index.

    location, scale, index, rho : (m,); (u, e) is standard bivariate normal with correlation rho.
    An unselected unit has -u > index, so its distribution has -index and -rho.
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
    """`GivenSelection` with (u, e) standard bivariate t with df degrees of freedom."""

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


def take_points(distribution: Any, m: int, rows: np.ndarray):
    """The distribution at some of its m points.

    The last axis of an array must be the points, a number is shared by all of them, and a field may
    be a distribution itself. A distribution with any other field needs a method `take(rows)`.
    """
    if hasattr(distribution, "take"):
        return distribution.take(rows)
    taken = {}
    for field in fields(distribution):
        value = getattr(distribution, field.name)
        if hasattr(value, "cdf"):
            taken[field.name] = take_points(value, m, rows)
        elif not isinstance(value, int | float):
            if np.shape(value)[-1:] != (m,):
                raise DataError(
                    f"{type(distribution).__name__}.{field.name} has shape {np.shape(value)} but "
                    f"there are {m} points; give the distribution a method take(rows)"
                )
            taken[field.name] = np.asarray(value)[..., rows]
    return replace(distribution, **taken)
