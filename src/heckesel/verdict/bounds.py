"""`hk.bounds`: bounds on a mean, a quantile or an effect under several sets of assumptions.

Every estimator computes a lower end with what each unit contributes to it; the upper end is minus
the lower end of -y. One row of the table states a set of assumptions and the bounds that follow.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtr, ndtri, stdtrit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from heckesel.classical.covariance import cluster_freedom, critical_value
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
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self.rows]).set_index("name")

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

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of intervals: G - 1 for G clusters, infinite without."""
        return cluster_freedom(self.clusters, self.weight)

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

    def total(self, rows) -> float:
        """Sum of the weights of some rows."""
        return float(self.weight @ rows)

    def units(self, rows) -> float:
        """Number of units among some rows."""
        counted = self.weight_kind == "frequency"
        return self.total(rows) if counted else float(np.count_nonzero(rows))

    def residual_factor(self, rows) -> float:
        """sqrt(n / (n - 1)) for n units: what makes a variance around their mean unbiased.

        Clusters have their own factor in `covariance`.
        """
        units = self.units(rows)
        return float(np.sqrt(units / (units - 1))) if units > 1 and self.clusters is None else 1.0

    def covariance(self, contributions) -> np.ndarray:
        """(k, k) covariance of k estimates.

        contributions : (n, k) so that an estimate differs from its limit by about the sum of a
        column. Each is proportional to the weight of its unit. A frequency weight of two stands for
        two units, which contribute half each.
        """
        if self.clusters is not None:
            sums = np.stack([np.bincount(self.clusters, each) for each in contributions.T], axis=1)
            return sums.T @ sums * (1 + 1 / self.freedom)
        if self.weight_kind == "frequency":
            return contributions.T @ (contributions / self.weight[:, None])
        return contributions.T @ contributions


ROUNDING = 1e-12  # cumulative shares err by less


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
    def regular(self) -> bool:
        """Whether every maximum has one candidate only, so that the sum is linear."""
        return bool((self.candidates.sum(axis=1) == 1).all())

    @property
    def linear(self) -> np.ndarray:
        """(n,) contributions to the sum if the largest estimates remain so."""
        return self.contributions @ np.bincount(self.largest, self.share, len(self.share))

    def derivative(self, error: np.ndarray) -> np.ndarray:
        """(b,) the change of the sum for each of b errors (b, j) of the estimates."""
        largest = np.where(self.candidates, error[:, None, :], -np.inf).max(axis=2)
        return largest @ self.share


@dataclass(frozen=True)
class End:
    """A lower end.

    linear : (n,) contributions to the part that is not in `maxima`
    maxima : the other terms of its sum
    unlimited : whether no finite confidence limit exists
    """

    value: float
    linear: np.ndarray
    maxima: tuple[Maxima, ...] = ()
    unlimited: bool = False

    def __add__(self, other: End) -> End:
        return End(
            self.value + other.value,
            self.linear + other.linear,
            self.maxima + other.maxima,
            self.unlimited or other.unlimited,
        )


@dataclass(frozen=True)
class Ends:
    """The lower end of a quantity and that of its negative."""

    lower: End
    mirrored: End

    @property
    def width(self) -> float:
        return -self.mirrored.value - self.lower.value

    def minus(self, other: Ends) -> Ends:
        """Bounds of the difference of two quantities."""
        return Ends(self.lower + other.mirrored, self.mirrored + other.lower)


def both_ends(lower_end: Callable[..., End], sample: BoundedSample, *rest) -> Ends:
    """Both ends, from a function that estimates the lower one."""
    return Ends(lower_end(sample, *rest), lower_end(sample.mirror(), *rest))


