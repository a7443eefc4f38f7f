"""`hk.bounds`: bounds on a mean, a quantile or an effect under several sets of assumptions.

Every estimator computes a lower end with what each unit contributes to it; the upper end is minus
the lower end of -y. One row of the table states a set of assumptions and the bounds that follow.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from numbers import Real

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtr, ndtri, stdtrit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from heckesel.classical.covariance import cluster_freedom, critical_value, meat
from heckesel.classical.results import HeckmanFit
from heckesel.classical.summary import ERRORS, NAMES
from heckesel.data import (
    LARGEST,
    SelectionData,
    check_level,
    kind_of_weights,
    numeric,
    ones_of,
    selection_data,
    unmasked,
)
from heckesel.errors import DataError, is_one_of, is_share, printable, warn_user
from heckesel.math.bivariate import log_bivariate_cdf
from heckesel.tables.fit_input import outcome_column
from heckesel.tables.formula import covariance_kind
from heckesel.tables.frames import as_pandas, check_same_order

WIDTH = 78
INTERVAL_NAMES = {"imbens-manski": "Imbens-Manski", "stoye": "Stoye"}
ROUNDING = 1e-12  # sums of shares err by less


@dataclass(frozen=True)
class BoundsRow:
    """The bounds under one set of assumptions.

    Attributes
    ----------
    name : str
        Name of the set of assumptions.
    assumes : str
        The assumptions, in words.
    target : str
        The bounded quantity, in words.
    low, high : float
        The bounds; equal if the assumptions determine the target.
    interval_low, interval_high : float
        Confidence interval of the target.
    """

    name: str
    assumes: str
    target: str
    low: float
    high: float
    interval_low: float
    interval_high: float


@dataclass(frozen=True)
class Bounds:
    """Bounds under several sets of assumptions, the weakest first.

    It unpacks into the bounds without assumptions: ``low, high = hk.bounds(y, 0, 4)``.

    Attributes
    ----------
    rows : tuple of BoundsRow
        One row for each set of assumptions.
    level : float
        Confidence level.
    interval : str
        ``"imbens-manski"`` or ``"stoye"``.
    outcome : str
        Name of the outcome.

    Examples
    --------
    >>> import heckesel as hk
    >>> import numpy as np
    >>> found = hk.bounds([1.0, 2.0, np.nan, np.nan], 0.0, 4.0)
    >>> low, high = found
    >>> round(low, 2), round(high, 2)
    (0.75, 2.75)
    >>> list(found.to_frame().index)
    ['no assumption', 'missing at random']
    """

    rows: tuple[BoundsRow, ...]
    level: float
    interval: str
    outcome: str

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[float]:
        return iter((self.rows[0].low, self.rows[0].high))

    def __getitem__(self, at):
        return (self.rows[0].low, self.rows[0].high)[at]

    def to_frame(self):
        """Return the rows as a pandas DataFrame indexed by their names.

        Returns
        -------
        pandas.DataFrame
            The columns are ``assumes``, ``target``, ``low``, ``high``, ``interval_low``
            and ``interval_high``.
        """
        return pd.DataFrame([asdict(row) for row in self.rows]).set_index("name")

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        kind = f"{100 * self.level:g} % interval"
        lines = [
            f"Bounds for {self.outcome!r}, {INTERVAL_NAMES[self.interval]} confidence intervals",
            f"{'':{width}} {'low':>10} {'high':>10}   {kind:>23}",
        ]
        for row in self.rows:
            numbers = f"{row.low:10.4g} {row.high:10.4g}"
            lines.append(
                f"{row.name:{width}} {numbers}   {row.interval_low:11.4g} {row.interval_high:11.4g}"
            )
            lines += textwrap.wrap(
                f"{row.target}: {row.assumes}", WIDTH, initial_indent="  ", subsequent_indent="  "
            )
        crossed = [row.name for row in self.rows if row.low > row.high]
        if crossed:
            lines += textwrap.wrap(
                f"The lower bound exceeds the upper bound for: {', '.join(crossed)}. The data "
                "contradict these assumptions, unless the difference is sampling error.",
                WIDTH,
            )
        return printable("\n".join(lines))

    __repr__ = __str__


@dataclass(frozen=True)
class Maxima:
    """A weighted sum of maxima over estimates, of which several may be the largest.

    contributions : (n, j) of the estimates
    largest : (j,) positions of the maxima
    candidates : (j, j) bool, row by row the estimates that may be the maximum
    share : (j,) weights of the maxima
    """

    contributions: np.ndarray
    largest: np.ndarray
    candidates: np.ndarray
    share: np.ndarray

    @property
    def linear(self) -> np.ndarray:
        """(n,) contributions to the sum if the largest estimates remain so."""
        return self.contributions @ np.bincount(self.largest, self.share, len(self.share))


@dataclass(frozen=True)
class Estimate:
    """A number that is computed from a sample, such as a lower end.

    linear : (n,) contributions of the units to its error, those to `maxima` excluded; sums,
        products and quotients of estimates follow the rules of derivatives
    maxima : terms of the sum that are maxima
    unlimited : whether no finite confidence limit exists
    """

    value: float
    linear: np.ndarray
    maxima: tuple[Maxima, ...] = ()
    unlimited: bool = False

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.value + other.value,
            self.linear + other.linear,
            self.maxima + other.maxima,
            self.unlimited or other.unlimited,
        )

    def __mul__(self, other: Estimate) -> Estimate:
        linear = self.value * other.linear + other.value * self.linear
        return Estimate(self.value * other.value, linear)

    def __truediv__(self, other: Estimate) -> Estimate:
        value = self.value / other.value
        return Estimate(value, (self.linear - value * other.linear) / other.value)

    @property
    def regular(self) -> bool:
        """Whether every maximum has one candidate only, so that the sum is linear."""
        return all((part.candidates.sum(axis=1) == 1).all() for part in self.maxima)


@dataclass(frozen=True)
class BoundedSample:
    """n units of positive weight; outcomes lie between low and high.

    y : (n,) NaN where there is no outcome
    answered : (n,) bool, whether the outcome was observed without a follow-up
    followed : (n,) bool, whether the unit was drawn for the follow-up, or None
    weight_kind : "frequency" or "probability"
    clusters : (n,) codes, or None
    treated : (n,) bool, or None
    instrument : (n,) positions of the values of the instrument, which increase, or None
    strata : (n,) codes of the combinations of covariates, or None
    quantile : None for means
    mirrored : whether y, low, high and the quantile are those of -y
    """

    y: np.ndarray
    answered: np.ndarray
    low: float
    high: float
    weight: np.ndarray
    weight_kind: str = "frequency"
    followed: np.ndarray | None = None
    clusters: np.ndarray | None = None
    treated: np.ndarray | None = None
    instrument: np.ndarray | None = None
    strata: np.ndarray | None = None
    quantile: float | None = None
    mirrored: bool = False

    def mirror(self) -> BoundedSample:
        """The same units with outcome -y, whose lower bound is minus the upper bound of y."""
        return replace(
            self,
            y=-self.y,
            low=-self.high,
            high=-self.low,
            quantile=None if self.quantile is None else 1 - self.quantile,
            mirrored=not self.mirrored,
        )

    @property
    def arms(self) -> list[np.ndarray]:
        if self.treated is None:
            return [np.ones(len(self.y), dtype=bool)]
        return [self.treated, ~self.treated]

    @property
    def freedom(self) -> float:
        """Degrees of freedom of intervals: G - 1 for G clusters, infinite without."""
        return cluster_freedom(self.clusters, self.weight)

    def units(self, rows) -> float:
        """Number of units among some rows."""
        counted = self.weight_kind == "frequency"
        return float(self.weight @ rows if counted else np.count_nonzero(rows))

    def residual_factor(self, rows) -> float:
        """sqrt(n / (n - 1)) for n units: what makes a variance around their mean unbiased.

        Clusters have their own factor in `covariance`.
        """
        units = self.units(rows)
        return float(np.sqrt(units / (units - 1))) if units > 1 and self.clusters is None else 1.0

    def mean(self, values, rows, factor: float = 1.0) -> Estimate:
        """The mean of some rows, 0 if there is none; `factor` multiplies their contributions."""
        weight = self.weight * rows
        total = weight.sum()
        if not total:
            return Estimate(0.0, np.zeros(len(rows)))
        values = np.where(rows, values, 0.0)
        value = float(weight @ values / total)
        return Estimate(value, factor * weight * (values - value) / total)

    def covariance(self, contributions) -> np.ndarray:
        """(k, k) covariance of k estimates, from their (n, k) contributions."""
        return meat(
            contributions / self.weight[:, None],
            self.weight,
            weight_kind=self.weight_kind,
            clusters=self.clusters,
            corrected=self.clusters is not None,
        )


def target_end(sample: BoundedSample, values, share, mean_of: Callable) -> Estimate:
    """The mean, or the quantile, of (n,) values with weights `share`, which add up to one.

    mean_of : from (n,) values to their mean, an `Estimate`

    An infinite value that has a weight makes the mean infinite. The standard error of a quantile is
    Woodruff's: the quantiles at both ends of an interval of the distribution function at the
    estimate, divided by the width of that interval in standard errors.
    """
    p, zeros = sample.quantile, np.zeros(len(values))
    if p is None:
        if not np.isfinite(values[share > 0]).all():
            return Estimate(-np.inf, zeros, unlimited=True)
        return mean_of(np.where(share > 0, values, 0.0))
    order = np.argsort(values, kind="stable")
    order = order[share[order] > 0]
    cumulated = np.cumsum(share[order])

    def quantile(p: float) -> float:
        # With a share of at least p at or below it. That of -y has a share of more than p, so that
        # quantiles of -y are those of y.
        at = np.searchsorted(cumulated, p + ROUNDING if sample.mirrored else p - ROUNDING)
        return float(values[order[min(at, len(order) - 1)]])

    estimate = quantile(p)
    distribution = mean_of((values <= estimate).astype(float)).linear
    half = critical_value(0.95) * np.sqrt(sample.covariance(distribution[:, None])[0, 0])
    low, high = quantile(p - half), quantile(p + half)
    if half == 0:
        return Estimate(estimate, zeros, unlimited=not np.isfinite(estimate))
    if not np.isfinite([low, high]).all():
        return Estimate(estimate, zeros, unlimited=True)
    return Estimate(estimate, distribution * (low - high) / (2 * half))


def follow_up_end(sample: BoundedSample, rows) -> Estimate:
    r"""Lower end of the mean, or of the quantile, of some rows.

    .. math:: \bar s\,\bar y_1 + (1 - \bar s)\,
              \bigl(\bar r\,\bar y_2 + (1 - \bar r)\,\text{low}\bigr)

    s are the units that answered, with mean y1. Of the others, a random sample is followed up, and
    a share r of it answers, with mean y2 (Coppock, Gerber, Green and Kern, 2017). The worst case is
    assumed for the share 1 - r of the sample only, which represents all that did not answer.
    """
    missing = rows & ~sample.answered
    if missing.any() and not (missing & sample.followed).any():
        raise DataError(
            "follow_up is 1 for no unit without an outcome"
            + (" in one treatment arm" if sample.treated is not None else "")
            + "; it must be 1 for every unit drawn for the follow-up, whether reached or not"
        )
    return double_sample_end(sample, rows, sample.answered, sample.followed)


def double_sample_end(sample: BoundedSample, rows, answered, drawn=True, hidden=False) -> Estimate:
    """The same for any first sample.

    Variances within those who answered, and within those reached, have n - 1 in the denominator.
    """
    first, second = rows & answered, rows & drawn & ~answered
    reached = second & ~np.isnan(sample.y) & ~np.array(hidden)
    factor = [sample.residual_factor(group) for group in (first, reached)]

    def mean_of(v):
        of_reached = sample.mean(reached, second) * sample.mean(v, reached, factor[1])
        of_others = sample.mean(np.where(reached, 0.0, v), second)
        of_first = sample.mean(answered, rows) * sample.mean(v, first, factor[0])
        return of_first + sample.mean(~answered, rows) * (of_reached + of_others)

    drawn_total = sample.weight @ second
    each = sample.weight @ (rows & ~answered) / drawn_total if drawn_total else 0.0
    share = sample.weight * (first + each * second) / (sample.weight @ rows)
    values = np.where(first | reached, sample.y, sample.low)
    return target_end(sample, values, share, mean_of)


def worst_case_end(sample: BoundedSample, rows) -> Estimate:
    r"""Lower end of the mean, or of the quantile, of some rows.

    .. math:: \frac{1}{n}\Bigl(\sum_{s=1} y_i + n_0\,\text{low}\Bigr)

    Every missing outcome is replaced by low, and for the upper end by high (Manski, 1990; Horowitz
    and Manski, 2000).
    """
    return double_sample_end(sample, rows, sample.answered, hidden=True)


def potential_outcome_end(sample: BoundedSample, arm) -> Estimate:
    """Lower end for the outcome that all units would have in one arm of the treatment.

    Unless the treatment is random, that of units in the other arm is also missing.
    """
    return double_sample_end(sample, np.ones_like(arm), sample.answered & arm, hidden=True)


def missing_at_random_end(sample: BoundedSample, rows) -> Estimate:
    """The mean, or the quantile, of some rows if each stratum's outcomes are missing at random.

    Those who answered are weighted to the shares of the strata among all units.
    """
    strata = np.zeros(len(rows), dtype=int) if sample.strata is None else sample.strata
    count, first = strata.max() + 1, rows & sample.answered
    size = np.bincount(strata, sample.weight * rows, count)
    answered = np.bincount(strata, sample.weight * first, count)
    without = np.count_nonzero((size > 0) & (answered == 0))
    if without:
        raise DataError(
            f"{without} of {np.count_nonzero(size)} combinations of the covariates have no "
            "observed outcome"
            + (" in one treatment arm" if sample.treated is not None else "")
            + "; merge levels or give fewer columns as covariates="
        )
    answered = np.where(answered > 0, answered, 1.0)  # strata without any of the rows
    inverse, unit = first * (size / answered)[strata], sample.weight / size.sum()
    factor, y = sample.residual_factor(first), np.where(first, sample.y, 0.0)

    def mean_of(v):
        centre = (np.bincount(strata, sample.weight * first * v, count) / answered)[strata]
        mean = float(unit @ (rows * centre))
        influence = rows * (centre - mean) + inverse * factor * (v - centre)
        return Estimate(mean, unit * influence)

    return target_end(sample, y, unit * inverse, mean_of)


MOST = 50  # values of the instrument; maxima over more err too far inwards to be of use
FEWEST = 10  # rows with a value of the instrument; intervals treat means of them as normal


def instrument_end(sample: BoundedSample, rows, monotone: bool) -> Estimate:
    r"""Lower end of the mean if it does not depend on the instrument v, or only increases with it.

    .. math:: \sum_u \Pr(v = u)\,\max_{t}\bigl(\mathrm{E}[y s \mid v = t]
              + \text{low}\,\Pr(s = 0 \mid v = t)\bigr)

    The maximum is over all values of the instrument (Manski, 1990), or over those up to u (Manski
    and Pepper, 2000). Several means may be the largest: those less than sqrt(log n) standard errors
    of the difference below it. That distance grows with n, but more slowly than the differences
    that are not zero do.
    """
    codes = sample.instrument
    assert codes is not None
    units = np.bincount(codes, rows)
    count = len(units)
    if count < 2:
        raise DataError("the instrument has the same value in every row")
    if count > MOST or units.min() < FEWEST:
        raise DataError(
            f"the instrument has {count} values, one of them in {units.min():.0f} rows"
            + (" of a treatment arm" if sample.treated is not None else "")
            + f", but at most {MOST} values with {FEWEST} rows each can be used; group them, for "
            "example with pandas.qcut(instrument, 5, labels=False)"
        )
    if not np.isfinite(sample.low) and not sample.answered[rows].all():
        return Estimate(-np.inf, np.zeros(len(rows)), unlimited=True)
    y = np.where(sample.answered, sample.y, sample.low)
    means = [sample.mean(y, rows & (codes == code)) for code in range(count)]
    mean = np.array([each.value for each in means])
    contributions = np.column_stack([each.linear for each in means])
    allowed = np.ones((count, count), dtype=bool)
    if monotone:
        allowed = np.triu(allowed) if sample.mirrored else np.tril(allowed)
    first = np.where(allowed, mean, -np.inf).argmax(axis=1)

    covariance = sample.covariance(contributions)
    variance = np.diag(covariance)
    of_difference = variance + variance[first, None] - 2 * covariance[first]
    everyone = sample.units(np.ones(len(rows), dtype=bool))
    distance = np.sqrt(np.log(everyone) * np.maximum(of_difference, 0.0))
    candidates = allowed & (mean >= mean[first, None] - distance)

    share = np.bincount(codes, sample.weight * rows) / (sample.weight @ rows)
    maxima = Maxima(contributions, first, candidates, share)
    return replace(sample.mean(mean[first][codes], rows), maxima=(maxima,))


def trimming_end(sample: BoundedSample, strata) -> Estimate:
    r"""Lower end of the effect on units that are selected with and without the treatment.

    strata : (n,) codes within which the arms are compared; zeros for all units together

    The arm in which selection is more frequent also contains others. They are at worst those with
    the largest outcomes, so that a share of these is trimmed (Lee, 2009): a share of the arm equal
    to the rate of selection p of the other arm is kept. If q is the largest outcome kept, the mean
    of those kept is

    .. math:: m = q - \mathrm{E}[(q - y)^+ s]/p

    whose derivative in q is zero, so that what q contributes to the error vanishes. Strata are
    weighted by their share among the selected units of the other arm, which are all selected with
    and without the treatment.
    """
    s, (trimmed, other) = sample.answered, sample.arms
    y = np.where(s, sample.y, 0.0)
    rate = [sample.mean(s, arm).value for arm in (trimmed, other)]
    if rate[0] < rate[1]:
        trimmed, other, y = other, trimmed, -y
    codes = range(strata.max() + 1)
    rates = np.array(
        [[sample.mean(s, arm & (strata == k)).value for k in codes] for arm in (trimmed, other)]
    )
    empty, reverse = np.sum(rates.min(axis=0) == 0), np.sum(rates[0] < rates[1])
    if empty:
        raise DataError(
            f"{empty} of {len(codes)} combinations of the covariates have no observed outcome in "
            "one treatment arm; merge levels or give fewer columns as covariates="
        )
    if reverse and rate[0] != rate[1] and not sample.mirrored:
        warn_user(
            f"in {reverse} of {len(codes)} combinations of the covariates selection differs "
            "between the arms in the other direction than overall; nothing is trimmed there"
        )
    selected = other & s
    effect = sample.mean(-y, selected, sample.residual_factor(selected))
    for code in codes:
        here = strata == code
        arm, of_other = trimmed & s & here, sample.mean(s, other & here)
        kept = of_other.value * (sample.weight @ (trimmed & here))
        order = np.flatnonzero(arm)[np.argsort(y[arm], kind="stable")]
        below = np.cumsum(sample.weight[order])
        if kept >= below[-1] * (1 - ROUNDING):
            mean = sample.mean(y, arm)
        else:
            q = y[order[np.searchsorted(below, kept * (1 - ROUNDING))]]
            shortfall = np.where(arm, np.maximum(q - y, 0.0), 0.0)
            mean = sample.mean(-shortfall, trimmed & here) / of_other
            mean = replace(mean, value=float(q + mean.value))
        effect += sample.mean(here, selected) * mean
    return effect


DRAWS = 5000  # of the errors of maxima; a 95 % quantile then has a relative error of about 2 %
FARTHEST = 8.0  # standard errors; beyond, a tail of the normal is below 1e-15
PRECISION = 1e-4  # of a critical value near the minimum of the length, which then errs by 1e-8
SMALLEST_STEP = 1e-9  # above the critical value at which that of the other end is infinite
NEARLY_ONE = 1 - 1e-9  # correlations beyond are rounding


def interval_of(
    sample: BoundedSample, sides: tuple[Estimate, Estimate], level: float, kind: str
) -> tuple[float, float]:
    """The confidence interval of the quantity with these ends: the lower one, and that of -y.

    At width 0, and if the width is many standard errors, both kinds are the same. Maxima with a
    single candidate are linear and treated as such. If several estimates may be the largest, the
    quantile of the simulated error replaces the critical value times the standard error (Fang and
    Santos, 2019), at the level of the Imbens-Manski interval.
    """
    linear = [end.linear + sum(part.linear for part in end.maxima) for end in sides]
    covariance = sample.covariance(np.column_stack(linear))
    se = np.sqrt(np.diag(covariance))
    regular = all(end.regular for end in sides)
    width = max(-sides[1].value - sides[0].value, 0.0)
    if kind == "stoye" and regular and se.min() > 0 and 0 < width < FARTHEST * se.max():
        rho = -covariance[0, 1] / (se[0] * se[1])
        critical = stoye_values(width, se[0], se[1], rho, level)
    else:
        critical = (imbens_manski_value(width, float(se.max()), level),) * 2
    limits = []
    for end, error, value in zip(sides, se, critical, strict=True):
        p = float(ndtr(value))
        student = value if np.isinf(sample.freedom) else float(stdtrit(sample.freedom, p))
        distance = student * error if end.regular else student / value * _simulated(sample, end, p)
        limits.append(-np.inf if end.unlimited else end.value - distance)
    return float(limits[0]), float(0.0 - limits[1])


def imbens_manski_value(width: float, se: float, level: float) -> float:
    r"""The critical value c of Imbens and Manski (2004), with se the larger of the two.

    .. math:: \Phi(c + \text{width}/\text{se}) - \Phi(-c) = \text{level}

    It is that of a two-sided interval at width 0 and that of a one-sided one for large widths.
    """
    one_sided, two_sided = float(ndtri(level)), float(ndtri((1 + level) / 2))
    if se == 0 or not np.isfinite(width):
        return one_sided

    def excess(c):
        return float(ndtr(c + width / se) - ndtr(-c)) - level

    if excess(two_sided) <= 0:
        return two_sided
    if excess(one_sided) >= 0:
        return one_sided
    return float(brentq(excess, one_sided, two_sided, xtol=1e-13, rtol=1e-14))


def stoye_values(
    width: float, se_low: float, se_high: float, rho: float, level: float
) -> tuple[float, float]:
    r"""The critical values of the two ends in the shortest interval of Stoye (2009).

    They minimise se_low a + se_high b subject to

    .. math:: \Pr(Z_1 \le a,\ Z_2 \ge -b - \text{width}/\text{se}_2) \ge \text{level},\quad
              \Pr(Z_1 \le a + \text{width}/\text{se}_1,\ Z_2 \ge -b) \ge \text{level}

    for normal Z with correlation rho, the errors of the estimates of the lower and the upper bound.
    """
    a_rho = float(np.arctanh(np.clip(-rho, -NEARLY_ONE, NEARLY_ONE)))

    def slack(a, b):
        first = log_bivariate_cdf(a, b + width / se_high, a_rho)
        second = log_bivariate_cdf(a + width / se_low, b, a_rho)
        return float(min(first, second)) - np.log(level)

    def smallest(a):
        start = float(ndtri(level))
        if slack(a, start) >= 0:
            return start
        return float(brentq(partial(slack, a), start, FARTHEST, xtol=1e-10))

    def length(a):
        return se_low * a + se_high * smallest(a)

    ends = float(ndtri(level)) + SMALLEST_STEP, FARTHEST
    best = minimize_scalar(length, bounds=ends, method="bounded", options={"xatol": PRECISION}).x
    return float(best), smallest(best)


def _simulated(sample: BoundedSample, end: Estimate, p: float) -> float:
    """The p-quantile of the error of a sum of maxima, simulated with normal errors of its terms."""
    columns = [end.linear[:, None], *(part.contributions for part in end.maxima)]
    values, vectors = np.linalg.eigh(sample.covariance(np.hstack(columns)))
    # the symmetric root, because eigenvectors of equal eigenvalues depend on rounding
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    errors = np.random.default_rng(0).standard_normal((DRAWS, len(values))) @ root
    ends = np.cumsum([each.shape[1] for each in columns])
    total, *of_maxima = np.split(errors, ends[:-1], axis=1)
    total = total[:, 0]
    for part, error in zip(end.maxima, of_maxima, strict=True):
        largest = np.where(part.candidates, error[:, None, :], -np.inf).max(axis=2)
        total = total + largest @ part.share
    return float(np.quantile(total, p))


def _check_range(seen, low: float, high: float) -> None:
    if not (isinstance(low, Real) and isinstance(high, Real) and low < high):
        raise DataError(
            f"low must be below high, and both must be numbers, got low={low!r} and high={high!r}"
        )
    large = [end for end in (low, high) if abs(end) > LARGEST and abs(end) != np.inf]
    if large:
        raise DataError(
            f"low and high must be infinite or smaller than {LARGEST:g} in size, got "
            f"{large[0]!r:.60}"
        )
    if seen.min() < low or seen.max() > high:
        raise DataError(
            f"observed outcomes range from {seen.min():g} to {seen.max():g}, beyond the bounds "
            f"{float(low):g} to {float(high):g}; give wider bounds"
        )


def _column(values, name: str, n: int) -> np.ndarray:
    """(n,) numbers without gaps."""
    column = numeric(values, name)
    if column.shape != (n,):
        raise DataError(f"{name} has shape {column.shape} but there are {n} rows")
    gaps = np.flatnonzero(~np.isfinite(column))
    if len(gaps):
        raise DataError(f"{name} is missing or infinite in row {gaps[0]}; every row needs a value")
    return column


def _strata(covariates, n: int) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the columns, and (n,) codes of the combinations of their values."""
    if isinstance(covariates, pd.Series):
        covariates = covariates.to_frame()
    if not hasattr(covariates, "columns") and not isinstance(covariates, dict):
        array = unmasked(covariates, "covariates")
        if array.ndim not in (1, 2):
            raise DataError(f"covariates must be a table but has shape {array.shape}")
        covariates = pd.DataFrame(array).add_prefix("covariate ")
    frame = as_pandas(covariates, "covariates")
    if not len(frame.columns):
        raise DataError("covariates have no columns; omit covariates=")
    if len(frame) != n:
        raise DataError(f"covariates have {len(frame)} rows but there are {n} rows of y")
    row, column = np.nonzero(frame.isna().to_numpy())
    if len(row):
        raise DataError(
            f"the covariate {frame.columns[column[0]]!r} is missing in row {row[0]}; impute it or "
            "make it a level"
        )
    codes = frame.groupby(list(frame.columns), sort=True, observed=True).ngroup()
    return tuple(map(str, frame.columns)), codes.to_numpy()


