r"""Predictive distributions: `Predictive`, the families of its laws, mixtures, other scales.

A law is the distribution of the outcome at each of m points: any object with `cdf(y)`,
`quantile(p)`, `sample(size, rng)` and, if it has a density, `log_density(y)`. Arrays of its fields
have the points as their last axis, or it has a method `take(rows)`.

An outcome may have been transformed for the fit (`heckesel.scales`). The quantiles of y are then
inverse(z) of the quantiles of z. The mean is not: E[inverse(z)] differs from inverse(E[z]).
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri, stdtrit
from threadpoolctl import threadpool_info, threadpool_limits

from heckesel import display as web
from heckesel.data import check_level, numeric
from heckesel.errors import DataError, is_one_of, is_whole, warn_user
from heckesel.math import student, truncated
from heckesel.math.sinh_arcsinh import moments_given_selection, population_moments, stretch
from heckesel.math.special import LOG_2PI, inverse_mills, mills_delta
from heckesel.scales import TargetTransform

TARGETS = ("population", "selected", "unselected")
RHO_LIMIT = 0.999  # at a correlation of 1 the distribution given selection has no density
SHOWN = 10  # points in the HTML table
REACH = 40.0  # scales around the mean that contain all but 1e-17 of any component
# The columns of so many rows fit into a cache; larger blocks of splines take a fifth longer.
ROWS_AT_ONCE = 4096
# The trapezoidal rule, which for smooth functions of a normal z errs by less than 1e-12 at this
# step, and for those whose second derivative jumps, as of roots at 0, by 1e-4 sd. At the outermost
# node Phi is still below 1 in floating point.
NODES = np.linspace(-7.5, 7.5, 61)
WEIGHTS = np.exp(-0.5 * NODES**2)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
# Step of the central differences for the slope of `inverse`, in sd: the error is about 1e-8.
SLOPE_STEP = 1e-4


class Distribution(Protocol):
    """The law of the outcome at each of m points."""

    def cdf(self, y: np.ndarray) -> np.ndarray: ...

    def quantile(self, p: float) -> np.ndarray: ...

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray: ...


@dataclass(frozen=True, repr=False)
class Predictive:
    """Predictive distributions of the outcome at m points.

    Attributes
    ----------
    mean : ndarray of shape (m,)
        Predicted means.
    epistemic : ndarray of shape (m,)
        Variance due to the uncertainty about the model; it shrinks with more data.
    aleatoric : ndarray of shape (m,)
        Variance of the noise, which remains however many data there are.
    distribution : Distribution
        The distribution behind `quantile`, `cdf` and `sample`.
    index : pandas.Index or None
        Labels of the points, if they came from a pandas frame.
    library : str or None
        Library of the frame that the points came from, such as ``"polars"``, if not pandas.

    Notes
    -----
    The total variance is ``std**2 = epistemic + aleatoric``.

    Examples
    --------
    >>> import heckesel as hk
    >>> predictive = hk.Predictive.normal([0.0, 10.0], epistemic=0.36, aleatoric=0.64)
    >>> predictive.std
    array([1., 1.])
    >>> predictive.interval(0.9).round(2)
    array([[-1.64,  1.64],
           [ 8.36, 11.64]])
    """

    mean: np.ndarray
    epistemic: np.ndarray
    aleatoric: np.ndarray
    distribution: Distribution
    index: Any = field(default=None, compare=False)
    library: str | None = field(default=None, compare=False)

    @classmethod
    def normal(cls, mean, epistemic, aleatoric) -> Predictive:
        """Make a normal predictive with variance epistemic + aleatoric.

        Parameters
        ----------
        mean, epistemic, aleatoric : float or array-like of shape (m,)
            They are broadcast against each other.

        Returns
        -------
        Predictive
        """
        mean, epistemic, aleatoric = (
            np.array(part, dtype=float) for part in np.broadcast_arrays(mean, epistemic, aleatoric)
        )
        return cls(mean, epistemic, aleatoric, Normal(mean, np.sqrt(epistemic + aleatoric)))

    @classmethod
    def student(cls, mean, epistemic, aleatoric, df: float) -> Predictive:
        """Make a Student t predictive with variance epistemic + aleatoric.

        Parameters
        ----------
        mean, epistemic, aleatoric : float or array-like of shape (m,)
            They are broadcast against each other.
        df : float
            Degrees of freedom, above 2.

        Returns
        -------
        Predictive
        """
        normal = cls.normal(mean, epistemic, aleatoric)
        scale = normal.std * np.sqrt((df - 2) / df)
        return replace(normal, distribution=Student(normal.mean, scale, float(df)))

    @property
    def std(self) -> np.ndarray:
        """Standard deviation, shape (m,)."""
        return np.sqrt(self.epistemic + self.aleatoric)

    def __len__(self) -> int:
        return len(self.mean)

    def cdf(self, y) -> np.ndarray:
        """Distribution function.

        Parameters
        ----------
        y : float or array-like of shape (m,)

        Returns
        -------
        ndarray of shape (m,)
            P(Y <= y) at each point.

        Raises
        ------
        DataError
            If y does not have one number per point.
        """
        return self.distribution.cdf(self._points(y))

    def log_density(self, y) -> np.ndarray:
        """Logarithm of the density.

        Parameters
        ----------
        y : float or array-like of shape (m,)

        Returns
        -------
        ndarray of shape (m,)

        Raises
        ------
        DataError
            If y does not have one number per point, or there is no density.
        """
        if not hasattr(self.distribution, "log_density"):
            raise DataError("this distribution has no density; use cdf")
        return self.distribution.log_density(self._points(y))

    def _points(self, y) -> np.ndarray:
        """y as numbers: one, or one per point (several rows are several y per point)."""
        values = numeric(y, "y")
        if values.ndim and values.shape[-1] not in (1, len(self)):
            raise DataError(f"y has {values.shape[-1]} values but there are {len(self)} points")
        return values

    def quantile(self, p) -> np.ndarray:
        """Quantiles.

        Parameters
        ----------
        p : float or sequence of float
            Levels between 0 and 1.

        Returns
        -------
        ndarray
            Shape (m,) for a single level, (len(p), m) for several.

        Raises
        ------
        DataError
            If a level does not lie between 0 and 1.
        """
        levels = numeric(p, "p")
        if levels.ndim > 1 or not levels.size or not ((levels > 0) & (levels < 1)).all():
            raise DataError(f"quantile levels must lie between 0 and 1, got {p!r}")
        if levels.ndim == 0:
            return self.distribution.quantile(float(levels))
        return np.stack([self.distribution.quantile(float(level)) for level in levels])

    def interval(self, level: float = 0.9) -> np.ndarray:
        """Equal-tailed prediction interval.

        Parameters
        ----------
        level : float, default 0.9

        Returns
        -------
        ndarray of shape (m, 2)
            Lower and upper ends.

        Raises
        ------
        DataError
            If the level does not lie between 0 and 1.
        """
        check_level(level)
        return self.quantile([(1 - level) / 2, (1 + level) / 2]).T

    def sample(self, size: int, seed: int | np.random.Generator = 0) -> np.ndarray:
        """Draw outcomes.

        Parameters
        ----------
        size : int
            Number of draws at each point.
        seed : int or numpy.random.Generator, default 0

        Returns
        -------
        ndarray of shape (size, m)

        Raises
        ------
        DataError
            If the draws do not fit into memory, or if the size or the seed is not valid.
        """
        if not is_whole(size) or not 0 <= size < 2**40:
            raise DataError(f"size must be a whole number of draws, got {size!r}")
        try:
            return self.distribution.sample(size, generator(seed))
        except (MemoryError, OverflowError) as error:
            raise DataError(f"{size} draws do not fit into memory ({error})") from None

    def take(self, rows) -> Predictive:
        """Select some of the points.

        Parameters
        ----------
        rows : ndarray of int or bool

        Returns
        -------
        Predictive

        Raises
        ------
        DataError
            If a row does not exist.
        """
        try:
            mean, places = self.mean[rows], np.arange(len(self))[rows]
            distribution = take_points(self.distribution, len(self), rows)
        except IndexError as error:
            raise DataError(f"rows must select from the {len(self)} points: {error}") from None
        index = None if self.index is None or places.ndim != 1 else self.index[places]
        parts = (self.epistemic[rows], self.aleatoric[rows], distribution)
        return Predictive(mean, *parts, index, self.library)

    def to_frame(self, level: float = 0.9):
        """Table with one row per point.

        Parameters
        ----------
        level : float, default 0.9
            Of the prediction interval.

        Returns
        -------
        DataFrame
            ``mean``, ``std``, ``epistemic`` and ``aleatoric`` (variances), ``low`` and ``high``.
            Of the library of the frame that was predicted, and else of pandas, with its row labels.
        """
        low, high = self.interval(level).T
        columns = {name: getattr(self, name) for name in ("mean", "std", "epistemic", "aleatoric")}
        columns |= {"low": low, "high": high}
        if self.library is not None:
            import narwhals.stable.v1 as nw

            library = importlib.import_module(self.library)
            return nw.from_dict(columns, native_namespace=library).to_native()
        import pandas as pd

        return pd.DataFrame(columns, index=self.index)

    def __repr__(self) -> str:
        if not len(self):
            return "<Predictive of 0 points>"
        mean, std = np.mean(self.mean), np.mean(self.std)
        return f"<Predictive of {len(self):,} points: mean {mean:.4g}, std {std:.4g} on average>"

    def _repr_html_(self) -> str:
        count = len(self)
        shown = replace(self.take(np.arange(min(count, SHOWN))), library=None).to_frame()
        rows = [(str(label), *map(web.number_text, row)) for label, *row in shown.itertuples()]
        head = ("", "mean", "std", "epistemic", "aleatoric", "90% low", "90% high")
        first = f" (first {SHOWN} of {count:,} points)" if count > SHOWN else ""
        caption = f"Predictive distribution{first}; epistemic and aleatoric are variances"
        return web.block(web.html_table(head, rows, caption=caption))


def generator(seed) -> np.random.Generator:
    """A numpy generator with this seed, or the one that was given."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise DataError(
            f"seed must be a whole number from 0 on or a numpy Generator, got {seed!r}"
        ) from None


