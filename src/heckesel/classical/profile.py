r"""Profile-likelihood intervals: all values that the likelihood ratio test does not reject.

At fixed a = atanh rho everything else is concave, so both intervals are built from conditional
optima at fixed a: that of rho directly, that of sigma as the widest over all a that the data allow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import chdtrc, chdtri

from heckesel.classical.covariance import inverse
from heckesel.classical.ml import (
    CLEARLY_BETTER,
    Point,
    Scan,
    at_zero,
    back_transform,
    estimates_at,
    evaluate,
    solve_at,
    standardised_hessian,
)
from heckesel.classical.rows import ALL_ROWS_UP_TO, SampleScale
from heckesel.errors import DataError
from heckesel.math.optimise import maximise, newton_step

# Where |rho| is one to six digits; a curve still above the threshold here never falls below.
LARGEST_ATANH_RHO = 8.0
ATANH_RHO, THETA = -1, -2  # positions in (gamma, delta, theta, a)
# Values of a at which the ends for sigma are tried before the best one is refined, in this share of
# the distance between two of them: the end hardly changes where it is outermost.
TRIED, REFINED = 13, 1e-3
CLOSE, ROUGH = 1e-8, 1e-3  # of the log-likelihood to its value at an end, found or tried


def atanh_rho_interval(
    sample, modes: tuple[Point, ...], level: float, run: Callable = map
) -> tuple[float, float]:
    """Smallest interval that holds every a with a profile log-likelihood of at least `level`.

    Each mode above the threshold is followed to both sides, so an interval may span the gap
    between two of them. A side that never falls off is infinite. run : a `map` over the ends.
    """
    sides = [(mode, sign) for mode in modes if mode.value >= level for sign in (-1, 1)]
    ends = list(run(partial(_end_of_rho, sample=sample, level=level), sides))
    return min(ends), max(ends)


def theta_interval(
    sample, modes: tuple[Point, ...], level: float, run: Callable = map
) -> tuple[float, float]:
    """The same for theta = 1/sigma: its smallest and largest value with some a above the level."""
    ends = atanh_rho_interval(sample, modes, level, run)
    low, high = np.clip(ends, -LARGEST_ATANH_RHO, LARGEST_ATANH_RHO)
    tried = np.unique([*np.linspace(low, high, TRIED), *np.clip([m.a for m in modes], low, high)])
    inward = partial(_inward, sample=sample, best=modes[0], level=level)
    rough = partial(inward, tolerance=ROUGH)
    values = np.reshape(list(run(rough, [(sign, a) for sign in (-1, 1) for a in tried])), (2, -1))
    sides = [(sign, tried, own) for sign, own in zip((-1, 1), values, strict=True)]
    smallest, largest = run(partial(_refined, inward=inward), sides)
    return smallest, largest


def _inward(at, *, sample, best: Point, level, tolerance=CLOSE) -> float:
    """The end of theta on one side at one a, so that the outermost is the smallest."""
    sign, a = at
    return -sign * _end_of_theta(sample, best, float(a), level, sign, tolerance)


def _refined(side, *, inward) -> float:
    """The outermost end of theta on one side over all a, refined around the best one tried."""
    sign, tried, values = side
    at = int(np.nanargmin(values))
    low, high = tried[max(at - 1, 0)], tried[min(at + 1, len(tried) - 1)]
    refined = minimize_scalar(
        lambda a: inward((sign, a)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": REFINED * (high - low)},
    )
    return float(-sign * np.fmin(inward((sign, tried[at])), refined.fun))


def _end_of_theta(sample, best: Point, a: float, level, sign, tolerance) -> float:
    """Where the log-likelihood at this a falls below `level`; NaN if it is below throughout."""
    here = solve_at(sample, a, best.v)
    if here.value < level:
        return np.nan
    start = np.append(here.v, a)
    kept = np.arange(len(start) - 2)
    step = _width(here.hessian[:-1, :-1], -1, here.value - level)
    return _crossing(sample, start, here.value, kept, THETA, level, sign, step, tolerance)


def _end_of_rho(side: tuple[Point, float], *, sample, level: float) -> float:
    mode, sign = side
    start, value = np.append(mode.v, mode.a), mode.value
    kept = np.arange(len(start) - 1)
    step = min(_width(mode.hessian, -1, mode.value - level), 0.5)
    if abs(mode.a) > LARGEST_ATANH_RHO:  # at the boundary: walk inward from the limit
        if sign * mode.a > 0:
            return sign * np.inf
        start, value = _conditional(sample, start, kept, ATANH_RHO, -sign * LARGEST_ATANH_RHO)
        if value < level:
            return -sign * LARGEST_ATANH_RHO
        step = 0.5
    return _crossing(sample, start, value, kept, ATANH_RHO, level, sign, step)


def _width(hessian, coordinate: int, drop: float) -> float:
    """sqrt(2 drop) standard deviations of the quadratic here, if it has one."""
    unit = np.zeros(len(hessian))
    unit[coordinate] = 1.0
    solved = newton_step(unit, hessian)
    if solved is None or not solved[coordinate] > 0:
        return 0.1
    return float(np.sqrt(2 * max(drop, 1e-6) * solved[coordinate]))


def _crossing(sample, start, height, kept, coordinate, level, sign, step, tolerance=CLOSE) -> float:
    """Walk outward from `start`, where the curve is at `height`, until it is below `level`, then
    close in. tolerance : in log-likelihood"""
    limit = LARGEST_ATANH_RHO if coordinate == ATANH_RHO else np.inf
    inside = start
    while True:
        target = inside[coordinate] + sign * step
        if coordinate == THETA and target <= 0:
            step *= 0.5
            continue
        if abs(target) > limit:
            return sign * np.inf
        outside, value = _conditional(sample, inside, kept, coordinate, target)
        if value < level:
            break
        inside, height, step = outside, value, 1.5 * step
    known = {inside[coordinate]: height - level, target: value - level}
    near = [inside]

    def above(at: float) -> float:
        if at not in known:
            near[0], reached = _conditional(sample, near[0], kept, coordinate, at)
            known[at] = reached - level
        return known[at]

    return brentq(above, inside[coordinate], target, xtol=tolerance * step / (height - value))


def _conditional(sample, start, kept, coordinate, target):
    """Best point over the `kept` coordinates with one at `target` and others as in `start`."""
    held = start.copy()
    held[coordinate] = target

    def objective(rest):
        full = held.copy()
        full[kept] = rest
        value, score, hessian = evaluate(sample, full)
        return value, score[kept], hessian[np.ix_(kept, kept)]

    found = maximise(objective, start[kept])
    held[kept] = found.point
    return held, found.value


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

    atanh_rho: np.ndarray
    drop: np.ndarray
    params: np.ndarray
    cov: np.ndarray

    def interval(self, values, variances, level: float) -> np.ndarray:
        """(m, 2) of m quantities with estimates `values` and `variances` (k, m) given rho."""
        if level > LARGEST_LEVEL:
            raise DataError(
                f"if rho is poorly identified, level must be at most {LARGEST_LEVEL:g}, got "
                f"{level!r}"
            )
        room = likelihood_ratio_value(level) - 2 * self.drop
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
        room = likelihood_ratio_value(level) - 2 * self.drop
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


def likelihood_ratio_value(level: float) -> float:
    """Critical value of the likelihood-ratio statistic for intervals of this level."""
    return MEAN_OF_STATISTIC * float(chdtri(1, 1 - level))


def highest(scan: Scan, selected: int) -> float:
    """The log-likelihood that others are compared with: that of the mode in use. If it is at rho =
    +-1, the lead that it needs to be used is subtracted, because this lead is no evidence against
    interior values."""
    used = scan.modes[selected]
    return used.value - (CLEARLY_BETTER if used.status == "boundary" else 0.0)


def conditional_fits(rows, scalings: SampleScale, scan: Scan, selected: int) -> ConditionalFits:
    """Fits of a linear or a binary outcome with rho held, in the order of a fit's parameters."""

    def in_user_units(point: Point) -> tuple[np.ndarray, np.ndarray]:
        if hasattr(rows, "given_rho"):  # a binary outcome
            return rows.given_rho(point, scalings)
        covariance, back = np.zeros_like(point.hessian), back_transform(scalings)
        covariance[:-1, :-1] = inverse(-standardised_hessian(point, rows.q)[:-1, :-1])
        return estimates_at(point, rows, scalings).vector, back @ covariance @ back.T

    top = highest(scan, selected)
    drop = 0.5 * likelihood_ratio_value(LARGEST_LEVEL)
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
