r"""Means over groups of rows, with their uncertainty, and changes of columns for margins.

The uncertainty of a mean is not the mean of uncertainties: errors of the predictions of two rows
come from the same estimates. So every quantity is computed from the whole group under each
parameter value, member or component, and its variation is the uncertainty.

A model is a mixture of components j with weights :math:`w_j`. Under component j the quantity is
:math:`q_j` with the variance :math:`v_j`, by the delta method, or by the jackknife from members
that each hold out one fold. The quantity then has

.. math:: \bar q = \sum_j w_j q_j, \qquad \mathrm{se}^2 = \sum_j w_j\,[v_j + (q_j - \bar q)^2],

and the interval is that of the mixture of normals around :math:`q_j`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from heckesel.errors import DataError, did_you_mean
from heckesel.predictive import Mixture, Normal
from heckesel.tables.frames import as_pandas
from heckesel.tables.values import column_levels, is_number

STEP = 1e-4  # of central differences, in standard deviations of the column
STEP_OF_TREES = 0.5  # of learners that are constant between thresholds, such as boosting
LEAST_VARIANCE = 1e-30  # so that a mixture whose components agree has quantiles


@dataclass(frozen=True)
class MeanEstimates:
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
    predicted : (m,) the prediction of the component, if it is not the mean over folds
    log_weight : (m,) of its prediction in that of the whole model; by default log weight
    calibrated : whether the interval is that of the components themselves, not moved to the
        prediction, with normal quantiles for the jackknife
    """

    weight: float
    mean: np.ndarray
    gradient: np.ndarray | None = None
    root: np.ndarray | None = None
    folds: int | None = None
    predicted: np.ndarray | None = None
    log_weight: np.ndarray | None = None
    calibrated: bool = False

    @property
    def prediction(self) -> tuple[np.ndarray, np.ndarray]:
        """(m,) the prediction, and the logarithm of its weight."""
        own = self.mean if self.folds is None else self.mean.mean(axis=0)
        mean = own if self.predicted is None else self.predicted
        if self.log_weight is not None:
            return mean, self.log_weight
        with np.errstate(divide="ignore"):  # a weight may round to zero
            return mean, np.full(len(mean), np.log(self.weight))

    def take(self, rows: slice) -> "ComponentMean":
        """The same of some of the rows, without the prediction."""
        gradient = None if self.gradient is None else self.gradient[rows]
        return ComponentMean(
            self.weight,
            self.mean[..., rows],
            gradient,
            self.root,
            self.folds,
            calibrated=self.calibrated,
        )


def without_uncertainty(mean) -> ComponentMean:
    """A component whose uncertainty is not known, so that standard errors are NaN."""
    return ComponentMean(1.0, mean, np.full((len(mean), 1), np.nan), np.ones((1, 1)))


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
    r"""The mean of :math:`\frac{\partial \mu}{\partial x}\frac{x}{\mu}`, from rows after a change
    up, after one down, and without; column : (m,) x"""

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


@dataclass(frozen=True)
class Question:
    """A quantity of rows that come in several versions, `versions` of them."""

    quantity: Quantity
    versions: int


def estimate_mixture(
    components: Iterable[ComponentMean],
    questions: Sequence[Question],
    level: float,
    *,
    is_probability: bool = False,
) -> list[MeanEstimates]:
    """The answers to some questions about a mixture.

    components : each with the versions of the rows of all questions, one after the other
    is_probability : whether the outcome is one; the interval of an average is then found on the
        probit scale

    The value is the quantity of the predictions of the whole model. Their weights may differ
    between rows, as a component under which selection was unlikely counts less.
    """
    found: list[list[tuple]] = [[] for _ in questions]
    mean, log_total = np.zeros(1), np.full(1, -np.inf)
    for component in components:
        prediction, log_weight = component.prediction
        before, log_total = log_total, np.logaddexp(log_total, log_weight)
        with np.errstate(invalid="ignore"):
            mean = mean * np.exp(before - log_total) + prediction * np.exp(log_weight - log_total)
        for place, (question, parts) in enumerate(_by_question(component, questions)):
            found[place].append(_component(parts, question.quantity))
    whole = ComponentMean(1.0, mean)
    centres = [
        question.quantity.of([part.mean for part in parts], [None] * question.versions)[0]
        for question, parts in _by_question(whole, questions)
    ]
    return [
        _estimates(each, centre, level, is_probability and question.quantity.is_average)
        for each, centre, question in zip(found, centres, questions, strict=True)
    ]


def _by_question(component: ComponentMean, questions: Sequence[Question]):
    """Each question, and the component at the versions of its rows."""
    m = component.mean.shape[-1] // sum(question.versions for question in questions)
    first = 0
    for question in questions:
        starts = range(first, first + m * question.versions, m)
        yield question, [component.take(slice(start, start + m)) for start in starts]
        first += m * question.versions


