r"""Joint maximum likelihood in Olsen's coordinates.

With theta = 1/sigma and delta = beta/sigma the residual e = theta y - x'delta is linear in the
parameters, so at fixed a = atanh rho the log-likelihood is concave in v = (gamma, delta, theta):
one maximum for each rho, and a curve over rho that shows every mode (see `profile`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from scipy.linalg import block_diag

from heckesel.classical.likelihood import ErrorModel, selected_units
from heckesel.classical.probit import maximise_probit, probit_terms
from heckesel.classical.rows import (
    Rows,
    Sample,
    SampleScale,
    standardised_sample,
    weighted_products,
)
from heckesel.data import SelectionData
from heckesel.math.optimise import Nearby, certified, maximise, newton_step
from heckesel.math.special import LOG_2PI

POLISH_ITERATIONS = 60
LARGEST_THETA = 1e12  # sigma is 1e-12 of the sd of y; beyond, squares overflow
# In log-likelihood, a distance of 1e-4 standard errors. The step computed at this point is still
# taken, which squares the distance.
POLISH_GAIN = 1e-9
# A step of 1e-8 standard errors, on which standard errors themselves change by 1e-10 at most.
CERTAIN_GAIN = 1e-16


def evaluate(rows, point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-likelihood, score and Hessian in (gamma, delta, theta, a), summed over row blocks.

    Rows of another model that is concave in v at fixed a have their own `evaluate(point)`, in
    (v, a), and `at_zero()`, v at a = 0: the search below serves them, too.
    """
    if hasattr(rows, "evaluate"):
        return rows.evaluate(point)
    size, theta = len(point), point[-2]
    if not 0 < theta < LARGEST_THETA:
        return -np.inf, np.zeros(size), np.zeros((size, size))
    value, score, hessian = rows.sum(partial(_block_terms, point=point))
    mass = rows.mass_selected
    score[-2] += mass / theta
    hessian[-2, -2] -= mass / theta**2
    return float(value + mass * (np.log(theta) - 0.5 * LOG_2PI)), score, hessian


def _block_terms(block: Sample, *, point) -> tuple:
    """Value, score and Hessian of a block, without what depends on theta alone."""
    q, size = block.q, len(point)
    value, score, hessian = 0.0, np.zeros(size), np.zeros((size, size))
    if len(block.w_selected):
        value, score, hessian = _selected_terms(block, point)
    if len(block.w_unselected):
        parts = probit_terms(block.w_unselected, block.weight_unselected, point[:q], -1.0)
        value += parts[0]
        score[:q] += parts[1]
        hessian[:q, :q] += parts[2]
    return value, score, hessian


def _selected_terms(block: Sample, point) -> tuple:
    """Those of selected units, the sums over `SelectedUnits`' derivatives.

    In v the Hessian is -sum delta z z' with z = (C w, S r), less sum r r', which never changes.
    """
    w, own, mass, q = block.w_selected, block.own_columns, block.weight_selected, block.q
    expand = block.expand
    by_e = expand[:, q:] @ point[q:-1]
    units = selected_units(w @ point[:q], w @ by_e[:q] + own @ by_e[q:], point[-1])
    mills, delta = mass * units.mills, mass * units.delta
    bend, pull = delta * units.slope, mass * units.e
    gram, sums = weighted_products(delta, w, own, [mills, bend, pull])
    by_mills, by_bend, by_pull = sums @ expand  # over the rows of [w, r]
    factor = np.repeat([units.cosh, units.sinh], [q, block.p + 1])
    swapped = np.repeat([units.sinh, units.cosh], [q, block.p + 1])
    score, hessian = np.empty(len(point)), np.empty((len(point), len(point)))
    score[:-1] = factor * by_mills
    score[q:-1] -= by_pull[q:]
    score[-1] = mills @ units.slope
    hessian[:-1, :-1] = -np.outer(factor, factor) * (expand.T @ gram @ expand)
    hessian[q:-1, q:-1] -= block.residual_gram
    hessian[-1, :-1] = swapped * by_mills - factor * by_bend
    hessian[:-1, -1] = hessian[-1, :-1]
    hessian[-1, -1] = mills @ units.argument - bend @ units.slope
    return mass @ units.log_cdf - 0.5 * (pull @ units.e), score, hessian


