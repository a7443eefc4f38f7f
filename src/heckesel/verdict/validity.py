r"""Tests of the exclusion restriction, and the direct effects that they can detect.

*Two or more instruments: do they agree?* If all are valid, the mean outcome of the selected is

.. math:: E[y|x, z, s = 1] = f(x) + g(w'\gamma, x)

for any distribution of the errors: the k instruments enter only through the index, so k - 1 other
directions of them, given x, have no effect. The test adds these directions to a regression of y
on smooth functions of x, the index t, its inverse Mills ratio lambda, lambda squared and lambda
times x (exact if sigma is linear in x). Since t is among the columns, it does not matter which of
the instruments is omitted.

*Any number: Huber and Mellace's inequalities.* Take two groups of units with equal x and different
values of the instrument, such that more units are selected in the second group.
If it affects the outcome only through selection, and affects the selection of all units in the same
direction, every unit selected in the first group would have been selected in the second. They make
up the share q = P(s=1|1)/P(s=1|2) of the selected of the second group. Their mean outcome, which is
observed in the first group, therefore lies between the means of the lowest and of the highest share
q of the outcomes of the second group (Huber and Mellace, Empirical Economics 2014).

Covariates: the inequalities hold for y - f(x) with any function f, and for any weights that give
both groups the same distribution of x. Here f is a smooth regression among the selected, and the
weights are overlap weights, P(other group|x). Groups are levels of a discrete instrument, or thirds
of the residuals of a continuous one given x; all pairs of groups are compared.
"""

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, chndtrinc, ndtr
from threadpoolctl import threadpool_limits

from heckesel.classical.checks import checked_probit
from heckesel.classical.covariance import inverse, meat, wald_test
from heckesel.classical.probit import HARDLY_ANY_RIDGE, ProbitFit, fit_probit, probit_scores
from heckesel.data import CONSTANT, SelectionData, kind_of_weights
from heckesel.display import block, box, p_equation, plain
from heckesel.errors import ColumnError, DataError, printable
from heckesel.math.special import inverse_mills, mills_delta
from heckesel.math.splines import spline_knots, spline_on, width_on
from heckesel.verdict.identify import named_instruments

SMOOTH_KNOTS = (6, 4, 2, 1)  # interior knots; the first that rows and columns allow is used
ROWS_PER_SMOOTH = 20  # selected rows needed for each column of the smooth outcome
MOST_COLUMNS = 40  # of the smooth outcome: the cost grows with their square
MOST_ROWS = 10_000
SAMPLE_SEED = 20_790  # fixed, so that the same data always give the same verdict
INDEPENDENT = 1e-7  # singular values below this share of the largest are rounding
MOST_UNITS = 1e12  # whole weights that add up to more cannot count units