def _estimates(found: list[tuple], centre, level: float, on_probit_scale: bool) -> MeanEstimates:
    """From weight, value (g,), variance (g,) and degrees of freedom under each component."""
    weight, value, variance, freedom, calibrated = (
        np.array(each) for each in zip(*found, strict=True)
    )
    weight = weight[:, None] / weight.sum()  # (j, 1)
    mean = (weight * value).sum(axis=0)
    se = np.sqrt((weight * (variance + (value - mean) ** 2)).sum(axis=0))
    if calibrated.all():
        low, high = _interval(weight, value, variance, freedom, level)
        p = _p_value(weight, value, variance, freedom)
        return MeanEstimates(centre, se, p, np.minimum(low, centre), np.maximum(high, centre))
    value = value + (centre - mean)
    if on_probit_scale:
        z = ndtri(value)
        ends = ndtr(_interval(weight, z, variance / _density(z) ** 2, freedom, level))
    else:
        ends = _interval(weight, value, variance, freedom, level)
    return MeanEstimates(centre, se, _p_value(weight, value, variance, freedom), *ends)


def _density(z):
    return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


def _component(parts: Sequence[ComponentMean], quantity: Quantity):
    """Weight, value (g,), variance (g,) and degrees of freedom under one component."""
    first = parts[0]
    if first.folds is None:
        value, slope = quantity.of([part.mean for part in parts], [part.gradient for part in parts])
        assert slope is not None
        return first.weight, value, ((slope @ first.root) ** 2).sum(axis=1), np.inf, False
    means = zip(*(part.mean for part in parts), strict=True)
    values = np.array([quantity.of(list(each), [None] * len(parts))[0] for each in means])
    # the delete-a-group jackknife: each value was estimated without one of the folds
    variance = (first.folds - 1) * values.var(axis=0)
    if len(values) < 2:
        variance = np.full_like(variance, np.nan)
    freedom = np.inf if first.calibrated else max(len(values) - 1, 1)
    return first.weight, values.mean(axis=0), variance, freedom, first.calibrated


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


# Columns to vary, values to set, and groups of rows