@dataclass(frozen=True)
class Point:
    """A point on the likelihood surface: v = (gamma, delta, theta) and a = atanh rho, with
    derivatives in (v, *scale, a, *extra).

    scale, extra : of t and shape errors or a sigma that varies, see `forms`
    """

    v: np.ndarray
    a: float
    value: float
    score: np.ndarray
    hessian: np.ndarray
    status: str = "converged"
    last_is_scale: bool = True  # theta, the last of v, must stay positive
    scale: np.ndarray = field(default_factory=lambda: np.empty(0))
    extra: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def coordinates(self) -> np.ndarray:
        return np.concatenate([self.v, self.scale, [self.a], self.extra])

    @property
    def slope(self) -> float:
        """d/da of the profile log-likelihood, when v is optimal at this a."""
        return float(self.score[-1])

    @cached_property
    def _tangent(self) -> np.ndarray | None:
        return newton_step(self.hessian[:-1, -1], self.hessian[:-1, :-1])

    @property
    def tangent(self) -> np.ndarray:
        """dv/da along the path of conditional optima; zero where the surface is not concave."""
        return np.zeros_like(self.v) if self._tangent is None else self._tangent

    @property
    def curvature(self) -> float:
        """Second derivative of the profile log-likelihood in a."""
        if self._tangent is None:
            return float("nan")
        return float(self.hessian[-1, -1] + self.hessian[-1, :-1] @ self._tangent)

    def predict(self, a: float) -> np.ndarray:
        """v at a nearby a, to first order along the path of conditional optima."""
        return self.within_reach(self.v + (a - self.a) * self.tangent)

    def step_ahead(self) -> Point | None:
        """The point after Newton's step in v on the local quadratic, with the same Hessian."""
        step = newton_step(self.score[:-1], self.hessian[:-1, :-1])
        if step is None:
            return None
        gain = 0.5 * float(self.score[:-1] @ step)
        score = self.score + self.hessian[:, :-1] @ step
        return replace(self, v=self.v + step, value=self.value + gain, score=score)

    def within_reach(self, moved: np.ndarray) -> np.ndarray:
        """The predicted v for a nearby a, or the present v if the predicted theta is too small."""
        if self.last_is_scale and moved[-1] <= 0.2 * self.v[-1]:
            return self.v
        return moved


def point_at(rows, v: np.ndarray, a: float) -> Point:
    """The point at v and a, which need not be an optimum."""
    is_olsen = not hasattr(rows, "evaluate")
    return Point(v, a, *evaluate(rows, np.append(v, a)), last_is_scale=is_olsen)


def at_zero(sample) -> np.ndarray:
    """The conditional optimum at rho = 0, where the model is a probit and least squares."""
    if hasattr(sample, "at_zero"):
        return sample.at_zero()
    gamma = maximise_probit(sample).point
    root = np.sqrt(sample.weight_selected)[:, None]
    x, y = -sample.residual_columns[:, :-1] * root, sample.residual_columns[:, -1:] * root
    beta = np.linalg.lstsq(x, y, rcond=None)[0][:, 0]
    sigma = np.sqrt(np.sum((y[:, 0] - x @ beta) ** 2) / sample.mass_selected)
    # an outcome that x explains exactly has sigma 0; Newton's method needs a finite start
    theta = 1.0 / max(sigma, 1e-8)
    return np.concatenate([gamma, beta * theta, [theta]])


def solve_at(sample, a: float, start: np.ndarray, *, gain_tolerance=1e-10, last_step=True) -> Point:
    """The one maximum in v at this a."""
    cache = {}

    def objective(v):
        value, score, hessian = evaluate(sample, np.append(v, a))
        cache["last"] = (v, score, hessian)
        return value, score[:-1], hessian[:-1, :-1]

    found = maximise(objective, start, gain_tolerance=gain_tolerance, last_step=last_step)
    v, score, hessian = cache["last"]
    if v is not found.point:
        _, score, hessian = evaluate(sample, np.append(found.point, a))
    return Point(
        found.point,
        a,
        found.value,
        score,
        hessian,
        found.status,
        last_is_scale=not hasattr(sample, "evaluate"),
    )


