r"""Intervals and tests from maximum likelihood fits with rho held at every value the data allow.

Given rho the likelihood is concave and close to normal in the other parameters, even if the data
contain little information about rho. A quantity g has the estimate g(r) and the variance v(r) given
rho = r, and

.. math:: \mathrm{LR}(g_0) = \min_r\; 2\,[\ell_{\max} - \ell(r)] + (g_0 - g(r))^2 / v(r)

is its likelihood-ratio statistic. The interval contains every value that is not rejected: the
union over r of g(r) +- sqrt((c - 2 [l_max - l(r)]) v(r)).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from scipy.special import chdtrc, chdtri

from heckesel.errors import DataError
from heckesel.linear.covariance import inverse
from heckesel.linear.estimates import back_transform, estimates_at, standardised_hessian
from heckesel.linear.heckman_probit import BinarySample, covariance_given_rho
from heckesel.linear.joint import Point, at_zero, solve_at
from heckesel.linear.profile_intervals import LARGEST_ATANH_RHO
from heckesel.linear.rho_scan import CLEARLY_BETTER, Scan
from heckesel.linear.sample.sample import ALL_ROWS_UP_TO, Sample, SampleScale
from heckesel.on_disk import on_disk

# Without a strong instrument the likelihood-ratio statistic of a true value has a mean of 1.15 to
# 1.35 in simulations (results/inference_coverage.json), and is divided by this. It is a Bartlett
# correction whose factor was found by simulation.
MEAN_OF_STATISTIC = 1.25
LARGEST_LEVEL = 0.9999
# The first step is this part of the half-width of an interval of LARGEST_LEVEL, and each is longer
# than the one before. While rho still changes noticeably, steps of atanh rho stay short.
STEPS_OUT, STEP_GROWTH = 24, 1.1
# Of long tables, each of whose fits takes seconds. The curve of many rows is close to a parabola,
# and steps of half a standard error move the ends of an interval by a few percent of one.
FEW_STEPS_OUT = 8
LARGEST_STEP, LONG_STEPS_FROM = 0.25, 2.0
# In log-likelihood; a step with so small an expected gain is still taken, which squares the
# distance.
SMALL_GAIN = 1e-3


@dataclass(frozen=True)
class ConditionalFits:
    """Fits with rho held at k values, which reach as far as an interval of LARGEST_LEVEL.

    atanh_rho : (k,); drop : (k,) how far their log-likelihood lies below the highest;
    params : (k, size) in the order of a fit's parameters, atanh rho among them;
    cov : (k, size, size) given rho, so that atanh rho has none
    """

    atanh_rho: np.ndarray = field(metadata=on_disk("k"))
    drop: np.ndarray = field(metadata=on_disk("k"))
    params: np.ndarray = field(metadata=on_disk("k", "size"))
    cov: np.ndarray = field(metadata=on_disk("k", "size", "size"))

    def interval(self, values, variances, level: float) -> np.ndarray:
        """(m, 2) of m quantities with estimates `values` and `variances` (k, m) given rho."""
        if level > LARGEST_LEVEL:
            raise DataError(
                f"if rho is poorly identified, level must be at most {LARGEST_LEVEL:g}, got "
                f"{level!r}"
            )
        room = critical_value(level) - 2 * self.drop
        inside = room >= 0
        half = np.sqrt(room[inside, None] * variances[inside])
        ends = (values[inside] - half).min(axis=0), (values[inside] + half).max(axis=0)
        return np.column_stack(ends)

    def p_values(self, values, variances) -> np.ndarray:
        """(m,) of the tests that each quantity is zero: 1 less the level at which the interval ends
        there. A quantity that is zero between two nodes is within the interval over both."""
        needed = []
        for side in (values, -values):  # until the lower end, and the upper end, reach zero
            beyond = np.divide(side**2, variances, out=np.zeros_like(side), where=side > 0)
            needed.append((2 * self.drop[:, None] + beyond).min(axis=0))
        return chdtrc(1, np.maximum(*needed) / MEAN_OF_STATISTIC)

    def interval_of_params(self, level: float) -> np.ndarray:
        """(size, 2) of the parameters themselves."""
        ends = self.interval(self.params, self._own_variances, level)
        ends[self._held] = self.interval_of_rho(level)
        return ends

    def interval_of_rho(self, level: float) -> tuple[float, float]:
        """Of atanh rho, between the nodes by linear interpolation; infinite up to rho = +-1."""
        room = critical_value(level) - 2 * self.drop
        inside, a = np.flatnonzero(room >= 0), self.atanh_rho
        ends = []
        for last, step in ((inside[0], -1), (inside[-1], 1)):
            beyond = last + step
            if not 0 <= beyond < len(a):
                ends.append(step * np.inf)
                continue
            share = room[last] / (room[last] - room[beyond])
            ends.append(float(a[last] + share * (a[beyond] - a[last])))
        return ends[0], ends[1]

    def p_values_of_params(self) -> np.ndarray:
        """(size,) of the tests that each parameter is zero."""
        drop = np.interp(0.0, self.atanh_rho, self.drop)
        outside = not self.atanh_rho[0] <= 0 <= self.atanh_rho[-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            p = self.p_values(self.params, self._own_variances)
        p[self._held] = 0.0 if outside else chdtrc(1, 2 * drop / MEAN_OF_STATISTIC)
        return p

    @property
    def _own_variances(self) -> np.ndarray:
        return np.diagonal(self.cov, axis1=1, axis2=2)

    @property
    def _held(self) -> int:
        """The position of atanh rho."""
        return int(np.flatnonzero(self._own_variances[0] == 0)[0])


def critical_value(level: float) -> float:
    """Critical value of the likelihood-ratio statistic for intervals of this level."""
    return MEAN_OF_STATISTIC * float(chdtri(1, 1 - level))


def highest(scan: Scan, selected: int) -> float:
    """The log-likelihood that others are compared with: that of the mode in use. If it is at rho =
    +-1, the lead that it needs to be used is subtracted, because this lead is no evidence against
    interior values."""
    used = scan.modes[selected]
    return used.value - (CLEARLY_BETTER if used.status == "boundary" else 0.0)


def linear_fits(sample: Sample, scalings: SampleScale, scan: Scan, selected: int):
    """Fits of a linear outcome; parameters are beta, gamma, atanh rho and log sigma."""
    p, q = sample.p, sample.q
    order = [*range(p + q), p + q + 1, p + q]  # numbers come as log sigma, atanh rho

    def in_user_units(point: Point) -> tuple[np.ndarray, np.ndarray]:
        covariance = np.zeros((p + q + 2,) * 2)
        covariance[:-1, :-1] = inverse(-standardised_hessian(point, q)[:-1, :-1])
        back = back_transform(scalings)
        covariance = back @ covariance @ back.T
        vector = estimates_at(point, sample, scalings).vector
        return vector[order], covariance[np.ix_(order, order)]

    return _over_rho(sample, scan, selected, in_user_units)


def binary_fits(sample: BinarySample, scalings: SampleScale, scan: Scan, selected: int):
    """Fits of a binary outcome; parameters are beta, gamma and atanh rho."""

    def in_user_units(point: Point) -> tuple[np.ndarray, np.ndarray]:
        gamma, beta = point.v[: sample.q], point.v[sample.q :]
        vector = [scalings.x.back @ beta, scalings.w.back @ gamma, [point.a]]
        return np.concatenate(vector), covariance_given_rho(point, sample, scalings)

    return _over_rho(sample, scan, selected, in_user_units)


def _over_rho(rows, scan: Scan, selected: int, in_user_units: Callable) -> ConditionalFits:
    top = highest(scan, selected)
    drop = 0.5 * critical_value(LARGEST_LEVEL)
    modes = [mode for mode in scan.modes if mode.value >= top - drop]
    begin = scan.modes[selected]
    if begin.status != "converged" or abs(begin.a) > LARGEST_ATANH_RHO:
        begin = solve_at(rows, 0.0, at_zero(rows))
    width = np.sqrt(2 * drop / np.fmax(-begin.curvature, 1e-12))
    steps = STEPS_OUT if rows.n <= ALL_ROWS_UP_TO else FEW_STEPS_OUT
    step = min(width / steps, LARGEST_STEP)
    sides = (
        _walk(rows, begin, sign * step, sign * max(sign * mode.a for mode in modes), top - drop)
        for sign in (1.0, -1.0)
    )
    inside = [mode for mode in modes if abs(mode.a) <= LARGEST_ATANH_RHO and mode is not begin]
    points = sorted([begin, *inside, *chain(*sides)], key=lambda point: point.a)
    vectors, covariances = zip(*map(in_user_units, points), strict=True)
    values = np.array([point.value for point in points])
    # A maximum at rho = +-1 may be out of reach: fits are then compared with the highest of them.
    top = min(top, values.max())
    return ConditionalFits(
        np.array([point.a for point in points]),
        np.maximum(top - values, 0.0),
        np.array(vectors),
        np.array(covariances),
    )


def _walk(rows, begin: Point, step: float, furthest: float, lowest: float) -> list[Point]:
    """Optima beyond `begin`, up to the first below `lowest` that lies beyond `furthest`, too."""
    path, here, sign = [], begin, np.sign(step)
    while abs(here.a) < LARGEST_ATANH_RHO:
        a = float(np.clip(here.a + step, -LARGEST_ATANH_RHO, LARGEST_ATANH_RHO))
        here = solve_at(rows, a, here.predict(a), gain_tolerance=SMALL_GAIN)
        path.append(here)
        if here.value < lowest and sign * (a - furthest) >= 0:
            break
        step *= STEP_GROWTH
        if abs(a) < LONG_STEPS_FROM:
            step = sign * min(abs(step), LARGEST_STEP)
    return path