def check_target(target: str, *, needs_w: bool = False) -> None:
    """Refuse an unknown target and, with `needs_w`, one that needs the selection columns."""
    if not is_one_of(target, TARGETS):
        raise DataError(f"target must be one of {', '.join(TARGETS)}, got {target!r}")
    if needs_w and target != "population":
        raise DataError(f"target {target!r} needs w, the selection columns")


# Families


@dataclass(frozen=True)
class Scaled:
    """y = location + scale e, (m,) each; a family has the law of e: `_cdf`, `_quantile`, `_sample`
    and `_log_density`."""

    location: np.ndarray
    scale: np.ndarray

    def cdf(self, y):
        return self._cdf((y - self.location) / self.scale)

    def quantile(self, p):
        return self.location + self.scale * self._quantile(p)

    def sample(self, size, rng):
        return self.location + self.scale * self._sample(size, rng)

    def log_density(self, y):
        return self._log_density((y - self.location) / self.scale) - np.log(self.scale)


class Normal(Scaled):
    """e is standard normal."""

    _cdf, _quantile = staticmethod(ndtr), staticmethod(ndtri)

    def _sample(self, size, rng):
        return rng.standard_normal((size, len(self.location)))

    def _log_density(self, e):
        return -0.5 * e**2 - 0.5 * LOG_2PI