def target_end(sample: BoundedSample, values, share, contributions_of: Callable) -> End:
    """The mean or the quantile of (n,) values with weights `share`, which add up to one.

    contributions_of : from (n,) values to their (n,) contributions to the mean ``share @ values``

    An infinite value that has a weight makes the mean infinite. The standard error of a quantile is
    Woodruff's: the quantiles at both ends of an interval of the distribution function at the
    estimate, divided by the width of that interval in standard errors.
    """
    zeros = np.zeros(sample.n)
    if sample.quantile is None:
        if not np.isfinite(values[share > 0]).all():
            return End(-np.inf, zeros, unlimited=True)
        values = np.where(share > 0, values, 0.0)
        return End(float(share @ values), contributions_of(values))
    order = np.argsort(values, kind="stable")
    order = order[share[order] > 0]
    ends = values[order], np.cumsum(share[order])
    estimate = _quantile(*ends, sample.quantile, sample.mirrored)
    contributions = contributions_of((values <= estimate).astype(float))
    error = np.sqrt(sample.covariance(contributions[:, None])[0, 0])
    half = critical_value(0.95) * error
    around = sample.quantile - half, sample.quantile + half
    low, high = (_quantile(*ends, p, sample.mirrored) for p in around)
    if half == 0:
        return End(estimate, zeros, unlimited=not np.isfinite(estimate))
    if not np.isfinite([low, high]).all():
        return End(estimate, zeros, unlimited=True)
    return End(estimate, contributions * (low - high) / (2 * half))


def _quantile(values, cumulated, p: float, right: bool) -> float:
    """The smallest of the sorted values with a share of at least p at or below it; with `right`,
    of more than p, so that quantiles of -y are those of y."""
    at = np.searchsorted(cumulated, p + ROUNDING if right else p - ROUNDING, side="left")
    return float(values[min(at, len(values) - 1)])


def follow_up_end(sample: BoundedSample, rows) -> End:
    r"""Lower end of the mean, or of the quantile, of some rows.

    .. math:: \bar s\,\bar y_1 + (1 - \bar s)\,
              \bigl(\bar r\,\bar y_2 + (1 - \bar r)\,\text{low}\bigr)

    s are the units that answered, with mean y1. Of the others, a random sample is followed up, and
    a share r of it answers, with mean y2 (Coppock, Gerber, Green and Kern, 2017). The worst case is
    assumed for the share 1 - r of the sample only, which represents all that did not answer.
    """
    assert sample.followed is not None
    missing = rows & ~sample.answered
    if sample.total(missing) and not sample.total(missing & sample.followed):
        raise DataError(
            "follow_up is 1 for no unit without an outcome"
            + (" in one treatment arm" if sample.treated is not None else "")
            + "; it must be 1 for every unit drawn for the follow-up, whether reached or not"
        )
    return double_sample_end(sample, rows, sample.answered, sample.followed)


def double_sample_end(sample: BoundedSample, rows, answered, drawn) -> End:
    """The same, with the worst case as the special case in which all others are drawn.

    Variances within those who answered, and within those reached, have n - 1 in the denominator.
    """
    first, second = rows & answered, rows & drawn & ~answered
    missing = rows & ~answered
    reached = second & ~np.isnan(sample.y)
    values = np.where(first | reached, sample.y, sample.low)
    total, drawn_total = sample.total(rows), sample.total(second)
    inverse = sample.total(missing) / drawn_total if drawn_total else 0.0
    share = sample.weight * (first + inverse * second) / total

    def contributions_of(v):
        mean = share @ v
        of_second = sample.weight @ (second * v) / drawn_total if drawn_total else 0.0
        unbiased = v.copy()
        for group in (first, reached):
            if size := sample.total(group):
                centre = sample.weight @ (group * v) / size
                factor = sample.residual_factor(group)
                unbiased = np.where(group, centre + factor * (v - centre), unbiased)
        influence = first * (unbiased - mean) + missing * (of_second - mean)
        influence = influence + inverse * second * (unbiased - of_second)
        return sample.weight * influence / total

    return target_end(sample, values, share, contributions_of)


def worst_case_end(sample: BoundedSample, rows) -> End:
    r"""Lower end of the mean, or of the quantile, of some rows.

    .. math:: \frac{1}{n}\Bigl(\sum_{s=1} y_i + n_0\,\text{low}\Bigr)

    Every missing outcome is replaced by low, and for the upper end by high (Manski, 1990; Horowitz
    and Manski, 2000).
    """
    return _filled_end(sample, rows, sample.answered)