def bounds(
    y,
    low: float,
    high: float,
    *,
    treatment=None,
    instrument=None,
    covariates=None,
    follow_up=None,
    model=None,
    quantile: float | None = None,
    selected=None,
    sample_weight=None,
    groups=None,
    unobserved=None,
    level: float = 0.95,
    interval: str = "imbens-manski",
) -> Bounds:
    """Bounds on the outcome of all units, from no assumption to the full model.

    Each optional column or model adds rows to the table. A row states an assumption and the bounds
    that follow from it.

    Parameters
    ----------
    y : array-like of shape (n,)
        The outcome, NaN where it was not observed.
    low, high : float
        The range of unobserved outcomes; infinite if there is none.
    treatment : array-like of shape (n,), optional
        0/1 indicator of a treatment. The bounds are then those of its effect, and Lee's trimming
        bounds are added.
    instrument : array-like of shape (n,), optional
        A column with a few ordered values. Adds bounds under two assumptions: the mean outcome does
        not decrease with the instrument (pass its negative if it does not increase), and the mean
        outcome does not depend on it.
    covariates : frame or array-like, optional
        Columns with few values, known for all units. Adds trimming bounds within their
        combinations. The row ``"missing at random"`` is then conditional on these columns.
    follow_up : array-like of shape (n,), optional
        1 for the units that were drawn at random among those without an outcome and were contacted
        again, reached or not; 0 for all others. y has the outcomes of those reached. Only the row
        ``"random follow-up"`` uses these outcomes.
    model : HeckmanFit or HeckmanRegressor, optional
        A fit to the same rows. Adds a last row with the average outcome or, with `treatment`, the
        average marginal effect of the column that has the name of `treatment`.
    quantile : float, optional
        Between 0 and 1: bounds of a quantile, or of the effect on it, instead of the mean.
    selected : array-like of shape (n,), optional
        0/1 indicator of selection.
    sample_weight : array-like of shape (n,), optional
        Row weights. Whole numbers are frequency weights, other numbers probability weights.
    groups : array-like of shape (n,), optional
        Groups of dependent units.
    unobserved : number or list of numbers, optional
        Values of y that stand for a missing outcome, such as 0 or 999.
    level : float, default 0.95
        Confidence level, above 0.5.
    interval : {"imbens-manski", "stoye"}, default "imbens-manski"
        Confidence intervals of the bounded quantity. Imbens and Manski use one critical value for
        both ends, Stoye the pair that makes the interval shortest.

    Returns
    -------
    Bounds
        A printable table with ``rows`` and ``to_frame()``. It unpacks into the bounds without
        assumptions.

    Raises
    ------
    DataError
        If an observed outcome is outside the range, or the data cannot be used.

    Notes
    -----
    Standard errors are computed from the contribution of each unit to the bounds. The rows
    ``"monotone instrument"`` and ``"instrument"`` are maxima over estimates, so these bounds are
    too narrow on average. Their intervals account for this by simulation and are the same for both
    values of `interval`.

    Examples
    --------
    >>> import heckesel as hk
    >>> import numpy as np
    >>> low, high = hk.bounds([1.0, 2.0, np.nan, np.nan], 0.0, 4.0)
    >>> float(low), float(high)
    (0.75, 2.75)
    >>> rng = np.random.default_rng(0)
    >>> treatment = rng.integers(0, 2, 500)
    >>> y = np.where(rng.random(500) < 0.6 + 0.2 * treatment, rng.random(500), np.nan)
    >>> found = hk.bounds(y, 0.0, 1.0, treatment=treatment)
    >>> list(found.to_frame().index)
    ['no assumption', 'random treatment', 'trimming', 'missing at random']
    """
    check_level(level)
    if level <= 0.5:
        raise DataError(
            f"level must be above 0.5, got {level:g}; otherwise intervals end inside the bounds"
        )
    if not is_one_of(interval, INTERVAL_NAMES):
        raise DataError(f"interval must be one of {', '.join(INTERVAL_NAMES)}, got {interval!r}")
    if quantile is not None and not is_share(quantile):
        raise DataError(f"quantile must be a number between 0 and 1, got {quantile!r}")
    if quantile is not None and not (instrument is None and model is None):
        raise DataError("instrument= and model= give bounds for means; omit them with quantile=")
    columns = {"treatment": treatment, "instrument": instrument, "follow_up": follow_up}
    others = {"covariates": covariates, "groups": groups}
    others |= {"selected": selected, "sample_weight": sample_weight}
    check_same_order(y, of="y", **columns, **others)
    outcome = str(getattr(y, "name", None) or "y")
    values = outcome_column(y, unobserved)
    zeros = np.zeros((len(values), 1))
    data = selection_data(
        zeros, zeros, values, selected=selected, weight=sample_weight, y_name=outcome
    )
    _check_range(data.y[data.s], low, high)
    weight_kind = kind_of_weights(None, data.weight)
    _, clusters = covariance_kind(None, groups, data.weight, weight_kind, has_likelihood=False)
    given = {
        of: _column(values, of, data.n) for of, values in columns.items() if values is not None
    }
    given |= {of: ones_of(given[of], of) for of in ("treatment", "follow_up") if of in given}
    treated, followed = given.get("treatment"), given.get("follow_up")
    given_covariates = ""
    if covariates is not None:
        names, given["strata"] = _strata(covariates, data.n)
        given_covariates = f" given {', '.join(names)}"
    used = data.weight > 0
    if treated is not None and len(np.unique(treated[used])) < 2:
        raise DataError(
            f"treatment is {int(treated[used][0])} in every row, so there is no effect to bound"
        )
    instrument_codes, strata = (  # positions of the values among those of the used rows
        np.unique(given[of][used], return_inverse=True)[1] if of in given else None
        for of in ("instrument", "strata")
    )
    sample = BoundedSample(
        y=data.y[used],
        answered=(data.s if followed is None else data.s & ~followed)[used],
        low=float(low),
        high=float(high),
        weight=data.weight[used],
        weight_kind=weight_kind,
        followed=None if followed is None else followed[used],
        clusters=None if clusters is None else clusters[used],
        treated=None if treated is None else treated[used],
        instrument=instrument_codes,
        strata=strata,
        quantile=None if quantile is None else float(quantile),
    )
    if sample.freedom == 0:
        raise DataError("all rows of positive weight are in one group; two are needed")

    mirrored, rows = sample.mirror(), []
    of = "mean" if quantile is None else f"{quantile:g} quantile"
    target = f"{of} of " if treated is None else f"effect on the {of} of "
    treatment_name = str(getattr(treatment, "name", None) or "the treatment")
    random = "" if treated is None else f"{treatment_name} is random; "

    def add(name, assumes, lower_end, *arguments, arms=None, units="all units"):
        lower, upper = (
            [lower_end(each, arm, *arguments) for arm in arms or sample.arms]
            for each in (sample, mirrored)
        )
        ends = lower[0], upper[0]
        if len(lower) > 1:  # the difference between the arms
            ends = lower[0] + upper[1], upper[0] + lower[1]
        limits = interval_of(sample, ends, level, interval)
        numbers = ends[0].value, 0.0 - ends[1].value  # not -0.0
        rows.append(BoundsRow(name, assumes, target + units, *numbers, *limits))

    in_range = f"outcomes lie between {low:g} and {high:g}"
    add("no assumption", in_range, worst_case_end if treated is None else potential_outcome_end)
    if treated is not None:
        add("random treatment", random + in_range, worst_case_end)
    if instrument is not None:
        on = str(getattr(instrument, "name", None) or "the instrument")
        for name, how in (("monotone instrument", "decrease with"), ("instrument", "depend on")):
            assumes = f"{random}the mean outcome does not {how} {on}"
            add(name, assumes, instrument_end, how == "decrease with")
    if followed is not None:
        drawn = "those followed up are a random sample of the units without an outcome"
        add("random follow-up", random + drawn, follow_up_end)
    if treated is not None and quantile is None:
        assumes = f"{random}it changes selection in one direction"
        units = "units selected in both arms"
        trimmings = {"trimming": (np.zeros(len(sample.y), dtype=int), "")}
        if strata is not None:
            trimmings["trimming with covariates"] = strata, given_covariates
        for name, (codes, given_these) in trimmings.items():
            add(name, assumes + given_these, trimming_end, arms=[codes], units=units)
    missing = f"{random}outcomes are missing at random{given_covariates}"
    add("missing at random", missing, missing_at_random_end)
    if model is not None:
        column = None if treated is None else getattr(treatment, "name", None)
        assumes, limits = _answer_of(model, treated is not None, column, data.n, level)
        rows.append(BoundsRow("model", assumes, f"{target}all units", *limits))
    return Bounds(tuple(rows), level, interval, outcome)