@dataclass(frozen=True)
class Student(Scaled):
    """e has df degrees of freedom; the variance of y is scale^2 df/(df - 2)."""

    df: float

    def _cdf(self, e):
        return student.cdf(e, self.df)

    def _quantile(self, p):
        return stdtrit(self.df, p)

    def _sample(self, size, rng):
        return rng.standard_t(self.df, (size, len(self.location)))

    def _log_density(self, e):
        return student.log_density(e, self.df).value


@dataclass(frozen=True)
class GivenSelection(Scaled):
    """e given selection, u > -index.

    index, rho : (m,); (u, e) is standard bivariate normal with correlation rho, or bivariate t with
    df degrees of freedom. An unselected unit has -u > index, so its distribution has -index and
    -rho.
    """

    index: np.ndarray
    rho: np.ndarray
    df: float = np.inf

    def _cdf(self, e):
        return truncated.cdf_given_selection(e, self.index, self.rho, self.df)

    def _quantile(self, p):
        return truncated.quantile_given_selection(p, self.index, self.rho, self.df)

    def _sample(self, size, rng):
        return truncated.sample_given_selection(size, self.index, self.rho, rng, self.df)

    def _log_density(self, e):
        return truncated.log_density_given_selection(e, self.index, self.rho, self.df)


@dataclass(frozen=True)
class Shaped(Scaled):
    """e = sinh((asinh q + skewness)/tail), q of `inner`.

    skewness, log_tail : numbers, or (k, 1) if the others are (k, m)
    """

    inner: Distribution
    skewness: Any
    log_tail: Any

    def _inside(self, e):
        """t with q = sinh t."""
        return np.exp(self.log_tail) * np.arcsinh(e) - self.skewness

    def _cdf(self, e):
        return self.inner.cdf(_sinh(self._inside(e)))

    def _quantile(self, p):
        return stretch(self.inner.quantile(p), self.skewness, self.log_tail)

    def _sample(self, size, rng):
        return stretch(self.inner.sample(size, rng), self.skewness, self.log_tail)

    def _log_density(self, e):
        t = self._inside(e)
        log_cosh = np.logaddexp(t, -t) - np.log(2.0)
        slope = self.log_tail + log_cosh - np.log(np.hypot(1.0, e))
        with np.errstate(over="ignore"):  # the density is zero there
            return self.inner.log_density(_sinh(t)) + slope