def potential_outcome_end(sample: BoundedSample, arm) -> End:
    """Lower end for the outcome that all units would have in one arm of the treatment.

    Unless the treatment is random, that of units in the other arm is also missing.
    """
    return _filled_end(sample, np.ones(sample.n, dtype=bool), sample.answered & arm)


def _filled_end(sample: BoundedSample, rows, answered) -> End:
    hidden = np.where(answered, sample.y, np.nan)
    return double_sample_end(replace(sample, y=hidden), rows, answered, ~answered)


def missing_at_random_end(sample: BoundedSample, rows) -> End:
    """The mean, or the quantile, of some rows if each stratum's outcomes are missing at random.

    Those who answered are weighted to the shares of the strata among all units.
    """
    strata = np.zeros(sample.n, dtype=int) if sample.strata is None else sample.strata
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
    total = size.sum()
    inverse = np.divide(size, answered, out=np.zeros(count), where=answered > 0)[strata]
    share = sample.weight * first * inverse / total
    factor = sample.residual_factor(first)

    def contributions_of(v):
        sums = np.bincount(strata, sample.weight * first * v, count)
        centre = np.divide(sums, answered, out=np.zeros(count), where=answered > 0)[strata]
        influence = rows * (centre - share @ v) + first * inverse * factor * (v - centre)
        return sample.weight * influence / total

    values = np.where(first, sample.y, 0.0)
    return target_end(sample, values, share, contributions_of)


MOST = 50  # values of the instrument; maxima over more err too far inwards to be of use
FEWEST = 10  # rows with a value of the instrument; intervals treat means of them as normal


def monotone_end(sample: BoundedSample, rows) -> End:
    r"""Lower end of the mean if it does not decrease with the instrument v.

    .. math:: \sum_u \Pr(v = u)\,\max_{t \le u}\bigl(\mathrm{E}[y s \mid v = t]
              + \text{low}\,\Pr(s = 0 \mid v = t)\bigr)

    This is the monotone instrumental variable of Manski and Pepper (2000).
    """
    assert sample.instrument is not None
    count = sample.instrument.max() + 1
    order = np.tril(np.ones((count, count), dtype=bool))
    return _largest_end(sample, rows, order.T if sample.mirrored else order)


def independent_end(sample: BoundedSample, rows) -> End:
    """Lower end if the mean does not depend on the instrument: the maximum is over all its values
    (Manski, 1990)."""
    assert sample.instrument is not None
    count = sample.instrument.max() + 1
    return _largest_end(sample, rows, np.ones((count, count), dtype=bool))


def check_instrument_values(sample: BoundedSample, rows) -> None:
    """Refuse values of the instrument that few rows have."""
    assert sample.instrument is not None
    units = np.bincount(sample.instrument, rows, sample.instrument.max() + 1)
    if len(units) < 2:
        raise DataError("the instrument has the same value in every row")
    if len(units) > MOST or units.min() < FEWEST:
        raise DataError(
            f"the instrument has {len(units)} values, one of them in {units.min():.0f} rows"
            + (" of a treatment arm" if sample.treated is not None else "")
            + f", but at most {MOST} values with {FEWEST} rows each can be used; group them, for "
            "example with pandas.qcut(instrument, 5, labels=False)"
        )


def _largest_end(sample: BoundedSample, rows, allowed) -> End:
    """allowed : (j, j) bool, row by row the values of the instrument with means that bound that of
    one value from below"""
    weight, codes = sample.weight * rows, sample.instrument
    assert codes is not None
    count = len(allowed)
    if not np.isfinite(sample.low) and not sample.answered[rows].all():
        return End(-np.inf, np.zeros(sample.n), unlimited=True)
    y = np.where(sample.answered, sample.y, sample.low)
    size = np.bincount(codes, weight, count)
    mean = np.bincount(codes, weight * y, count) / size
    contributions = np.zeros((sample.n, count))
    contributions[np.arange(sample.n), codes] = weight * (y - mean[codes]) / size[codes]

    share = size / size.sum()
    first = np.where(allowed, mean, -np.inf).argmax(axis=1)
    largest = mean[first]
    value = float(share @ largest)
    maxima = Maxima(
        contributions,
        first,
        allowed & _may_be_largest(sample, contributions, mean, first),
        share,
    )
    return End(value, weight * (largest[codes] - value) / size.sum(), (maxima,))


