r"""Means over groups of rows, with their uncertainty.

The uncertainty of a mean is not the mean of uncertainties: errors of the predictions of two rows
come from the same estimates. So every quantity is computed from the whole group under each
parameter value, member or component, and its variation is the uncertainty.

A model is a mixture of components j with weights :math:`w_j`. Under component j the quantity is
:math:`q_j` with the variance :math:`v_j`, by the delta method, or by the jackknife from members
that each hold out one fold. The quantity then has

.. math:: \bar q = \sum_j w_j q_j, \qquad \mathrm{se}^2 = \sum_j w_j\,[v_j + (q_j - \bar q)^2],

and the interval is that of the mixture of normals around :math:`q_j`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from heckesel.errors import DataError
from heckesel.predictive.families import Normal
from heckesel.predictive.mixture import Mixture

LEAST_VARIANCE = 1e-30  # so that a mixture whose components agree has quantiles


@dataclass(frozen=True)
class Estimates:
    """(g,) each: the quantity for g groups, and its inference."""

    value: np.ndarray
    se: np.ndarray
    p: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class ComponentMean:
    """The expected outcome of m rows under one component.

    mean : (m,), or (folds, m) by members that held out each fold, for the jackknife
    gradient : (m, P) in parameters with the covariance root root', root (P, d)
    folds : how many parts the rows of the fit were split into, for the jackknife
    """

    weight: float
    mean: np.ndarray
    gradient: np.ndarray | None = None
    root: np.ndarray | None = None
    folds: int | None = None


def without_uncertainty(mean, weight: float = 1.0) -> ComponentMean:
    """A component whose uncertainty is not known, so that standard errors are NaN."""
    return ComponentMean(weight, mean, np.full((len(mean), 1), np.nan), np.ones((1, 1)))


@dataclass(frozen=True)
class Quantity:
    """of : from the means (m,) and the gradients (m, P) or None of several versions of the rows to
    the quantity (g,) and its gradient (g, P) or None; is_average : whether it is a plain mean"""

    of: Callable[[list[np.ndarray], list], tuple[np.ndarray, np.ndarray | None]]
    is_average: bool = False


def average_of(groups) -> Quantity:
    """The mean over each group of rows, from one version of them."""

    def quantity(means, gradients):
        (mean,), (gradient,) = means, gradients
        return groups.mean(mean), None if gradient is None else groups.mean(gradient)

    return Quantity(quantity, is_average=True)


def effect_of(groups, width: float) -> Quantity:
    """The mean difference between rows after a change up and after one down, over `width`."""

    def quantity(means, gradients):
        change = groups.mean(means[0] - means[1]) / width
        if gradients[0] is None:
            return change, None
        return change, groups.mean(gradients[0] - gradients[1]) / width

    return Quantity(quantity)


def elasticity_of(groups, column, width: float) -> Quantity:
    r"""The mean of :math:`\frac{\partial \mu}{\partial x}\frac{x}{\mu}`, from rows after a change up,
    after one down, and without; column : (m,) x"""

    def quantity(means, gradients):
        up, down, here = means
        check_sign(here)
        factor = column / (width * here)
        elasticity = factor * (up - down)
        if gradients[0] is None:
            return groups.mean(elasticity), None
        slope = factor[:, None] * (gradients[0] - gradients[1])
        slope -= (elasticity / here)[:, None] * gradients[2]
        return groups.mean(elasticity), groups.mean(slope)

    return Quantity(quantity)


def check_sign(mean) -> None:
    """Refuse predictions of both signs, between which elasticities are infinite."""
    odd = np.flatnonzero(~(mean * np.sign(mean[0]) > 0))
    if len(odd):
        raise DataError(
            f"elasticities need predictions of one sign, but that of row 0 is {mean[0]:.4g} and "
            f"that of row {odd[0]} is {mean[odd[0]]:.4g}; use kind='effect'"
        )


def estimate_mixture(
    versions: Iterable[Iterator[ComponentMean]],
    quantity: Quantity,
    level: float,
    *,
    centre: np.ndarray | None = None,
    is_probability: bool = False,
) -> Estimates:
    """A quantity of a mixture of components.

    versions : for each version of the rows that the quantity needs, the components in turn
    centre : (g,) the quantity by the predictions of the whole model, if these have their own
        weights for each row; it takes the place of the mean over components
    is_probability : whether the outcome is one; the interval of an average is then found on the
        probit scale
    """
    found = [_component(parts, quantity) for parts in zip(*versions, strict=True)]
    weight, value, variance, freedom = (np.array(each) for each in zip(*found, strict=True))
    weight = weight[:, None] / weight.sum()  # (j, 1)
    mean = (weight * value).sum(axis=0)
    se = np.sqrt((weight * (variance + (value - mean) ** 2)).sum(axis=0))
    if centre is not None:
        value, mean = value + (centre - mean), centre
    if is_probability and quantity.is_average:
        value = value.clip(1e-300, 1 - 1e-16)
        z = ndtri(value)
        slope = np.sqrt(2 * np.pi) * np.exp(0.5 * z * z)
        low, high = ndtr(_interval(weight, z, slope**2 * variance, freedom, level))
    else:
        low, high = _interval(weight, value, variance, freedom, level)
    return Estimates(mean, se, _p_value(weight, value, variance, freedom), low, high)


def _component(parts: tuple[ComponentMean, ...], quantity: Quantity):
    """Weight, value (g,), variance (g,) and degrees of freedom under one component."""
    first = parts[0]
    if first.folds is None:
        value, slope = quantity.of([part.mean for part in parts], [part.gradient for part in parts])
        return first.weight, value, ((slope @ first.root) ** 2).sum(axis=1), np.inf
    means = zip(*(part.mean for part in parts), strict=True)
    values = np.array([quantity.of(list(each), [None] * len(parts))[0] for each in means])
    # the delete-a-group jackknife: each value was estimated without one of the folds
    variance = (first.folds - 1) * values.var(axis=0)
    if len(values) < 2:
        variance = np.full_like(variance, np.nan)
    return first.weight, values.mean(axis=0), variance, max(len(values) - 1, 1)


def _interval(weight, value, variance, freedom, level: float) -> np.ndarray:
    """(2, g) ends. A variance from few folds is itself uncertain, so standard deviations are
    multiplied by the ratio of the t quantile to the normal one."""
    high = (1 + level) / 2
    longer = np.array([1.0 if np.isinf(df) else stdtrit(df, high) / ndtri(high) for df in freedom])
    std = longer[:, None] * np.sqrt(variance)
    exists = np.isfinite(std).all(axis=0)
    ends = np.full((2, value.shape[1]), np.nan)
    if exists.any():
        shape = value[:, exists].shape
        each = Normal(value[:, exists], np.sqrt(std[:, exists] ** 2 + LEAST_VARIANCE))
        doubt = Mixture(np.broadcast_to(weight, shape), each)
        ends[:, exists] = doubt.quantile(1 - high), doubt.quantile(high)
    return ends


def _p_value(weight, value, variance, freedom) -> np.ndarray:
    """(g,) of the tests that the quantity is zero: twice the smaller tail beyond zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = value / np.sqrt(variance)
    tails = [
        [ndtr(side * row) if np.isinf(df) else stdtr(df, side * row) for side in (1, -1)]
        for row, df in zip(z, freedom, strict=True)
    ]  # (j, 2, g)
    beyond = (weight[:, :, None] * np.array(tails)).sum(axis=0).min(axis=0)
    return np.minimum(2 * beyond, 1.0)