def random_rows(count: int, most: int, seed: int = SAMPLE_SEED) -> np.ndarray:
    """All of `count` rows, or a random sample of `most`, in order."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, most, replace=False))


def smooth_columns(x: np.ndarray) -> np.ndarray:
    """x and cubic splines of its columns, with as many knots as rows and columns allow."""
    distinct = [np.unique(column) for column in x.T]
    for count in SMOOTH_KNOTS:
        knots = [spline_knots(values, count) for values in distinct]
        width = x.shape[1] + sum(map(width_on, knots))
        if width <= min(len(x) / ROWS_PER_SMOOTH, MOST_COLUMNS):
            pairs = zip(knots, x.T, strict=True)
            curves = [spline_on(on, column)[1] for on, column in pairs if on is not None]
            return np.column_stack([x, *curves])
    return x


@dataclass(frozen=True)
class ValiditySample:
    """At most 10,000 units; a row with a frequency weight is repeated, so that units are
    independent and all other weights are probability weights.

    w : (n, q), its constant first; z : (n, k) instruments; x : (n1, p) of the selected
    known : (n, h) everything that is not an instrument and is complete in all rows
    probit : of s on w; effects : (k,) its coefficients of the instruments
    units : the number of units with positive weight, before sampling
    groups : (n,) integer codes of dependent units, or None
    """

    w: np.ndarray
    z: np.ndarray
    x: np.ndarray
    known: np.ndarray
    s: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    instruments: tuple[str, ...]
    probit: ProbitFit
    effects: np.ndarray
    units: int
    groups: np.ndarray | None = None

    @property
    def n(self) -> int:
        return len(self.s)

    @cached_property
    def covariates(self) -> np.ndarray:
        """(n, h) orthonormal columns: a constant and smooth functions of the known columns."""
        return spanning(smooth_columns(self.known))

    @cached_property
    def smooth(self) -> np.ndarray:
        """(n1, h) the same for the columns of x among the selected."""
        return spanning(smooth_columns(self.x))

    @cached_property
    def z_sd(self) -> np.ndarray:
        """(k,)"""
        return sd(self.z, self.weight)

    @cached_property
    def y_sd(self) -> float:
        """Of the outcome among the selected."""
        return float(sd(self.y[self.s], self.weight[self.s]))

    @cached_property
    def two_values(self) -> bool:
        """Whether the outcome has at most two values, whose mean is not a smooth function of x
        plus a function of the index."""
        return len(np.unique(self.y[self.s])) <= 2

    def residuals(self, target, rows=None) -> np.ndarray:
        """(n,) of a weighted least squares on the covariates among some rows, the selected ones."""
        rows = self.s if rows is None else rows
        root = np.sqrt(self.weight[rows])
        columns = self.covariates[rows] * root[:, None]
        return (
            target - self.covariates @ np.linalg.lstsq(columns, target[rows] * root, rcond=None)[0]
        )


def validity_sample(data: SelectionData, seed: int) -> ValiditySample:
    """x and w of `data` may have a constant column or not.

    A column that is collinear in w, or that predicts selection perfectly, is an error; if only the
    sampled units have this problem, the column is omitted.
    """
    data = data.take(data.weight > 0)
    is_frequency = kind_of_weights(None, data.weight) == "frequency"
    counted = is_frequency and data.weight.sum() < MOST_UNITS
    ends = np.cumsum(data.weight if counted else np.ones(data.n))
    units, repeated = round(ends[-1]), ends[-1] > data.n
    data = data.take(np.searchsorted(ends, random_rows(units, MOST_ROWS, seed), side="right"))
    if repeated:
        data = replace(data, weight=np.ones(data.n))
    chosen = [data.w_names.index(name) for name in data.instruments]
    others = [j for j, name in enumerate(data.w_names) if j not in chosen and name != CONSTANT]
    new = [
        j
        for j, name in enumerate(data.x_names)
        if name not in data.w_names and not np.isnan(data.x[:, j]).any()
    ]
    known = np.column_stack([data.w[:, others], data.x[:, new]])
    while True:
        kept = [*others, *chosen]
        w = np.column_stack([np.ones(data.n), data.w[:, kept]])
        names = tuple(data.w_names[j] for j in kept)
        try:
            probit = checked_probit(w, data.s, (CONSTANT, *names), data.weight)
            break
        except ColumnError as error:
            omitted = [j for j in kept if data.w_names[j] in error.terms][:1]
            if units == data.n or not omitted or omitted == chosen:
                raise
            others = [j for j in others if j not in omitted]
            chosen = [j for j in chosen if j not in omitted]
    x = data.x[data.s]
    return ValiditySample(
        w=w,
        z=data.w[:, chosen],
        x=x[:, np.ptp(x, axis=0) > 0],
        known=known,
        s=data.s,
        y=data.y,
        weight=data.weight,
        instruments=names[len(others) :],
        probit=probit,
        effects=probit.gamma[-len(chosen) :],
        units=units,
        groups=data.groups,
    )


def sd(values, weight) -> np.ndarray:
    """Weighted standard deviation of each column."""
    centred = values - np.average(values, axis=0, weights=weight)
    return np.sqrt(np.average(centred**2, axis=0, weights=weight))


def spanning(columns: np.ndarray) -> np.ndarray:
    """(n, h) orthonormal columns with the span of a constant and `columns`."""
    scale = np.abs(columns).max(axis=0, initial=0.0)
    kept = columns[:, scale > 0] / scale[scale > 0]
    centred = kept - kept.mean(axis=0)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    varying = left[:, size > INDEPENDENT * max(size.max(initial=0.0), 1.0)]
    return np.column_stack([np.full(len(columns), len(columns) ** -0.5), varying])


POWER = 0.8
LARGEST_EFFECT = 1.0  # sd of y per sd of the instrument; the search ends here
FIXED_POINT_STEPS = 4
HALVINGS = 10  # of the range from 0 to the largest effect


ALL = "all instruments together"
OVERIDENTIFICATION, INEQUALITIES = "overidentification", "inequalities"
ROWS_PER_COLUMN = 10  # selected rows needed for each column of the regression
SEED = 20_792  # fixed, so that the same data always give the same verdict
LEAST_NEW = 1e-4  # share of a column's variance that others must not explain
ROUNDING = 1e-24  # of a squared length: what projections leave of a constant column


class SecondStep(NamedTuple):
    """Least squares of y among the selected, with the covariance that allows for estimated columns.

    coefficients : (c,), covariance : (c, c), residuals : (n1,)
    """

    coefficients: np.ndarray
    covariance: np.ndarray
    residuals: np.ndarray


@dataclass(frozen=True)
class ValidityTest:
    """One test of the validity of instruments.

    Attributes
    ----------
    name : str
        ``"overidentification"`` or ``"inequalities"``.
    statistic : float
        A Wald statistic; or the largest violation of an inequality in standard errors, which is
        negative if all inequalities hold in the data.
    degrees_of_freedom : int or None
        Of the Wald statistic.
    p_value : float
    detectable : dict of str to tuple of float
        For each instrument, the smallest negative and positive direct effect on y that the test
        detects with a probability of 80 %, in standard deviations of y per standard deviation of
        the instrument. An infinite value means that no effect up to 1 is detectable. Empty if it
        was not computed, as for an outcome with two values.
    """

    __test__ = False  # not a test class for pytest

    name: str
    statistic: float
    degrees_of_freedom: int | None
    p_value: float
    detectable: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class JustIdentified:
    """The two-step estimate with one instrument excluded and the others in the outcome equation.

    instrument : `ALL` if every instrument is excluded
    lambda_coef : the coefficient of the inverse Mills ratio, rho sigma; NaN, with the others, where
    columns of the outcome equation explain the inverse Mills ratio
    """

    instrument: str
    lambda_coef: float
    se: float
    rho: float


def overidentification_test(
    sample: ValiditySample, level: float | None = None
) -> ValidityTest | None:
    r"""Wald test that some directions of the instruments have no direct effect on the outcome.

    None if there are too few selected units, or x explains all but one of the instruments.
    level : of the test whose detectable effects are computed; by default they are not

    Against an effect, the statistic has a noncentral chi-squared distribution. An effect b changes
    the tested coefficients by b g, so that its noncentrality is :math:`b^2\,g'V(b)^{-1}g`. The
    covariance V is that of y with the effect, because a part of it follows the index and varies
    with its estimate.
    """
    z, y = sample.z[sample.s] / sample.z_sd, sample.y[sample.s]
    weakest_first = np.argsort(np.abs(sample.effects) * sample.z_sd)
    generated, slopes = selection_columns(sample)
    kept = weakest_first[
        new_columns(np.column_stack([sample.smooth, generated[:, :1]]), z[:, weakest_first])
    ]
    df = len(kept)
    room = len(z) // ROWS_PER_COLUMN - sample.smooth.shape[1] - df
    if room < 2 or not df:
        return None
    fixed = np.column_stack([z[:, kept], sample.smooth])
    chosen = new_columns(fixed, generated)[:room]

    def tested(y):
        """The tested coefficients and their covariance."""
        step = second_step(sample, fixed, generated[:, chosen], slopes[:, chosen], y)
        return step.coefficients[:df], step.covariance[:df, :df]

    def smallest_effect(added, sign: float) -> float:
        change, needed = tested(added)[0], chndtrinc(chdtri(df, level), df, 1 - POWER)
        effect = 0.0
        for _ in range(FIXED_POINT_STEPS):
            _, covariance = tested(y + sign * effect * added)
            unit = wald_test(change, covariance)[0]  # the noncentrality of an effect of 1
            effect = np.sqrt(needed / unit) if unit > 0 else np.inf
            if not effect <= LARGEST_EFFECT:
                return sign * np.inf
        return float(sign * effect)

    statistic, p = wald_test(*tested(y))
    if not np.isfinite(p):
        return None
    detectable = {}
    if level is not None:
        for name, added in zip(sample.instruments, sample.y_sd * z.T, strict=True):
            detectable[name] = smallest_effect(added, -1.0), smallest_effect(added, 1.0)
    return ValidityTest(OVERIDENTIFICATION, statistic, df, p, detectable)


def agreement(data: SelectionData) -> dict:
    """Evidence on whether two or more instruments contradict each other."""
    if len(data.instruments) < 2 or len(np.unique(data.y[data.s])) <= 2:
        return {}
    try:
        test = overidentification_test(validity_sample(data.take(data.weight > 0), SEED))
    except DataError:  # a random part may be collinear although all rows are not
        return {}
    if test is None:
        return {}
    return {"overidentification": test.statistic, "overidentification_p": test.p_value}


def just_identified(sample: ValiditySample) -> list[JustIdentified]:
    """Each instrument alone, then all of them."""
    index = sample.w[sample.s] @ sample.probit.gamma
    mills = inverse_mills(index)
    delta = mills_delta(index, mills)
    z, found = sample.z[sample.s], []
    alone = list(range(len(sample.instruments)))
    for excluded in [*alone, None]:
        rest = [] if excluded is None else [j for j in alone if j != excluded]
        fixed = spanning(np.column_stack([sample.smooth, z[:, rest]]))
        name = ALL if excluded is None else sample.instruments[excluded]
        if not new_columns(fixed, mills[:, None]):
            found.append(JustIdentified(name, np.nan, np.nan, np.nan))
            continue
        step = second_step(sample, fixed, mills[:, None], -delta[:, None], sample.y[sample.s])
        c = float(step.coefficients[-1])
        squares = step.residuals**2 + c**2 * delta
        sigma = np.sqrt(np.average(squares, weights=sample.weight[sample.s]))
        se = float(np.sqrt(step.covariance[-1, -1]))
        found.append(JustIdentified(name, c, se, float(c / sigma)))
    return found


def second_step(sample: ValiditySample, fixed, generated, slopes, y) -> SecondStep:
    r"""y on `fixed` and on functions of the estimated index, `generated` with these `slopes`.

    y : (n1,) of the selected

    With design d, residual r, A = sum d d' and probit scores, the influence of a unit is

    .. math:: A^{-1}\Big[\frac{d r}{1 - h} + \sum(r\,\dot d - d\,c'\dot d)\,w'\;I_\gamma^{-1}
              \text{score}\Big]

    where the dot is the derivative by the index and c are the coefficients. The leverage h makes
    the covariance that of a jackknife (HC3), which does not understate it if there are few rows.
    With groups of dependent units, their influences are added up first.
    """
    weight, w = sample.weight[sample.s], sample.w[sample.s]
    columns = np.column_stack([fixed, generated])
    scale = np.sqrt(np.mean(columns**2, axis=0))
    d = columns / scale
    moving = np.column_stack([np.zeros_like(fixed), slopes]) / scale
    bread = inverse(d.T @ (d * weight[:, None]))
    coefficients = bread @ (d.T @ (weight * y))
    r = y - d @ coefficients
    leverage = weight * np.sum((d @ bread) * d, axis=1)
    # a unit that alone determines a coefficient has residual 0, and adds nothing
    own = np.divide(r, 1 - leverage, out=np.zeros_like(r), where=leverage < 1 - 1e-8)
    slope = (moving * r[:, None] - d * (moving @ coefficients)[:, None]) * weight[:, None]
    first = probit_scores(sample.w, sample.s, sample.probit.gamma)
    influence = first @ inverse(-sample.probit.hessian) @ (w.T @ slope)
    influence[sample.s] += d * own[:, None]
    how = {"weight_kind": "probability", "clusters": sample.groups}
    middle = meat(influence, sample.weight, **how)
    covariance = bread @ middle @ bread / np.outer(scale, scale)
    return SecondStep(coefficients / scale, covariance, r)


def selection_columns(sample: ValiditySample) -> tuple[np.ndarray, np.ndarray]:
    """Functions of the index among the selected, the index first, and their derivatives by it."""
    index = sample.w[sample.s] @ sample.probit.gamma
    mills = inverse_mills(index)
    fall = -mills_delta(index, mills)  # the derivative of the inverse Mills ratio
    x = sample.x - sample.x.mean(axis=0)
    columns = [index, mills, mills**2, *(mills * x.T)]
    slopes = [np.ones_like(index), fall, 2 * mills * fall, *(fall * x.T)]
    return np.column_stack(columns), np.column_stack(slopes)


def new_columns(fixed, columns) -> list[int]:
    """Positions of the columns that `fixed` and earlier ones do not explain."""
    basis = np.linalg.qr(fixed)[0]
    kept: list[int] = []
    for j, column in enumerate(columns.T):
        left = column - basis @ (basis.T @ column)
        left = left - basis @ (basis.T @ left)  # again, for the digits that the first one lost
        size = float(left @ left)
        variation = float(np.sum((column - column.mean()) ** 2))
        if size > max(LEAST_NEW * variation, ROUNDING * float(column @ column)):
            kept.append(j)
            basis = np.column_stack([basis, left / np.sqrt(size)])
    return kept


GROUPS = 3
MOST_LEVELS = 10  # an instrument with more distinct values is continuous
FEWEST_SELECTED = 20  # of each group: a trimmed mean of fewer is noise
FEWEST_EFFECTIVE = 10  # the same after weighting, by Kish's count
DRAWS = 499
BATCH_ELEMENTS = 2_000_000  # of the matrix of bootstrap weights, 16 MB


@dataclass(frozen=True)
class Pair:
    """Two groups of rows with their overlap weights, the one with fewer selected units first."""

    low: np.ndarray
    high: np.ndarray
    low_weight: np.ndarray
    high_weight: np.ndarray


def inequality_test(
    sample: ValiditySample, pairs: list[Pair], seed: int, level: float | None = None
) -> ValidityTest:
    """The largest studentised violation, with a bootstrap p-value.

    level : of the test whose detectable effects are computed; by default they are not

    Inequalities that are slack by more than sqrt(log n) standard errors do not enter the
    bootstrap, as in Andrews and Soares' generalised moment selection. Bootstrap draws have
    exponential weights on the rows, or on groups of them.

    An effect adds a multiple of the instruments, less their regression on the covariates, to the
    residuals. The violations that follow are normal around their values, with the standard errors
    of the test. Violations of the data are taken for chance.
    """
    r = np.where(sample.s, sample.residuals(sample.y), 0.0)
    found = violations(r, sample.s, sample.weight[None], pairs)[0]
    rng = np.random.default_rng(seed)
    codes = np.arange(sample.n) if sample.groups is None else sample.groups
    size = max(1, BATCH_ELEMENTS // sample.n)
    batches = []
    for begun in range(0, DRAWS, size):
        drawn = rng.standard_exponential((min(size, DRAWS - begun), codes.max() + 1))
        batches.append(violations(r, sample.s, sample.weight * drawn[:, codes], pairs))
    draws = np.concatenate(batches)
    se = draws.std(axis=0)
    t, draws = found / se, (draws - found) / se  # the draws under equality

    def drawn_maxima(t):
        """(b,) of the inequalities that may bind; if there is none, nothing is a violation."""
        binding = t > -np.sqrt(np.log(sample.n))
        return draws[:, binding].max(axis=1) if binding.any() else np.full(DRAWS, 1e300)

    above = np.sum(drawn_maxima(t) >= t.max())
    p = float((1 + above) / (1 + DRAWS))
    test = ValidityTest(INEQUALITIES, float(t.max()), None, p, {})
    if level is None or sample.two_values or sample.s.sum() <= 2 * sample.covariates.shape[1]:
        return test

    value = sample.z @ sample.effects
    along = np.where(sample.s, sample.residuals(value), 0.0)
    along = along * sample.y_sd / sd(value, sample.weight)
    slack = np.minimum(found, 0.0) - found

    def is_caught(effect: float) -> bool:
        changed = violations(r + effect * along, sample.s, sample.weight[None], pairs)[0]
        t = (changed + slack) / se
        critical = np.quantile(drawn_maxima(t), 1 - level)
        return bool(ndtr(t.max() - critical) >= POWER)

    def smallest_effect(sign: float) -> float:
        low, high = 0.0, LARGEST_EFFECT
        if not is_caught(sign * high):
            return sign * np.inf
        for _ in range(HALVINGS):  # the power increases with the effect
            middle = (low + high) / 2
            low, high = (low, middle) if is_caught(sign * middle) else (middle, high)
        return sign * high

    ends = smallest_effect(-1.0), smallest_effect(1.0)
    name = sample.instruments[0] if len(sample.instruments) == 1 else ALL
    if name != ALL and sample.effects[0] <= 0:  # effects are along the index, so in its direction
        ends = -ends[1], -ends[0]
    return replace(test, detectable={name: ends})


def pairs_of(sample: ValiditySample) -> list[Pair]:
    """All pairs of groups of the instruments' joint effect on selection that overlap in x, those
    with the smaller effect first."""
    value = sample.z @ sample.effects
    if len(np.unique(value)) > MOST_LEVELS:
        value = sample.residuals(value, np.ones(sample.n, bool))
    _, level, counts = np.unique(value, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / len(value)  # the mean rank of each level
    groups = np.unique((GROUPS * middle[level]).astype(int), return_inverse=True)[1]
    selected = np.bincount(groups, weights=sample.s)
    while len(selected) > 1 and selected.min() < FEWEST_SELECTED:
        groups = groups - (groups >= max(int(selected.argmin()), 1))  # merged with a neighbour
        selected = np.bincount(groups, weights=sample.s)
    pairs = []
    for a, b in combinations(range(groups.max() + 1), 2):
        low, high = np.flatnonzero(groups == a), np.flatnonzero(groups == b)
        rows = np.concatenate([low, high])
        is_high = np.arange(len(rows)) >= len(low)
        columns, weight = sample.covariates[rows], sample.weight[rows]
        probit = fit_probit(columns, is_high, weight, ridge=HARDLY_ANY_RIDGE)
        share = ndtr(columns @ probit.gamma)
        overlap = np.where(is_high, 1 - share, share)
        sides = [(weight * overlap)[(is_high == side) & sample.s[rows]] for side in (False, True)]
        # Kish's effective number of selected; a group that x predicts perfectly has no mass at all
        effective = min(mass.sum() ** 2 / max((mass**2).sum(), 1e-300) for mass in sides)
        if effective >= FEWEST_EFFECTIVE:
            pairs.append(Pair(low, high, overlap[~is_high], overlap[is_high]))
    return pairs


def violations(r, s, mass, pairs: list[Pair]) -> np.ndarray:
    """(b, 2 pairs) how far the mean of the low group is above the upper and below the lower bound.

    r : (n,) residuals; s : (n,) selection; mass : (b, n) weights
    """
    found = []
    for pair in pairs:
        low_mass = mass[:, pair.low] * pair.low_weight
        high_mass = mass[:, pair.high] * pair.high_weight
        in_low, in_high = s[pair.low], np.flatnonzero(s[pair.high])
        in_high = in_high[np.argsort(r[pair.high[in_high]])]
        low_selected, high_selected = low_mass[:, in_low], high_mass[:, in_high]
        kept = low_selected.sum(axis=1)
        mean = low_selected @ r[pair.low[in_low]] / kept
        rate = high_selected.sum(axis=1) / high_mass.sum(axis=1)
        share = np.minimum(kept / low_mass.sum(axis=1) / rate, 1.0)
        lower, upper = trimmed_means(r[pair.high[in_high]], high_selected, share)
        found += [mean - upper, lower - mean]
    return np.column_stack(found)


def trimmed_means(values, mass, share) -> tuple[np.ndarray, np.ndarray]:
    """Means of the lowest and of the highest `share` of a distribution, (b,) each.

    values : (m,), increasing; mass : (b, m); share : (b,)
    """
    below, sums = np.cumsum(mass, axis=1), np.cumsum(mass * values, axis=1)
    rows, total = np.arange(len(mass)), below[:, -1]

    def sum_up_to(bound):
        """(b,) mass times values of the lowest part whose mass is `bound`."""
        at = np.minimum((below < bound[:, None]).sum(axis=1), len(values) - 1)
        return sums[rows, at] - (below[rows, at] - bound) * values[at]

    kept = share * total
    return sum_up_to(kept) / kept, (sums[:, -1] - sum_up_to(total - kept)) / kept


REJECTED = "rejected"
NOT_REJECTED = "not rejected"
WITHOUT_POWER = "not rejected, with little power"
NOT_TESTED = "not tested"
# How it is coloured.
TONES = {REJECTED: "bad", NOT_REJECTED: "good", WITHOUT_POWER: "caution", NOT_TESTED: "plain"}
LEVEL = 0.05
EXACT = 1e-10  # unexplained share of the variance of y below which it is rounding error


@dataclass(frozen=True, repr=False)
class InstrumentValidity:
    """Whether the data contradict the validity of the instruments.

    Attributes
    ----------
    verdict : str
        ``"rejected"``, ``"not rejected"``, ``"not rejected, with little power"`` or
        ``"not tested"``.
    sentence : str
        The reason for the verdict.
    p_value : float
        The smallest p-value times the number of tests; NaN if there is none.
    level : float
        Probability of rejecting valid instruments.
    instruments : tuple of str
    tests : tuple of ValidityTest
    fits : tuple of JustIdentified
        For two or more instruments: the estimates with each of them as the only excluded column,
        and those with all of them.
    rows, rows_used : int
        Rows of positive weight, and how many of them the tests used.

    Notes
    -----
    ``print(result)`` shows the verdict with all tests; `to_frame` and `to_dict` return them.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=0.3, seed=0).frame
    >>> invalid = frame["y"] + 0.5 * frame["z"]
    >>> hk.test_instruments(frame[["x", "z"]], invalid, instruments=["z"]).verdict
    'rejected'
    """

    verdict: str
    sentence: str
    p_value: float
    level: float
    instruments: tuple[str, ...]
    tests: tuple[ValidityTest, ...]
    fits: tuple[JustIdentified, ...]
    rows: int
    rows_used: int

    def __str__(self) -> str:
        return printable("\n".join([f"{self.verdict}: {self.sentence}", *self.details()]))

    def __repr__(self) -> str:
        return f"<InstrumentValidity {self}>"

    def _repr_html_(self) -> str:
        return block(box(TONES[self.verdict], self.verdict, self.sentence, self.details()))

    def details(self) -> list[str]:
        """List the tests in words.

        Returns
        -------
        list of str
        """
        lines = [line for test in self.tests for line in _test_lines(test)]
        if self.fits:
            lines.append("coefficient of the inverse Mills ratio with each instrument alone:")
            width = max(len(fit.instrument) for fit in self.fits)
            lines += [
                f"  {fit.instrument:<{width}}  {fit.lambda_coef:8.3f}  (standard error "
                f"{fit.se:.3f}; rho {fit.rho:.2f})"
                for fit in self.fits
            ]
        if self.rows_used < self.rows:
            lines.append(f"rows used: {self.rows_used:,} of {self.rows:,}, at random")
        return lines

    def to_frame(self):
        """Return one row per test and instrument as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            The columns are ``test``, ``instrument``, ``statistic``, ``degrees_of_freedom``,
            ``p_value``, ``detectable_negative`` and ``detectable_positive``.
        """
        import pandas as pd

        rows = [
            (test.name, name, test.statistic, test.degrees_of_freedom, test.p_value, *ends)
            for test in self.tests
            for name, ends in (test.detectable or {ALL: (math.nan, math.nan)}).items()
        ]
        names = ["test", "instrument", "statistic", "degrees_of_freedom", "p_value"]
        names += ["detectable_negative", "detectable_positive"]
        return pd.DataFrame(rows, columns=names).astype({"degrees_of_freedom": "Int64"})

    def to_dict(self) -> dict:
        """Return everything as a dict that is safe to write as JSON.

        Returns
        -------
        dict
            A number that is not finite is None: a detectable effect beyond 1, or the p-value of
            instruments that were not tested.
        """
        return plain(asdict(self))


def validity_of(data: SelectionData, *, level: float = LEVEL, seed: int = 0) -> InstrumentValidity:
    """All tests that the data allow; x and w may have a constant column or not."""
    data = data.take(data.weight > 0)
    names = tuple(data.instruments)
    untested = InstrumentValidity(NOT_TESTED, "", math.nan, level, names, (), (), data.n, 0)
    if data.s.all():
        why = "every unit has an outcome, so no instrument is needed."
        return replace(untested, sentence=why)
    if not names:
        return replace(untested, sentence="there is no instrument.")
    with threadpool_limits(1, user_api="blas"):
        sample = validity_sample(data, seed)
        y, r = sample.y[sample.s], sample.residuals(sample.y)[sample.s]
        explained = y.min() == y.max() or np.mean(r**2) <= EXACT * sample.y_sd**2
        pairs = [] if explained else pairs_of(sample)
        several = not explained and len(sample.instruments) > 1 and not sample.two_values
        of_each = level / 2 if several and pairs else level
        over = overidentification_test(sample, of_each) if several else None
        tests = [over] if over is not None else []
        if pairs:
            tests.append(inequality_test(sample, pairs, seed, of_each))
        fits = tuple(just_identified(sample)) if over is not None else ()
    if not tests:
        why = (
            "there are too few selected units, or other columns explain the outcome or the "
            "instrument."
        )
        return replace(untested, sentence=why, rows=sample.units)
    p = min(1.0, len(tests) * min(test.p_value for test in tests))
    verdict, sentence = _verdict(tests, p, level, sample.instruments)
    return InstrumentValidity(
        verdict=verdict,
        sentence=sentence,
        p_value=p,
        level=level,
        instruments=sample.instruments,
        tests=tuple(tests),
        fits=fits,
        rows=sample.units,
        rows_used=sample.n,
    )


def _verdict(tests, p: float, level: float, instruments) -> tuple[str, str]:
    named, one = named_instruments(instruments)
    if p <= level:
        least = min(tests, key=lambda test: test.p_value)
        if least.name == OVERIDENTIFICATION:
            why = (
                f"the levels of {named} contradict one another, so it affects the outcome directly"
                if one
                else f"{named} cannot all be valid: at least one affects the outcome directly"
            )
        else:
            why = (
                f"{named} {'affects' if one else 'affect'} the outcome directly, or "
                f"{'does' if one else 'do'} not shift the selection of all units in the same "
                "direction"
            )
        advice = f"do not use {'it as an instrument' if one else 'them as instruments'}"
        return REJECTED, f"{why} ({p_equation(p)}); {advice}."
    known = [ends for test in tests for ends in test.detectable.values()]
    if known and not np.isfinite(known).any():
        return WITHOUT_POWER, (
            f"the data do not contradict the validity of {named} ({p_equation(p)}), but the tests "
            "have little power even against a direct effect of one standard deviation of the "
            "outcome per standard deviation of the instrument."
        )
    unnoticed = "smaller direct effects than those listed" if known else "direct effects"
    return NOT_REJECTED, (
        f"the data do not contradict the validity of {named} ({p_equation(p)}); {unnoticed} may "
        "have gone unnoticed."
    )


def _test_lines(test: ValidityTest) -> list[str]:
    if test.degrees_of_freedom is None:
        size = f"largest violation {test.statistic:.2f} standard errors"
    else:
        size = f"chi2({test.degrees_of_freedom}) = {test.statistic:.1f}"
    lines = [f"{test.name}: {size}, {p_equation(test.p_value)}"]
    for name, (low, high) in test.detectable.items():
        caught = [f"{end:+.2f}" for end in (low, high) if math.isfinite(end)]
        if len(caught) == 2:
            what = f"beyond {caught[0]} or {caught[1]}"
        elif caught:
            sign = "positive" if math.isfinite(low) else "negative"
            what = f"beyond {caught[0]}, but no {sign} effect up to 1"
        else:
            what = "none up to 1"
        lines.append(f"  {name}: detectable direct effects: {what} (sd of y per sd, power 80 %)")
    return lines