def _may_be_largest(sample: BoundedSample, contributions, mean, first) -> np.ndarray:
    """(j, j) bool: the means that are not clearly below the largest one of their row.

    The distance, sqrt(log n) standard errors of the difference, grows with n, but more slowly than
    the differences that are not zero do.
    """
    covariance = sample.covariance(contributions)
    variance = np.diag(covariance)
    of_difference = variance + variance[first, None] - 2 * covariance[first]
    units = sample.units(np.ones(sample.n, dtype=bool))
    distance = np.sqrt(np.log(units) * np.maximum(of_difference, 0.0))
    return mean >= mean[first, None] - distance


def trimming_end(sample: BoundedSample, strata) -> End:
    """Lower end of the effect on units that are selected with and without the treatment.

    strata : (n,) codes within which the arms are compared; zeros for all units together

    The arm in which selection is more frequent also contains others. They are at worst those with
    the largest outcomes, so that a share of these is trimmed (Lee, 2009).
    """
    treated = sample.treated
    assert treated is not None
    rate = [sample.total(arm & sample.answered) / sample.total(arm) for arm in (treated, ~treated)]
    if rate[0] >= rate[1]:
        return _trimmed_end(sample, sample.y, treated, strata)
    return _trimmed_end(sample, -sample.y, ~treated, strata)


def check_strata(sample: BoundedSample, strata) -> None:
    """Refuse strata without an outcome in one arm, and warn of those that are not trimmed."""
    treated, count = sample.treated, strata.max() + 1
    assert treated is not None
    arms = [treated, ~treated]
    size = [np.bincount(strata, sample.weight * arm, count) for arm in arms]
    answered = [np.bincount(strata, sample.weight * (arm & sample.answered), count) for arm in arms]
    empty = np.count_nonzero(np.minimum(*answered) == 0)
    if empty:
        raise DataError(
            f"{empty} of {count} combinations of the covariates have no observed outcome in one "
            "treatment arm; merge levels or give fewer columns as covariates="
        )
    difference = answered[0] / size[0] - answered[1] / size[1]
    overall = np.sign(answered[0].sum() / size[0].sum() - answered[1].sum() / size[1].sum())
    reverse = np.count_nonzero(np.sign(difference) == -overall)
    if overall and reverse:
        warn_user(
            f"in {reverse} of {count} combinations of the covariates selection differs between the "
            "arms in the other direction than overall; nothing is trimmed there"
        )


def _trimmed_end(sample: BoundedSample, y, trimmed, strata) -> End:
    r"""Mean of the smallest outcomes of the arm `trimmed` minus the mean of the other arm.

    In each stratum a share of the arm equal to the rate of selection p of the other arm is kept. If
    q is the largest outcome kept, its mean is

    .. math:: m = q - \mathrm{E}[(q - y)^+ s]/p

    whose derivative in q is zero, so that what q contributes to the error vanishes. Strata are
    weighted by their share among the selected units of the other arm, which are all selected with
    and without the treatment.
    """
    weight, s, count = sample.weight, sample.answered, strata.max() + 1
    arm, other = trimmed & s, ~trimmed & s
    y = np.where(s, y, 0.0)
    size, of_arm, others, of_other = (
        np.bincount(strata, weight * rows, count) for rows in (trimmed, arm, ~trimmed, other)
    )
    rate = of_other / others
    kept = np.minimum(rate * size, of_arm)
    whole = kept >= of_arm * (1 - ROUNDING)
    q = _largest_kept(y, weight, strata, arm, kept)[strata]
    shortfall = np.where(arm, np.maximum(q - y, 0.0), 0.0)
    lacking = np.bincount(strata, weight * shortfall, count)
    sums = np.bincount(strata, weight * arm * y, count)
    largest = np.zeros(count)
    largest[strata] = q
    mean = np.where(whole, sums / of_arm, largest - lacking / kept)

    selected = of_other.sum()
    of_strata = of_other / selected
    factor = np.where(other, sample.residual_factor(other), 1.0)
    mean_other = weight @ (other * y) / selected
    overall = of_strata @ mean
    in_arm = np.where(
        whole[strata],
        arm * (y - mean[strata]) / of_arm[strata],
        trimmed * ((lacking / size)[strata] - shortfall) / kept[strata],
    )
    in_other = np.where(
        whole[strata],
        0.0,
        ~trimmed * (lacking / size / rate**2 / others)[strata] * (s - rate[strata]),
    )
    contributions = of_strata[strata] * (in_arm + in_other)
    contributions += other * (mean[strata] - overall - factor * (y - mean_other)) / selected
    return End(float(overall - mean_other), weight * contributions)


