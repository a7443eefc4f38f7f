"""Profile-likelihood intervals: all values the likelihood cannot reject."""

from __future__ import annotations

import numpy as np

from heckesel.classic.joint import Point, Sample, evaluate
from heckesel.classic.newton import maximise, newton_step

# Where |rho| is one to six digits; a curve still above the threshold here never falls below.
LARGEST_ATANH_RHO = 8.0
ATANH_RHO, THETA = -1, -2  # positions in (gamma, delta, theta, a)


def profile_interval(sample: Sample, modes: tuple[Point, ...], coordinate: int, drop: float):
    """Smallest interval that holds every value with profile log-likelihood >= best - drop.

    Each mode above the threshold is followed to both sides, so an interval may span the gap
    between two of them. A side that never falls off is infinite.
    """
    level = modes[0].value - drop
    starts = [mode for mode in modes if mode.value >= level]
    ends = [_crossing(sample, mode, coordinate, level, sign) for mode in starts for sign in (-1, 1)]
    return min(ends), max(ends)


def _crossing(sample, mode: Point, coordinate: int, level: float, sign: float) -> float:
    """Walk outward in steps of the curve's own width until it is below `level`, then close in."""
    point = np.append(mode.v, mode.a)
    size = len(point)
    kept = np.delete(np.arange(size), coordinate % size)
    limit = LARGEST_ATANH_RHO if coordinate == ATANH_RHO else np.inf
    inside, step = point, _first_step(mode, coordinate, mode.value - level)
    if abs(point[coordinate]) > limit:  # a mode at the boundary: walk inward from the limit
        if sign * point[coordinate] > 0:
            return sign * np.inf
        inside, value = _conditional(sample, point, kept, coordinate, -sign * limit)
        if value < level:
            return -sign * limit
        step = 0.5
    while True:
        target = inside[coordinate] + sign * step
        if coordinate == THETA and target <= 0:
            step *= 0.5
            continue
        if abs(target) > limit:
            return sign * np.inf
        outside, value = _conditional(sample, inside, kept, coordinate, target)
        if value < level:
            return _close_in(sample, inside, outside, kept, coordinate, level)
        inside, step = outside, 1.5 * step


def _first_step(mode: Point, coordinate: int, drop: float) -> float:
    """sqrt(2 drop) standard deviations of the quadratic at the mode, if it has one."""
    unit = np.zeros(len(mode.score))
    unit[coordinate] = 1.0
    solved = newton_step(unit, mode.hessian)
    if solved is None or not solved[coordinate] > 0:
        return 0.1
    width = np.sqrt(2 * max(drop, 1e-6) * solved[coordinate])
    return float(min(width, 0.5) if coordinate == ATANH_RHO else width)


def _conditional(sample, start, kept, coordinate, target):
    """Best point with one coordinate held at `target`, and its log-likelihood."""

    def objective(rest):
        full = np.empty(len(start))
        full[kept], full[coordinate] = rest, target
        value, score, hessian = evaluate(sample, full)
        return value, score[kept], hessian[np.ix_(kept, kept)]

    found = maximise(objective, start[kept])
    point = np.empty(len(start))
    point[kept], point[coordinate] = found.point, target
    return point, found.value


def _close_in(sample, inside, outside, kept, coordinate, level) -> float:
    """Regula falsi on the signed root of the drop, which is nearly linear; bisection guards it."""
    low, high = inside[coordinate], outside[coordinate]
    _, f_low = _conditional(sample, inside, kept, coordinate, low)
    _, f_high = _conditional(sample, outside, kept, coordinate, high)
    f_low, f_high = f_low - level, f_high - level
    start = inside
    for count in range(100):
        share = f_low / (f_low - f_high) if count % 3 else 0.5
        middle = low + share * (high - low)
        start, value = _conditional(sample, start, kept, coordinate, middle)
        if abs(value - level) < 1e-9 or abs(high - low) < 1e-10 * (1 + abs(middle)):
            break
        if value >= level:
            low, f_low = middle, value - level
        else:
            high, f_high = middle, value - level
    return float(middle)