def _sinh(t):
    with np.errstate(over="ignore"):  # where q is infinite its probabilities are 0 and 1
        return np.sinh(t)


def take_points(distribution: Any, m: int, rows: np.ndarray):
    """The distribution at some of its m points.

    The last axis of an array must be the points, a number is shared by all of them, and a field may
    be a distribution itself. A distribution with any other field needs a method `take(rows)`.
    """
    if hasattr(distribution, "take"):
        return distribution.take(rows)
    taken = {}
    for each in fields(distribution):
        value = getattr(distribution, each.name)
        if hasattr(value, "cdf"):
            taken[each.name] = take_points(value, m, rows)
        elif not isinstance(value, int | float):
            if np.shape(value)[-1:] != (m,):
                raise DataError(
                    f"{type(distribution).__name__}.{each.name} has shape {np.shape(value)} but "
                    f"there are {m} points; give the distribution a method take(rows)"
                )
            taken[each.name] = np.asarray(value)[..., rows]
    return replace(distribution, **taken)


def predict_given_selection(
    mean, epistemic, sigma, covariance, index, df: float = np.inf
) -> Predictive:
    r"""y given selection, with epistemic variance :math:`\tau^2` of f.

    Let c be the covariance of the errors, :math:`\sigma'^2 = \sigma^2 + \tau^2` and
    :math:`\rho' = c/\sigma'`. Then y is :math:`f + \sigma' e` given selection. Its mean is
    :math:`f + c\lambda(\eta)`. Its variance is :math:`\tau^2` plus the noise that remains after
    selection, :math:`\sigma^2 - c^2\delta(\eta)`.

    With bivariate t errors, df > 1, the mean is :math:`f + c\,m(\eta)`; the variance, infinite for
    df <= 2, is :math:`c^2 \mathrm{Var}(u) + (\sigma^2 - c^2) K`, so :math:`\tau^2` increases the
    squared scale by :math:`\tau^2/K`.

    mean, epistemic : (m,) of f; sigma, covariance : numbers or (m,), |covariance| < sigma;
    index : (m,). For unselected units pass -covariance and -index.
    """
    mills, noise = inverse_mills(index), 1.0
    aleatoric = sigma**2 - covariance**2 * mills_delta(index, mills)
    if df < np.inf:
        mills = truncated.mean_of_selection(index, df)[0]
        noise = truncated.noise_given_selection(index, df) if df > 2 else 1.0
        aleatoric = sigma**2 * truncated.variance_given_selection(index, covariance / sigma, df)
    scale = np.sqrt(sigma**2 + epistemic / noise)
    law = GivenSelection(mean, scale, index, covariance / scale, df)
    return Predictive(mean + covariance * mills, epistemic, aleatoric, law)