def _largest_kept(y, weight, strata, arm, kept) -> np.ndarray:
    """(c,) the outcome at which the weights of the smallest ones reach `kept` in each stratum."""
    order = np.lexsort((y, strata))
    order = order[arm[order]]
    codes, of_rows = strata[order], weight[order]
    start = np.searchsorted(codes, np.arange(len(kept)))
    before = np.concatenate([[0.0], np.cumsum(of_rows)])
    within = before[1:] - before[start][codes]
    below = within < (kept * (1 - ROUNDING))[codes]
    return y[order[start + np.bincount(codes, below, len(kept)).astype(int)]]


INTERVALS = ("imbens-manski", "stoye")
DRAWS = 5000  # of the errors of maxima; a 95 % quantile then has a relative error of about 2 %
FARTHEST = 8.0  # standard errors; beyond, a tail of the normal is below 1e-15
PRECISION = 1e-4  # of a critical value near the minimum of the length, which then errs by 1e-8
SMALLEST_STEP = 1e-9  # above the critical value at which that of the other end is infinite
NEARLY_ONE = 1 - 1e-9  # correlations beyond are rounding


def interval_of(sample: BoundedSample, ends: Ends, level: float, kind: str) -> tuple[float, float]:
    """The confidence interval of the bounded quantity.

    At width 0, and if the width is many standard errors, both kinds are the same. Maxima with a
    single candidate are linear and treated as such. If several estimates may be the largest, the
    quantile of the simulated error replaces the critical value times the standard error (Fang and
    Santos, 2019), at the level of the Imbens-Manski interval.
    """
    sides = ends.lower, ends.mirrored
    linear = np.column_stack([linearised(end) for end in sides])
    covariance = sample.covariance(linear)
    se = np.sqrt(np.diag(covariance))
    regular = all(part.regular for end in sides for part in end.maxima)
    width = max(ends.width, 0.0)
    if kind == "stoye" and regular and se.min() > 0 and 0 < width < FARTHEST * se.max():
        rho = -covariance[0, 1] / (se[0] * se[1])
        critical = stoye_values(width, se[0], se[1], rho, level)
    else:
        critical = (imbens_manski_value(width, float(se.max()), level),) * 2
    limits = []
    for end, error, value in zip(sides, se, critical, strict=True):
        if end.unlimited:
            limits.append(-np.inf)
        elif all(part.regular for part in end.maxima):
            limits.append(end.value - _student(value, sample.freedom) * error)
        else:
            ratio = _student(value, sample.freedom) / value
            limits.append(end.value - ratio * _simulated(sample, end, float(ndtr(value))))
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


def linearised(end: End) -> np.ndarray:
    """(n,) contributions to an end if the largest estimates in its maxima remain the largest."""
    return end.linear + sum(part.linear for part in end.maxima)


def _simulated(sample: BoundedSample, end: End, p: float) -> float:
    """The p-quantile of the error of a sum of maxima, simulated with normal errors of its terms."""
    columns = np.column_stack([end.linear, *(part.contributions for part in end.maxima)])
    values, vectors = np.linalg.eigh(sample.covariance(columns))
    # the symmetric root, because eigenvectors of equal eigenvalues depend on rounding
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    errors = np.random.default_rng(0).standard_normal((DRAWS, len(values))) @ root
    ends = np.cumsum([1, *(part.contributions.shape[1] for part in end.maxima)])
    total = errors[:, 0]
    for part, start, stop in zip(end.maxima, ends[:-1], ends[1:], strict=True):
        total = total + part.derivative(errors[:, start:stop])
    return float(np.quantile(total, p))


