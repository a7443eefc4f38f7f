"""The profile likelihood over rho, which shows every mode; no random starts are needed.

At each a = atanh rho on a grid the other parameters have one optimum, and there the slope of the
profile curve is the plain derivative in a. A slope that turns from + to - between two grid points
encloses a mode; a slope that still points outward at the last one is a maximum at rho = +-1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from heckesel.linear.joint import Point, at_zero, evaluate, polish, solve_at
from heckesel.linear.newton import Nearby, certified
from heckesel.linear.sample.sample import Sample

STEPS_OUT = np.concatenate(
    [
        [0.15, 0.3, 0.5, 0.7, 0.9, 1.15, 1.4, 1.7, 2.0, 2.3],
        [2.65, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 6.5, 7.0],
    ]
)
# |rho| = 1 - 1.7e-6 at the last step. A slope that is still outward there is followed to the last
# of these; beyond it the curvature across |rho| = 1 outgrows double precision.
BOUNDARY_STEPS = np.array([8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0])
# A binary outcome's curve is flat before that: beyond FLAT_FROM (|rho| = .9993) a maximum that is
# this little curved, a standard error of a thousand for a, is the limit of the curve and no peak.
FLAT_FROM, FLAT_CURVATURE = 4.0, 1e-6
ROUNDING = 1e-12  # of a log-likelihood, as a share of it
# Gain in log-likelihood that Newton's next step may promise where it is not computed: its error is
# a small part of that, at most all. Far below the top of the curve this share of the distance is
# allowed, and SOME_GAIN at most.
LITTLE_GAIN, SHARE_OF_DROP, SOME_GAIN = 2e-3, 0.01, 1.0
SETTLES_FROM = 4.5  # |a|
# A maximum at rho = +-1 must exceed an interior one by this much to be used in its place. With
# normal errors the interior one is the consistent root, and the boundary beats it by chance.
CLEARLY_BETTER = 4.0
CLOSE_CALL = 50.0  # a boundary this far below the best mode need not be followed to its end


@dataclass(frozen=True)
class Scan:
    """Conditional optima over the grid, ordered by a, and the modes found, best first.

    rows : of the curve; stretch : how many times as heavy all rows are, on which modes are found
    """

    points: tuple[Point, ...]
    modes: tuple[Point, ...]
    rows: int
    stretch: float = 1.0

    @property
    def atanh_rho(self) -> np.ndarray:
        return np.array([point.a for point in self.points])

    @property
    def loglik(self) -> np.ndarray:
        return np.array([point.value for point in self.points])


def selected_mode(modes: Sequence, unit: float = 1.0) -> int:
    """Which of the modes, best first, to use: the best, unless it lies at rho = +-1 and does not
    exceed an interior one by CLEARLY_BETTER. unit : makes weights count rows."""
    best = modes[0]
    if best.status == "boundary" and abs(best.a) > FLAT_FROM:
        for position, mode in enumerate(modes):
            ended = mode.status == "boundary" and abs(mode.a) <= FLAT_FROM  # a df, say, not rho
            behind = unit * (best.value - mode.value)
            if behind <= CLEARLY_BETTER and (mode.status == "converged" or ended):
                return position
    return 0


def scan(rows, *, far_ends: bool = True) -> Scan:
    """Profile curve and modes; of a long table the curve is that of a part (`Rows.part`) and
    each mode is polished on all rows.

    rows : `Rows`, or others with n, mass, part and a likelihood, see `joint.evaluate`
    far_ends : whether a maximum at rho = +-1 that is CLOSE_CALL behind the best is followed to
    where it is; else it is listed at the end of the grid
    """
    some = rows.part()
    coarse = _scan_all(some, far_ends, getattr(rows, "run", map))
    if some.n == rows.n:
        return coarse
    best, *others = coarse.modes
    modes = [_on_all_rows(rows, some, best)]
    for mode in others:
        behind = best.value - mode.value
        if mode.status == "boundary" and behind > CLOSE_CALL:
            # further behind still on all rows, where reaching it would take hundreds of passes
            modes.append(replace(mode, value=modes[0].value - behind * rows.mass / some.mass))
        else:
            modes.append(_on_all_rows(rows, some, mode))
    return Scan(coarse.points, _distinct(modes), some.n, rows.mass / some.mass)


def _scan_all(sample: Sample, far_ends: bool = True, run: Callable = map) -> Scan:
    """run : a `map` over machines for the two walks from rho = 0, one to each side."""
    centre = _for_sign(sample, 0.0, at_zero(sample))
    nearest = float(STEPS_OUT[0])
    first = _for_sign(sample, nearest, centre.predict(nearest), centre.value)
    # a side starts from two points: the other side's first and the centre will do
    sides = [([centre, first], STEPS_OUT[1:]), ([first, centre], -STEPS_OUT)]
    up, down = run(partial(_walk, sample), sides)
    points = _refine(sample, [*reversed(down), centre, first, *up])
    modes = [
        polish(sample, min(pair, key=lambda point: abs(point.slope)), low=pair[0].a, high=pair[1].a)
        for pair in zip(points[:-1], points[1:], strict=True)
        if pair[0].slope > 0 >= pair[1].slope
    ]
    best = max(point.value for point in points)
    for before, end in (points[1::-1], points[-2:]):
        if end.a * end.slope <= 0:
            if _flat_at_the_top(end, best, modes):
                modes.append(replace(end, status="boundary"))
            continue
        if far_ends or end.value > best - CLOSE_CALL:
            modes.append(_follow_out(sample, before, end))
        else:
            modes.append(replace(end, status="boundary"))
    return Scan(tuple(points), _distinct(modes), sample.n)


def _flat_at_the_top(end: Point, best: float, modes: list[Point]) -> bool:
    """Whether the curve is highest at its end and so flat there that rounding decides on the sign
    of the slope."""
    known = any(mode.a * end.a > 0 and abs(mode.a) > FLAT_FROM for mode in modes)
    highest = end.value >= best - ROUNDING * abs(best)
    return highest and not known and abs(end.curvature) < FLAT_CURVATURE


def _for_sign(sample, a: float, start, top: float = -np.inf) -> Point:
    """The conditional optimum at a, as exactly as its height and the sign of its slope demand.

    Where Newton's step promises a gain g the optimum lies at a distance d with d'(-H_vv)d = 2g,
    and the slope there differs by at most sqrt(2g k), k = H_av (-H_vv)^-1 H_va. The step's own
    correction of v, value and slope is taken without a new evaluation if it errs by little, and
    if the slope's sign would stand although all of sqrt(2g k), and g, were wrong twice over.

    top : the highest value found so far
    """
    for gain_tolerance in (SOME_GAIN, LITTLE_GAIN):
        rough = solve_at(sample, a, start, gain_tolerance=gain_tolerance, last_step=False)
        ahead = rough.step_ahead()
        if ahead is None:
            break
        gain = ahead.value - rough.value
        k = max(rough.curvature - rough.hessian[-1, -1], 0.0)
        allowed = max(LITTLE_GAIN, SHARE_OF_DROP * (top - ahead.value))
        if gain <= allowed and abs(ahead.slope) > 2 * np.sqrt(2 * gain * k) + 4 * gain:
            return ahead
        start = rough.within_reach(ahead.v)
    return solve_at(sample, a, start)


def _walk(sample, side: tuple[list[Point], np.ndarray]) -> list[Point]:
    """Optima at the stops of one side, found from two that lie before them."""
    begin, stops = side
    path = list(begin)
    for a in stops:
        top = max(point.value for point in path)
        path.append(_for_sign(sample, float(a), _ahead(path[-2], path[-1], float(a)), top))
    return path[len(begin) :]


def _ahead(before: Point, here: Point, a: float) -> np.ndarray:
    """v at the next a: the cubic in exp(-|a|) through the last two optima and their tangents,
    which mostly leaves little to gain there, or the tangent where the two disagree. Far
    out, and away from a maximum at the boundary, v settles like exp(-2|a|), as 1 - rho^2 does."""
    outward = np.sign(a)
    if abs(here.a) >= SETTLES_FROM and outward * here.slope < 0:
        return here.predict(here.a - outward * np.expm1(-2 * abs(a - here.a)) / 2)
    # t = 1 - exp(-|a|) with its zero and unit at the last optimum
    t, t_before = (-np.expm1(-outward * (at - here.a)) for at in (a, before.a))
    straight = t * outward * here.tangent
    curved = _cubic_step(before, here, t, t_before, outward)
    if np.linalg.norm(curved - straight) > np.linalg.norm(straight):
        return here.within_reach(here.v + straight)
    return here.within_reach(here.v + curved)


def _cubic_step(before: Point, here: Point, t, t_before, outward) -> np.ndarray:
    """From `here`, at 0, to t by the cubic that leaves from `before`, at t_before."""
    width, share = -t_before, 1 - t / t_before
    return (
        (2 * share**3 - 3 * share**2 + 1) * (before.v - here.v)
        + (share**3 - 2 * share**2 + share) * width * outward / (1 - t_before) * before.tangent
        + (share**3 - share**2) * width * outward * here.tangent
    )


def _refine(sample, points: list[Point]) -> list[Point]:
    """Add the midpoint wherever the cubic through two neighbours turns although their slopes
    agree in sign: a pair of extrema may hide between them."""
    refined, top = [points[0]], max(point.value for point in points)
    for left, right in zip(points[:-1], points[1:], strict=True):
        if left.slope * right.slope > 0 and _cubic_turns(left, right):
            middle = 0.5 * (left.a + right.a)
            refined.append(_for_sign(sample, middle, left.predict(middle), top))
        refined.append(right)
    return refined


def _cubic_turns(left: Point, right: Point) -> bool:
    width = right.a - left.a
    rise = (right.value - left.value) / width
    # slope of the Hermite cubic at t in (0, 1) is c0 + c1 t + c2 t^2
    c0 = left.slope
    c1 = 2 * (3 * rise - 2 * left.slope - right.slope)
    c2 = 3 * (left.slope + right.slope - 2 * rise)
    turn = -c1 / (2 * c2) if c2 else -1.0
    return 0 < turn < 1 and (c0 + 0.5 * c1 * turn) * c0 < 0


def _follow_out(sample, before: Point, end: Point) -> Point:
    """To the boundary, unless the slope turns inward on the way."""
    here, sign = end, float(np.sign(end.a))
    for a in sign * BOUNDARY_STEPS:
        ahead = solve_at(sample, float(a), _ahead(before, here, float(a)))
        if sign * ahead.slope <= 0:
            low, high = sorted((here.a, ahead.a))
            return polish(sample, here, low=low, high=high)
        before, here = here, ahead
    return replace(here, status="boundary")


def _on_all_rows(rows, part, mode: Point) -> Point:
    if mode.status == "boundary":
        fixed = solve_at(rows, mode.a, mode.v)
        if fixed.slope * mode.a > 0:
            return replace(fixed, status="boundary")
        return polish(rows, fixed, last_step=False)
    of_all, of_part = partial(evaluate, rows), partial(evaluate, part)
    start, stretch = np.append(mode.v, mode.a), rows.mass / part.mass
    *found, certain = certified(of_all, of_part, stretch, start, _polished, rows.mass)
    point, value, score, hessian = found
    v, a = point[:-1], float(point[-1])
    here = replace(mode, v=v, a=a, value=value, score=score, hessian=hessian)
    return here if certain else polish(rows, here, last_step=False)


def _polished(around: Nearby, point: np.ndarray, parts: tuple) -> np.ndarray | None:
    found = polish(around, Point(point[:-1], float(point[-1]), *parts))
    return np.append(found.v, found.a) if found.status == "converged" else None


def _distinct(modes: list[Point]) -> tuple[Point, ...]:
    """Best first; two searches that ended at the same rho are one mode."""
    kept: list[Point] = []
    for mode in sorted(modes, key=lambda point: -point.value):
        if all(abs(mode.a - other.a) > 1e-4 for other in kept):
            flat = abs(mode.a) > FLAT_FROM and abs(mode.curvature) < FLAT_CURVATURE
            kept.append(replace(mode, status="boundary") if flat else mode)
    return tuple(kept)