def _answer_of(model, effect: bool, treatment, n: int, level: float) -> tuple[str, list[float]]:
    """Assumptions of a fitted model, and its estimate, twice, with the interval."""
    fit = model
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    if hasattr(model, "transform_"):
        if model.transform_ is not None:
            raise DataError("model= must be on the scale of y; fit without target_transform")
        fit = getattr(model, "result_", None)
    if not isinstance(fit, HeckmanFit):
        raise DataError(
            f"model= is for hk.heckman and linear regressors, not for a {type(model).__name__}"
        )
    if isinstance(fit.data, SelectionData) and fit.data.n != n:
        raise DataError(f"the model was fitted to {fit.data.n} rows but y has {n}")
    if not effect:
        estimate, low, high = fit.average(level=level)[["mean", "low", "high"]]
    else:
        effects = fit.margins(level=level)
        if treatment not in effects.index:
            raise DataError(
                f"the model has no column {treatment!r}, the name of treatment=; "
                f"it has {', '.join(map(str, effects.index))}"
            )
        estimate, low, high = effects.loc[treatment, ["effect", "low", "high"]]
    method = NAMES.get(fit.method, fit.method)
    assumes = f"{fit.title}, {method}{ERRORS[fit.errors] or ', normal errors'}"
    limits = np.array([estimate, estimate, low, high], dtype=float).tolist()
    return assumes, limits