def _student(value: float, freedom: float) -> float:
    """The quantile of t that has the probability of a normal critical value."""
    return value if np.isinf(freedom) else float(stdtrit(freedom, ndtr(value)))


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns in sentences about assumptions."""

    outcome: str
    treatment: str = "the treatment"
    instrument: str = "the instrument"
    covariates: tuple[str, ...] = ()


def bounds_rows(
    sample: BoundedSample, names: ColumnNames, level: float, kind: str
) -> list[BoundsRow]:
    """One row for each set of assumptions that the columns of the sample allow."""
    random = "" if sample.treated is None else f"{names.treatment} is random; "
    given = f" given {', '.join(names.covariates)}" if sample.strata is not None else ""

    def row(name, assumes, ends, of="all units"):
        limits = interval_of(sample, ends, level, kind)
        values = ends.lower.value, 0.0 - ends.mirrored.value  # not -0.0
        return BoundsRow(name, assumes, target(sample, of), *values, *limits)

    def add(name, assumes, lower_end):
        rows.append(row(name, random + assumes, _over_arms(sample, lower_end)))

    in_range = f"outcomes lie between {sample.low:g} and {sample.high:g}"
    rows: list[BoundsRow] = []
    if sample.treated is None:
        add("no assumption", in_range, worst_case_end)
    else:
        ends = _over_arms(sample, potential_outcome_end)
        rows.append(row("no assumption", in_range, ends))
        add("random treatment", in_range, worst_case_end)
    if sample.instrument is not None:
        for rows_of in _arms(sample):
            check_instrument_values(sample, rows_of)
        monotone = f"the mean outcome does not decrease with {names.instrument}"
        add("monotone instrument", monotone, monotone_end)
        independent = f"the mean outcome does not depend on {names.instrument}"
        add("instrument", independent, independent_end)
    if sample.followed is not None:
        followed = "those followed up are a random sample of the units without an outcome"
        add("random follow-up", followed, follow_up_end)
    if sample.treated is not None and sample.quantile is None:
        direction = f"{random}it changes selection in one direction"
        for name, strata, more in _trimmings(sample):
            check_strata(sample, strata)
            ends = both_ends(trimming_end, sample, strata)
            both = "units selected in both arms"
            rows.append(row(name, direction + (given if more else ""), ends, both))
    add("missing at random", f"outcomes are missing at random{given}", missing_at_random_end)
    return rows


def target(sample: BoundedSample, units: str) -> str:
    """The bounded quantity, in words."""
    of = "mean" if sample.quantile is None else f"{sample.quantile:g} quantile"
    return f"{of} of {units}" if sample.treated is None else f"effect on the {of} of {units}"


def _arms(sample: BoundedSample) -> list[np.ndarray]:
    if sample.treated is None:
        return [np.ones(sample.n, dtype=bool)]
    return [sample.treated, ~sample.treated]


def _over_arms(sample: BoundedSample, lower_end: Callable[..., End]) -> Ends:
    """Both ends for all units, or for the difference between the arms."""
    first, *other = (both_ends(lower_end, sample, rows) for rows in _arms(sample))
    return first.minus(other[0]) if other else first


def _trimmings(sample: BoundedSample):
    """(name, strata, whether these are those of the covariates)"""
    yield "trimming", np.zeros(sample.n, dtype=int), False
    if sample.strata is not None:
        yield "trimming with covariates", sample.strata, True


def bounded_sample(
    y, low, high, quantile: float | None, columns: dict, unobserved=None
) -> tuple[BoundedSample, ColumnNames, np.ndarray]:
    """The units of positive weight, what their columns are called, and (n,) which rows they are.

    columns : the other arguments of `hk.bounds` with a value for each row, by name
    """
    check_same_order(y, of="y", **columns)
    name = str(getattr(y, "name", None) or "y")
    values = outcome_column(y, unobserved)
    zeros = np.zeros((len(values), 1))
    sides = {"selected": columns["selected"], "weight": columns["sample_weight"], "y_name": name}
    data = selection_data(zeros, zeros, values, **sides)
    _check_range(data.y[data.s], low, high)
    kind = kind_of_weights(None, data.weight)
    _, clusters = covariance_kind(None, columns["groups"], data.weight, kind, has_likelihood=False)
    used = data.weight > 0
    treated, followed = (_indicator(columns[of], of, data.n) for of in ("treatment", "follow_up"))
    instrument, covariates = columns["instrument"], columns["covariates"]
    covariate_names, strata = ((), None) if covariates is None else _strata(covariates, data.n)
    if instrument is not None:
        instrument = _column(instrument, "instrument", data.n)
    sample = BoundedSample(
        y=data.y[used],
        answered=(data.s if followed is None else data.s & ~followed)[used],
        low=float(low),
        high=float(high),
        weight=data.weight[used],
        weight_kind=kind,
        followed=None if followed is None else followed[used],
        clusters=_codes(clusters, used),
        treated=None if treated is None else treated[used],
        instrument=_codes(instrument, used),
        strata=_codes(strata, used),
        quantile=None if quantile is None else float(quantile),
    )
    if sample.freedom == 0:
        raise DataError("all rows of positive weight are in one group; two are needed")
    if sample.treated is not None and len(np.unique(sample.treated)) < 2:
        raise DataError(
            f"treatment is {int(sample.treated[0])} in every row, so there is no effect to bound"
        )
    names = ColumnNames(
        outcome=name,
        treatment=str(getattr(columns["treatment"], "name", None) or "the treatment"),
        instrument=str(getattr(columns["instrument"], "name", None) or "the instrument"),
        covariates=covariate_names,
    )
    return sample, names, used


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


def _indicator(values, name: str, n: int) -> np.ndarray | None:
    return None if values is None else ones_of(_column(values, name, n), name)


def _strata(covariates, n: int) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the columns, and (n,) codes of the combinations of their values."""
    if isinstance(covariates, pd.Series):
        covariates = covariates.to_frame()
    if not hasattr(covariates, "columns") and not isinstance(covariates, dict):
        array = unmasked(covariates, "covariates")
        if array.ndim not in (1, 2):
            raise DataError(f"covariates must be a table but has shape {array.shape}")
        table = array if array.ndim == 2 else array[:, None]
        names = [f"covariate {j}" for j in range(table.shape[1])]
        covariates = pd.DataFrame(table, columns=names)
    frame = as_pandas(covariates, "covariates")
    if not len(frame.columns):
        raise DataError("covariates have no columns; omit covariates=")
    if len(frame) != n:
        raise DataError(f"covariates have {len(frame)} rows but there are {n} rows of y")
    for name, gaps in frame.isna().items():
        if gaps.any():
            row = int(np.flatnonzero(gaps)[0])
            raise DataError(
                f"the covariate {name!r} is missing in row {row}; impute it or make it a level"
            )
    codes = frame.groupby(list(frame.columns), sort=True, observed=True).ngroup()
    return tuple(map(str, frame.columns)), codes.to_numpy()