def predict_student(location, epistemic, sigma, df: float) -> Predictive:
    """y = location + sigma e with t errors; for df <= 2 the variance is infinite."""
    if df > 2:
        return Predictive.student(location, epistemic, sigma**2 * df / (df - 2), df)
    scale, aleatoric = np.sqrt(sigma**2 + epistemic), np.full_like(location, np.inf)
    return Predictive(location, epistemic, aleatoric, Student(location, scale, df))


def possible_covariance(covariance, sigma):
    """`covariance`, limited to the range a distribution given selection allows, with a warning.

    covariance, sigma : numbers or (m,)
    """
    rho = np.asarray(covariance / sigma)
    if (np.abs(rho) <= RHO_LIMIT).all():
        return covariance
    worst = np.copysign(RHO_LIMIT, rho.flat[np.abs(rho).argmax()])
    warn_user(
        f"the estimated correlation of the errors lies beyond {worst:.3f}; predictions given "
        f"selection use {worst:.3f} instead"
    )
    return rho.clip(-RHO_LIMIT, RHO_LIMIT) * sigma


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
    around = Shaped(mean + wider * (location - mean), wider * sigma, inner, skewness, log_tail)
    return Predictive(mean, epistemic, aleatoric, around)


# Mixtures


@dataclass(frozen=True)
class Mixture:
    """weight : (j, m), sums to one over j; a component of weight 0 may have any other fields

    components : `Normal` or `GivenSelection` with fields (j, m), or j predictives of any families
    """

    weight: np.ndarray
    components: Normal | GivenSelection | tuple[Predictive, ...]

    def cdf(self, y):
        return _average(self.weight, self._each("cdf", y))

    def log_density(self, y):
        with np.errstate(divide="ignore", invalid="ignore"):
            each = self._each("log_density", y) + np.log(self.weight)
        return logsumexp(np.where(self.weight > 0, each, -np.inf), axis=0)

    def quantile(self, p):
        """(m,) by a search in units of the largest scale."""
        if isinstance(self.components, tuple):
            with np.errstate(invalid="ignore"):
                start = low = high = self._each("quantile", p)
                scale = np.stack([part.std for part in self.components])
        else:
            mean, scale = self._mean_and_scale()
            low, high = mean - REACH * scale, mean + REACH * scale
            start = mean + scale * ndtri(p)
        used = self.weight > 0
        low = np.where(used, low, np.inf).min(axis=0)
        high = np.where(used, high, -np.inf).max(axis=0)
        start, unit = _average(self.weight, start), np.where(used, scale, 0.0).max(axis=0)

        def cdf_and_density(e, at):
            some, y = self.take(at), start[at] + unit[at] * e
            return some.cdf(y), np.exp(some.log_density(y)) * unit[at]

        bracket = (low - start) / unit, (high - start) / unit
        level, here = np.full(len(start), p), np.zeros(len(start))
        return start + unit * truncated.invert_cdf(level, cdf_and_density, here, bracket)

    def sample(self, size, rng):
        """(size, m): a component for each draw and point, and a draw from it."""
        below = np.cumsum(self.weight, axis=0)[:-1]  # (j - 1, m)
        if isinstance(self.components, tuple):
            each = np.stack([part.sample(size, rng) for part in self.components])
            chosen = (rng.random((1, size, 1, below.shape[1])) > below).sum(axis=2)
            return np.take_along_axis(each, chosen, axis=0)[0]
        drawn = (rng.random((size, 1, below.shape[1])) > below).sum(axis=1)  # (size, m)
        points = np.arange(below.shape[1])
        chosen = _with_fields(self.components, lambda values: values[drawn, points].ravel())
        return chosen.sample(1, rng).reshape(size, -1)

    def take(self, rows) -> Mixture:
        if isinstance(self.components, tuple):
            return Mixture(self.weight[:, rows], tuple(part.take(rows) for part in self.components))
        components = _with_fields(self.components, lambda values: values[:, rows])
        return Mixture(self.weight[:, rows], components)

    def _each(self, name: str, value) -> np.ndarray:
        """(j, m)"""
        if isinstance(self.components, tuple):
            return np.stack([getattr(part, name)(value) for part in self.components])
        return getattr(self.components, name)(value)

    def _mean_and_scale(self):
        """Of each component; if selection is unlikely, the mean is far from the location."""
        each = self.components
        if isinstance(each, Normal):
            return each.location, each.scale
        return each.location + each.scale * each.rho * inverse_mills(each.index), each.scale