def polish(sample, start: Point, *, low=-np.inf, high=np.inf, last_step=True) -> Point:
    """The mode near `start` by joint Newton steps inside (low, high). Without `last_step` a step
    that gains less than `CERTAIN_GAIN` is taken without an evaluation where it leads.

    Where the surface is not concave or the step leaves the bracket, one conditional fit at
    fixed a shows the sign of the profile slope, and the bracket shrinks (or, while a side is
    still open, the search moves uphill by growing steps).
    """
    here = replace(start, status="max_iterations")
    reach = 0.1
    for _ in range(POLISH_ITERATIONS):
        step = newton_step(here.score, here.hessian)
        gain = 0.5 * float(here.score @ step) if step is not None else np.inf
        if gain < CERTAIN_GAIN and not last_step:
            assert step is not None
            v, a = here.v + step[:-1], here.a + float(step[-1])
            return replace(here, v=v, a=a, value=here.value + gain, status="converged")
        trial = _try_step(sample, here, step, gain, low, high)
        if trial is not None:
            here = trial
            if gain < POLISH_GAIN:
                return replace(here, status="converged")
            continue
        if step is not None and gain < 1e-9 * (1 + abs(here.value)):
            return replace(here, status="converged")
        fixed = solve_at(sample, here.a, here.v)
        low, high = (here.a, high) if fixed.slope > 0 else (low, here.a)
        if np.isfinite(low) and np.isfinite(high):
            a = 0.5 * (low + high)
        else:
            a, reach = here.a + np.copysign(reach, fixed.slope), 2 * reach
        here = replace(solve_at(sample, a, fixed.predict(a)), status="max_iterations")
    return here


def _try_step(sample, here: Point, step, gain, low, high) -> Point | None:
    if step is None or not low < here.a + step[-1] < high or abs(step[-1]) > 1.0:
        return None
    for length in (1.0, 0.5, 0.25):
        target = np.append(here.v, here.a) + length * step
        value, score, hessian = evaluate(sample, target)
        if value >= here.value - 1e-13 * abs(here.value) - 1e-3 * gain * length:
            return replace(
                here, v=target[:-1], a=float(target[-1]), value=value, score=score, hessian=hessian
            )
    return None


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


NEAR_BOUNDARY = 0.99


@dataclass(frozen=True)
class Estimates:
    """status: `converged`, `boundary` (no interior optimum) or `max_iterations`.

    scale : (k,) of log sigma(x) = log_sigma + z'scale; extra : log df, or skewness and log tail
    """

    beta: np.ndarray
    gamma: np.ndarray
    log_sigma: float
    atanh_rho: float
    loglik: float
    status: str
    scale: tuple[float, ...] = ()
    extra: tuple[float, ...] = ()

    @property
    def sigma(self) -> float:
        return float(np.exp(self.log_sigma))

    @property
    def rho(self) -> float:
        return float(np.tanh(self.atanh_rho))

    @property
    def vector(self) -> np.ndarray:
        """As a fit lists its parameters."""
        ancillary = [self.atanh_rho, self.log_sigma]
        return np.concatenate([self.beta, self.gamma, ancillary, self.extra, self.scale])


def estimates_at(point: Point, rows: Rows, scalings: SampleScale) -> Estimates:
    """Undo Olsen's coordinates, then the standardisation."""
    q = rows.q
    sigma = 1.0 / point.v[-1]
    beta = scalings.y_scale * scalings.x.back @ (point.v[q:-1] * sigma)
    if scalings.x.constant is not None:
        beta[scalings.x.constant] += scalings.y_centre / scalings.x.scale[scalings.x.constant]
    log_sigma, scale = float(np.log(sigma * scalings.y_scale)), point.scale
    if scalings.scale is not None:
        scale = scale / scalings.scale.scale
        log_sigma -= float(scalings.scale.centre @ scale)
    return Estimates(
        beta=beta,
        gamma=scalings.w.back @ point.v[:q],
        log_sigma=log_sigma,
        atanh_rho=point.a,
        loglik=point.value - rows.mass_selected * np.log(scalings.y_scale),
        status=point.status,
        scale=tuple(map(float, scale)),
        extra=tuple(map(float, point.extra)),
    )


