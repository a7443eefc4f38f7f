"""Confidence intervals of a quantity that lies between two estimated bounds."""

from functools import partial

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtr, ndtri, stdtrit

from heckesel.diagnostics.bounds.bound_estimates import End, Ends
from heckesel.diagnostics.bounds.bounded_sample import BoundedSample
from heckesel.math.bivariate import log_bivariate_cdf

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