def _average(weight, values):
    """Over components; those of weight 0 do not count, whatever their values."""
    with np.errstate(invalid="ignore"):
        return np.where(weight > 0, weight * values, 0.0).sum(axis=0)


def _with_fields(distribution, change):
    values = {each.name: getattr(distribution, each.name) for each in fields(distribution)}
    arrays = {name: each for name, each in values.items() if isinstance(each, np.ndarray)}
    return replace(distribution, **{name: change(each) for name, each in arrays.items()})


def _weights(log_weight) -> np.ndarray:
    """(j, m) weights; a component whose log weight is NaN has none."""
    log_weight = np.where(np.isnan(log_weight), -np.inf, log_weight)
    return np.exp(log_weight - logsumexp(log_weight, axis=0))


def mix_predictives(components: Sequence[Predictive], log_weight=None) -> Predictive:
    """The mixture with these log weights (j, m), or with equal weights; the variance of the means
    is epistemic."""
    mean = np.stack([each.mean for each in components])
    epistemic = np.stack([each.epistemic for each in components])
    aleatoric = np.stack([each.aleatoric for each in components])
    weight = _weights(np.zeros_like(mean) if log_weight is None else log_weight)
    return mixed(weight, mean, epistemic, aleatoric, Mixture(weight, tuple(components)))


def mixed_normal(weight, mean, epistemic, sigma) -> Predictive:
    """Components N(mean, epistemic + sigma^2) with weight (j,); the others (j, m) or (j, 1)."""
    mean, epistemic, sigma = np.broadcast_arrays(mean, epistemic, sigma)
    weight = np.broadcast_to(weight[:, None], mean.shape)
    scale = np.sqrt(np.where(weight > 0, epistemic + sigma**2, 1.0))
    return mixed(weight, mean, epistemic, sigma**2, Mixture(weight, Normal(mean, scale)))


def mixed_given_selection(log_weight, mean, epistemic, sigma, covariance, index) -> Predictive:
    """Components as in `predict_given_selection`; log_weight, index : (j, m).

    The weight of a component is that of its model among selected units, so the caller adds
    log P(selected) under each model to the log weights.
    """
    weight = _weights(log_weight)
    given = ((mean, 0.0), (epistemic, 0.0), (sigma, 1.0), (covariance, 0.0), (index, 0.0))
    mean, epistemic, sigma, covariance, index = (np.where(weight > 0, *pair) for pair in given)
    each = predict_given_selection(mean, epistemic, sigma, covariance, index)
    assert isinstance(each.distribution, GivenSelection)
    mixture = Mixture(weight, each.distribution)
    return mixed(weight, each.mean, each.epistemic, each.aleatoric, mixture)