def _codes(column, used):
    """Positions of the values among the sorted values that occur in the used rows."""
    return None if column is None else np.unique(column[used], return_inverse=True)[1]


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
    if not is_one_of(interval, INTERVALS):
        raise DataError(f"interval must be one of {', '.join(INTERVALS)}, got {interval!r}")
    if quantile is not None and not is_share(quantile):
        raise DataError(f"quantile must be a number between 0 and 1, got {quantile!r}")
    if quantile is not None and not (instrument is None and model is None):
        raise DataError("instrument= and model= give bounds for means; omit them with quantile=")
    columns = {
        "selected": selected,
        "sample_weight": sample_weight,
        "treatment": treatment,
        "instrument": instrument,
        "covariates": covariates,
        "follow_up": follow_up,
        "groups": groups,
    }
    sample, names, used = bounded_sample(y, low, high, quantile, columns, unobserved)
    rows = bounds_rows(sample, names, level, interval)
    if model is not None:
        rows.append(_model_row(model, getattr(treatment, "name", None), sample, len(used), level))
    return Bounds(tuple(rows), level, interval, names.outcome)


def _model_row(model, treatment, sample: BoundedSample, n: int, level: float) -> BoundsRow:
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
    if sample.treated is None:
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
    return BoundsRow("model", assumes, target(sample, "all units"), *limits)