@dataclass(frozen=True)
class Move:
    """A change of one column, from `down` to `up`, that is `width` wide.

    is_number : whether up and down are added to the column, and do not replace it
    """

    name: str
    label: str
    up: Any
    down: Any
    width: float
    is_number: bool

    def sides(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The frame after the change up and after the change down."""
        column = frame[self.name]
        if self.is_number:
            high, low = (frame.assign(**{self.name: column + by}) for by in (self.up, self.down))
            return high, low
        high, low = (with_value(frame, self.name, value) for value in (self.up, self.down))
        return high, low


def moves_of(
    column: pd.Series, levels=None, *, contrast_indicators: bool = False, step: float = STEP
) -> list[Move]:
    """A number moves by a central difference; a category from its first level to each other one,
    and so do 0 and 1 with `contrast_indicators`.

    levels : of a column of numbers that is a category; step : in standard deviations of a number
    """
    name = str(column.name)
    if (
        levels is None
        and contrast_indicators
        and is_number(column)
        and set(column.dropna().unique()) == {0, 1}
    ):
        return [Move(name, f"{name}[1]", 1.0, 0.0, 1.0, is_number=False)]
    if levels is None and is_number(column):
        step = step * (float(column.std(ddof=0)) or 1.0)
        return [Move(name, name, step, -step, 2 * step, is_number=True)]
    first, *others = column_levels(column) if levels is None else levels
    return [Move(name, f"{name}[{each}]", each, first, 1.0, is_number=False) for each in others]


def contrasts_of(frame: pd.DataFrame, contrast, levels: Mapping[str, tuple]) -> list[Move]:
    """From the first to each other of the values that `contrast`, a dict, gives for a column."""
    moves = []
    for name, values in _checked_values(frame, contrast, "contrast", levels).items():
        first, *others = values
        if not others:
            raise DataError(f"contrast needs two or more values for the column {name!r}")
        moves += [
            Move(name, f"{name}[{_shown(each)} vs {_shown(first)}]", each, first, 1.0, False)
            for each in others
        ]
    return moves


def _shown(value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def with_value(frame: pd.DataFrame, name: str, value) -> pd.DataFrame:
    """The frame with one value in all rows of a column, which keeps its type."""
    column = frame[name]
    if is_number(column):
        return frame.assign(**{name: float(value)})
    return frame.assign(**{name: pd.Series([value] * len(frame), frame.index, column.dtype)})


@dataclass(frozen=True)
class HeldValues:
    """names : the columns that are held; frames : for each combination of values, these and the
    frame with them"""

    names: tuple[str, ...]
    frames: tuple[tuple[tuple, pd.DataFrame], ...]


def held_values(frame: pd.DataFrame, at, levels: Mapping[str, tuple] | None = None) -> HeldValues:
    """The frame for each combination of the values in `at`, a dict of columns; None holds none.

    levels : of columns of numbers that are categories
    """
    if at is None:
        return HeldValues((), (((), frame),))
    values = _checked_values(frame, at, "at", levels or {})
    frames = []
    for chosen in product(*values.values()):
        held = frame
        for name, value in zip(values, chosen, strict=True):
            held = with_value(held, name, value)
        frames.append((chosen, held))
    return HeldValues(tuple(values), tuple(frames))


def _checked_values(frame: pd.DataFrame, given, role: str, levels: Mapping[str, tuple]) -> dict:
    """The values of each column in `at` or `contrast`, as lists."""
    if not isinstance(given, Mapping) or not given:
        raise DataError(
            f"{role} must be a dict of columns and values, such as {{'age': 40}}: {given!r}"
        )
    found = {}
    for name, of_column in zip(map(str, given), given.values(), strict=True):
        check_has(frame, name, role)
        listed = isinstance(of_column, list | tuple | range | np.ndarray | pd.Series | pd.Index)
        values = list(of_column) if listed else [of_column]
        if not values:
            raise DataError(
                f"{role} gives no value for the column {name!r}; give one, or omit the column"
            )
        column = frame[name]
        known = column_levels(column) if not is_number(column) else levels.get(name)
        for value in values:
            if known is not None and value not in known:
                shown = ", ".join(map(repr, known[:8]))
                raise DataError(f"the column {name!r} has no level {value!r}; it has {shown}")
            is_odd = isinstance(value, bool) or not isinstance(value, Real)
            if known is None and (is_odd or not np.isfinite(float(value))):
                raise DataError(f"{role} needs numbers for the column {name!r}, got {value!r}")
        found[name] = values if known is not None else [float(value) for value in values]
    return found


def check_has(frame: pd.DataFrame, name: str, role: str) -> None:
    if name not in frame.columns:
        hint = did_you_mean(name, frame.columns)
        shown = ", ".join(map(repr, frame.columns[:20]))
        raise DataError(f"{role} names {name!r}, but the columns are {shown}{hint}")


@dataclass(frozen=True)
class Groups:
    """labels : (g,), None where all rows are one group; n : (g,) rows of each
    share : (g, m) weights of the rows of each group, which add up to one
    """

    labels: pd.Index | None
    n: np.ndarray
    share: sparse.csr_array

    @property
    def keys(self) -> list[tuple]:
        """What a row of a table starts with, for each group."""
        return [()] if self.labels is None else [(label,) for label in self.labels]

    @property
    def names(self) -> list:
        """Names of what `keys` holds."""
        return [] if self.labels is None else [self.labels.name]

    def mean(self, values: np.ndarray) -> np.ndarray:
        """(g,) or (g, P) the mean over the rows of each group of values (m,) or (m, P)."""
        return self.share @ values


def groups_of(frame: pd.DataFrame, by, weight=None) -> Groups:
    """The rows of each value of the column `by`; weight : (m,), by default the same for all."""
    m = len(frame)
    weight = np.ones(m) if weight is None else weight
    labels, codes = None, np.zeros(m, dtype=int)
    if by is not None:
        column = _grouping_column(frame, by)
        codes, labels = pd.factorize(column, sort=True)
        labels = pd.Index(labels, name=column.name)
    total = np.bincount(codes, weight)
    empty = np.flatnonzero(total == 0)
    if len(empty):
        where = "every row" if labels is None else f"every row with {by!r} = {labels[empty[0]]!r}"
        raise DataError(f"{where} has weight zero, so there is no average")
    rows = np.arange(m)
    share = sparse.csr_array((weight / total[codes], (codes, rows)), (len(total), m))
    return Groups(labels, np.bincount(codes), share)


def _grouping_column(frame: pd.DataFrame, by) -> pd.Series:
    if not isinstance(by, str):
        raise DataError(f"by must be the name of a column, got {by!r}")
    check_has(frame, by, "by")
    column = frame[by]
    missing = np.flatnonzero(column.isna())
    if len(missing):
        raise DataError(
            f"by names the column {by!r}, which is missing in {len(missing)} rows (first: row "
            f"{missing[0]}); fill it or drop the rows"
        )
    return column


def frame_of_rows(table, names) -> pd.DataFrame:
    """`table` as a frame with string names; an array has the columns `names`."""
    if hasattr(table, "columns") or isinstance(table, dict):
        frame = as_pandas(table, "X")
        return frame.set_axis([str(name) for name in frame.columns], axis=1)
    values = np.asarray(table)
    if values.ndim != 2 or values.shape[1] != len(names):
        raise DataError(
            f"X must have {len(names)} columns, {', '.join(map(repr, names))}, but has shape "
            f"{values.shape}"
        )
    return pd.DataFrame(values, columns=list(names))
