"""`Predictive`, which every method returns for m points, and predictions for the three targets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from heckesel.errors import DataError, is_one_of, is_whole, warn_user
from heckesel.numeric_input import check_level, numeric
from heckesel.numerics import truncated_student
from heckesel.numerics.normal import inverse_mills, mills_delta
from heckesel.predictive.as_table import predictive_frame, predictive_html
from heckesel.predictive.families import (
    Distribution,
    GivenSelection,
    Normal,
    Student,
    StudentGivenSelection,
    take_points,
)


@dataclass(frozen=True)
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
            If y does not have one number per point.
        """
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
        return Predictive(
            mean=mean,
            epistemic=self.epistemic[rows],
            aleatoric=self.aleatoric[rows],
            distribution=distribution,
            index=None if self.index is None or places.ndim != 1 else self.index[places],
            library=self.library,
        )

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
        return predictive_frame(self, level)

    def _repr_html_(self) -> str:
        return predictive_html(self)


def generator(seed) -> np.random.Generator:
    """A numpy generator with this seed, or the one that was given."""
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
    """Refuse an unknown target and, with `needs_w`, one that needs the selection columns."""
    if not is_one_of(target, TARGETS):
        raise DataError(f"target must be one of {', '.join(TARGETS)}, got {target!r}")
    if needs_w and target != "population":
        raise DataError(f"target {target!r} needs w, the selection columns")


def predict_given_selection(mean, epistemic, sigma, covariance, index) -> Predictive:
    r"""y given selection, with epistemic variance :math:`\tau^2` of f.

    Let c be the covariance of the errors, :math:`\sigma'^2 = \sigma^2 + \tau^2` and
    :math:`\rho' = c/\sigma'`. Then y is :math:`f + \sigma' e` given selection. Its mean is
    :math:`f + c\lambda(\eta)`. Its variance is :math:`\tau^2` plus the noise that remains after
    selection, :math:`\sigma^2 - c^2\delta(\eta)`.

    mean, epistemic : (m,) of f; sigma, covariance : numbers or (m,), |covariance| < sigma;
    index : (m,). For unselected units pass -covariance and -index.
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
    """y = location + sigma e with t errors; for df <= 2 the variance is infinite."""
    if df > 2:
        return Predictive.student(location, epistemic, sigma**2 * df / (df - 2), df)
    scale, aleatoric = np.sqrt(sigma**2 + epistemic), np.full_like(location, np.inf)
    return Predictive(location, epistemic, aleatoric, Student(location, scale, df))


def predict_student_given_selection(
    location, epistemic, sigma, covariance, index, df: float
) -> Predictive:
    r"""`predict_given_selection` for bivariate t errors; needs df > 1.

    Given selection the mean is :math:`f + c\,m(\eta)`; the variance, infinite for df <= 2, is
    :math:`c^2 \mathrm{Var}(u) + (\sigma^2 - c^2) K`, so an epistemic variance :math:`\tau^2` of f
    increases the squared scale by :math:`\tau^2/K`.
    """
    mean, _, _ = truncated_student.mean_of_selection(index, df)
    noise = truncated_student.noise_given_selection(index, df) if df > 2 else 1.0
    variance = truncated_student.variance_given_selection(index, covariance / sigma, df)
    scale = np.sqrt(sigma**2 + epistemic / noise)
    return Predictive(
        mean=location + covariance * mean,
        epistemic=epistemic,
        aleatoric=sigma**2 * variance,
        distribution=StudentGivenSelection(location, scale, index, covariance / scale, df),
    )


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