def mixed(weight, mean, epistemic, aleatoric, distribution) -> Predictive:
    r"""The whole mixture: :math:`\sum w_j (\tau_j^2 + (\mu_j - \mu)^2)` is epistemic and
    :math:`\sum w_j\sigma_j^2` aleatoric."""
    overall = _average(weight, mean)
    between = _average(weight, epistemic + (mean - overall) ** 2)
    return Predictive(overall, between, _average(weight, aleatoric), distribution)


# Other scales


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
    law = transformed_distribution(predictive, transform)
    return Predictive(mean, epistemic, variance - epistemic, law)


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
    if isinstance(distribution, Mixture):
        parts = distribution.components
        if isinstance(parts, tuple):
            return all(_has_formula(part.distribution) for part in parts)
        distribution = parts
    given = isinstance(distribution, GivenSelection) and distribution.df == np.inf
    return given or isinstance(distribution, Normal)


def _log_moment(distribution, t: float) -> np.ndarray:
    r"""(m,) :math:`\log E[e^{tz}]`: :math:`t\mu + t^2\sigma^2/2` for a normal z. Given selection

    .. math:: E[e^{tz} \mid s=1] = e^{t\mu + t^2\sigma^2/2}\,\Phi(\eta + t\rho\sigma)/\Phi(\eta) ,

    and for a mixture :math:`E[e^{tz}]` is the weighted mean over its components.
    """
    if isinstance(distribution, Mixture):
        parts, weight = distribution.components, distribution.weight
        if isinstance(parts, tuple):
            each = np.stack([_log_moment(part.distribution, t) for part in parts])
        else:
            each = _log_moment(parts, t)
        with np.errstate(divide="ignore"):
            return logsumexp(np.where(weight > 0, each + np.log(weight), -np.inf), axis=0)
    found = t * distribution.location + 0.5 * (t * distribution.scale) ** 2
    if isinstance(distribution, Normal):
        return found
    index, slope = distribution.index, distribution.rho * distribution.scale
    return found + (log_ndtr(index + t * slope) - log_ndtr(index))


def _moments(distribution: Distribution, transform: TargetTransform):
    r"""Mean and variance of g(z), g the inverse, by quadrature in t:

    .. math:: E[g(z)] = \int g\big(Q(\Phi(t))\big)\,\varphi(t)\,dt ,

    where Q is the quantile function of z. For a normal z this is the usual rule. A distribution
    from residuals is cut at the levels that were observed: the tails beyond are assumed, and a mean
    of e^z would consist of them.
    """
    if isinstance(distribution, Normal):
        z = distribution.location + distribution.scale * NODES[:, None]  # (nodes, m)
    else:
        levels = np.clip(ndtr(NODES), *getattr(distribution, "observed_levels", (0.0, 1.0)))
        z = np.stack([distribution.quantile(float(p)) for p in levels])
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


# Long tables


def in_row_blocks(numbers: Callable[[slice], tuple], rows: int) -> list[np.ndarray]:
    """The arrays that `numbers` returns for a block of rows, joined over all blocks; what it warns
    of is said once, at the line of the user."""
    if rows <= ROWS_AT_ONCE:
        return [np.asarray(each) for each in numbers(slice(None))]
    blocks = [slice(at, at + ROWS_AT_ONCE) for at in range(0, rows, ROWS_AT_ONCE)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        threads = max((each["num_threads"] for each in threadpool_info()), default=1)
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(numbers, blocks))
    for text, category in dict.fromkeys((str(each.message), each.category) for each in caught):
        warn_user(text, category)
    return [np.concatenate(each) for each in zip(*parts, strict=True)]