def standardised_hessian(point: Point, q: int) -> np.ndarray:
    """Hessian in standardised (beta, gamma, log sigma, ...) at an optimum.

    delta = theta beta and theta = exp(-log sigma); the score is zero here, so only first
    derivatives of the map enter.
    """
    p, theta = len(point.v) - 1 - q, point.v[-1]
    size = len(point.hessian)
    jacobian = np.zeros((size, size))  # rows gamma, delta, theta, a, ...
    jacobian[:q, p : p + q] = np.eye(q)
    jacobian[q : q + p, :p] = theta * np.eye(p)
    jacobian[q : q + p, p + q] = -point.v[q:-1]
    jacobian[p + q, p + q] = -theta
    jacobian[p + q + 1 :, p + q + 1 :] = np.eye(size - p - q - 1)
    return jacobian.T @ point.hessian @ jacobian


def listed(equations: int, k: int, size: int) -> np.ndarray:
    """Positions in (beta, gamma, log sigma, *scale, atanh rho, *extra) of the parameters in the
    order of `Estimates.vector`; equations : coefficients of both equations"""
    at = np.arange(size)
    log_sigma, scale, rho, extra = np.split(at[equations:], [1, 1 + k, 2 + k])
    return np.concatenate([at[:equations], rho, log_sigma, extra, scale])


def back_transform(scalings: SampleScale, shared: int = 1) -> np.ndarray:
    """Matrix that maps standardised parameters, and so their covariance, to the user's units, in
    the order of `Estimates.vector`."""
    log_sigma = np.eye(1)
    if scalings.scale is not None:
        per_unit = 1.0 / scalings.scale.scale
        log_sigma = np.diag(np.append(1.0, per_unit))
        log_sigma[0, 1:] = -scalings.scale.centre * per_unit
    x, w = scalings.y_scale * scalings.x.back, scalings.w.back
    matrix = block_diag(x, w, log_sigma, np.eye(shared))
    return matrix[listed(len(x) + len(w), len(log_sigma) - 1, len(matrix))]


def unit_scores(sample: Sample, *, form: ErrorModel, point: Point) -> np.ndarray:
    """(n, size) score of each unit in standardised (beta, gamma, log sigma, *scale, atanh rho,
    *extra), not weighted; selected units first."""
    p, q, k, n1 = sample.p, sample.q, sample.k, len(sample.w_selected)
    gamma, shrink = point.v[:q], point.v[-1]
    e = sample.residual_columns @ point.v[q:]
    if sample.scale_columns is not None:
        factor = np.exp(-sample.scale_columns @ point.scale)
        e, shrink = e * factor, shrink * factor
    d_index, d_e, *shared = form.selected(
        sample.w_selected @ gamma, e, point.a, *point.extra
    ).gradient
    scores, last = np.zeros((sample.n, p + q + 1 + k + form.size)), p + q + 1 + k
    scores[:n1, :p] = sample.residual_columns[:, :p] * (shrink * d_e)[:, None]
    scores[:n1, p : p + q] = sample.w_selected * d_index[:, None]
    scores[:n1, p + q] = -d_e * e - 1.0
    if sample.scale_columns is not None:
        scores[:n1, p + q + 1 : last] = -sample.scale_columns * (d_e * e + 1.0)[:, None]
    scores[:n1, last:] = np.transpose(shared)
    d_index, *shared = form.unselected(sample.w_unselected @ gamma, point.a, *point.extra).gradient
    scores[n1:, p : p + q] = sample.w_unselected * d_index[:, None]
    scores[n1:, last:] = np.transpose(shared)
    return scores


def estimates_over_rho(data: SelectionData, rho: np.ndarray) -> list[Estimates]:
    """Maximum likelihood with rho held at each value (j,), which are in ascending order.

    From rho = 0 outwards on both sides; each optimum is the start of the next.
    """
    sample, scalings = standardised_sample(data)
    found: dict[int, Estimates] = {}
    up, down = np.flatnonzero(rho >= 0), np.flatnonzero(rho < 0)[::-1]
    centre = solve_at(sample, 0.0, at_zero(sample))
    for side in (up, down):
        here = centre
        for position in side:
            a = float(np.arctanh(rho[position]))
            here = solve_at(sample, a, here.predict(a))
            found[int(position)] = estimates_at(here, sample, scalings)
    return [found[position] for position in range(len(rho))]
