"""Profile-likelihood intervals: all values that the likelihood ratio test does not reject.

At fixed a = atanh rho everything else is concave, so both intervals are built from conditional
optima at fixed a: that of rho directly, that of sigma as the widest over all a that the data allow.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar

from heckesel.linear.joint import Point, evaluate, solve_at
from heckesel.linear.newton import maximise, newton_step

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
    close in."""
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
            above, below = height - level, value - level
            ends = (inside, above), (outside, below)
            return _close_in(sample, *ends, kept, coordinate, level, tolerance)
        inside, height, step = outside, value, 1.5 * step


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


def _close_in(sample, inside, outside, kept, coordinate, level, tolerance) -> float:
    """Regula falsi on value - level, given with both points; every third step halves, which guards
    it."""
    (start, f_low), (end, f_high) = inside, outside
    low, high = start[coordinate], end[coordinate]
    for count in range(100):
        share = f_low / (f_low - f_high) if count % 3 else 0.5
        middle = low + share * (high - low)
        start, value = _conditional(sample, start, kept, coordinate, middle)
        if abs(value - level) < tolerance or abs(high - low) < 1e-10 * (1 + abs(middle)):
            break
        if value >= level:
            low, f_low = middle, value - level
        else:
            high, f_high = middle, value - level
    return float(middle)
