r"""The likelihood of a `Form` in Olsen's coordinates, and its maxima along the dependence.

A point is (gamma, delta, theta, *scale, *shared), theta = 1/sigma and delta = beta/sigma as in
`joint`. Where sigma varies, log sigma(x) = -log theta + z'scale and e = exp(-z'scale)(theta y -
x'delta), z the standardised `scale_columns`; where it does not, there is no `scale`.

The problem is concave at fixed dependence and scale only for normal errors. A step therefore uses
the absolute curvature where it has the wrong sign, and the path over the dependence may miss modes.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from heckesel.linear.forms.error_models import Form
from heckesel.linear.joint import LARGEST_THETA
from heckesel.linear.newton import maximise, newton_step
from heckesel.linear.sample.sample import Rows, Sample
from heckesel.numerics.jet import Jet

# At the stops of the walk an error of .01 in the log-likelihood does not matter. Ten steps are
# enough except at the outermost stops, which are far below the maximum.
ROUGH: dict = {"gain_tolerance": 1e-2, "last_step": False, "max_iterations": 10}
LONGEST_SHARED_STEP = 1.0
LEAST_CURVATURE = 1e-6  # relative to the curvature on the diagonal
SAME_MODE = 1e-3
SCALE_END = 8.0  # of a standardised coefficient of log sigma(x): beyond, some rows have sigma 0
AT_AN_END = 1e-4  # a shared parameter closer to its end than this is at the end


@dataclass(frozen=True)
class FormPoint:
    """v = (gamma, delta, theta), the scale and the shared parameters, with derivatives in all."""

    v: np.ndarray
    scale: np.ndarray
    shared: np.ndarray
    value: float
    score: np.ndarray
    hessian: np.ndarray
    status: str

    @property
    def a(self) -> float:
        """The dependence."""
        return float(self.shared[0])

    @property
    def coordinates(self) -> np.ndarray:
        return np.concatenate([self.v, self.scale, self.shared])


def evaluate_form(form: Form, rows: Rows, point) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-likelihood, score and Hessian in (gamma, delta, theta, *scale, *shared)."""
    at = rows.q + rows.p  # where theta is
    size, theta = at + 1 + rows.k + form.size, point[at]
    if not (0 < theta < LARGEST_THETA and _inside(form, rows, point)):
        return -np.inf, np.zeros(size), np.zeros((size, size))
    value, score, hessian = rows.sum(partial(_block_terms, form=form, point=point))
    mass = rows.mass_selected
    score[at] += mass / theta
    hessian[at, at] -= mass / theta**2
    return float(value + mass * np.log(theta)), score, hessian


def _block_terms(block: Sample, *, form: Form, point) -> tuple:
    """Value, score and Hessian of a block, without what depends on theta alone."""
    q, k, size = block.q, block.k, len(point)
    value, score, hessian = 0.0, np.zeros(size), np.zeros((size, size))
    if len(block.w_selected):
        units, columns = selected_jets(form, block, point)
        value, score, hessian = weighted_sums(units, columns, block.weight_selected)
    if len(block.w_unselected):
        w, last = block.w_unselected, q + block.p + 1
        units = form.unselected(w @ point[:q], *point[last + k :])
        parts = weighted_sums(units, (w,), block.weight_unselected)
        at = np.r_[:q, last + k : size]
        value += parts[0]
        score[at] += parts[1]
        hessian[np.ix_(at, at)] += parts[2]
    return value, score, hessian


def selected_jets(form: Form, block: Sample, point) -> tuple[Jet, tuple[np.ndarray, ...]]:
    """Log-likelihoods of the selected units less log theta, and the columns of their arguments."""
    q, last = block.q, block.q + block.p + 1
    w, r, shared = block.w_selected, block.residual_columns, point[last + block.k :]
    if block.scale_columns is None:
        return form.selected(w @ point[:q], r @ point[q:last], *shared), (w, r)
    z = block.scale_columns
    log_scale = z @ point[last : last + block.k]
    r = r * np.exp(-log_scale)[:, None]
    e = r @ point[q:last]
    return with_log_scale(form.selected(w @ point[:q], e, *shared), e, log_scale), (w, r, z)


def unit_logliks(form: Form, sample: Sample, point) -> np.ndarray:
    """(n,) log-likelihood of each unit, the selected first, not weighted."""
    q, last = sample.q, sample.q + sample.p + 1
    inside = selected_jets(form, sample, point)[0].value + np.log(point[last - 1])
    shared = point[last + sample.k :]
    return np.append(inside, form.unselected(sample.w_unselected @ point[:q], *shared).value)


def with_log_scale(units: Jet, e, log_scale) -> Jet:
    r"""Jets in (index, e, \*shared) as jets in (index, e, m, \*shared), m = log sigma.

    The slope of e in m is -e, and the density of y loses m:

    .. math:: \ell_m = -(e\,\ell_e + 1),\quad \ell_{em} = -(e\,\ell_{ee} + \ell_e),\quad
              \ell_{mm} = e\,(e\,\ell_{ee} + \ell_e)
    """
    size = len(units.gradient)
    at = np.r_[:2, 2, 2:size]  # the third is overwritten
    gradient, hessian = units.gradient[at], units.hessian[at][:, at]
    row = -e * hessian[1]
    row[1] -= units.gradient[1]
    row[2] = -e * row[1]
    gradient[2] = -(e * units.gradient[1] + 1.0)
    hessian[2], hessian[:, 2] = row, row
    return Jet(units.value - log_scale, gradient, hessian)


def _bounded(form: Form, sample: Rows, point) -> tuple[np.ndarray, np.ndarray]:
    """How far the scale and shared parameters are from their lower (<= 0) and upper ends."""
    first = len(point) - form.size
    scale, (low, high) = point[first - sample.k : first], form.room(point[first:])
    return np.append(-SCALE_END - scale, low), np.append(SCALE_END - scale, high)


def _inside(form: Form, sample: Rows, point) -> bool:
    low, high = _bounded(form, sample, point)
    return bool((low < AT_AN_END).all() and (high > -AT_AN_END).all())


def weighted_sums(units, columns, mass):
    """Weighted value, score and Hessian of a block, given its jets and their columns."""
    own = len(columns)
    sizes = [part.shape[1] for part in columns]
    shared = len(units.gradient) - own
    total = sum(sizes) + shared
    starts = np.cumsum([0, *sizes])
    score, hessian = np.empty(total), np.empty((total, total))
    gradient, bend = units.gradient * mass, units.hessian * mass
    for i, part in enumerate(columns):
        here = slice(starts[i], starts[i + 1])
        score[here] = part.T @ gradient[i]
        for j in range(i, own):
            there = slice(starts[j], starts[j + 1])
            hessian[here, there] = part.T @ (columns[j] * bend[i, j][:, None])
            hessian[there, here] = hessian[here, there].T
        hessian[here, starts[-1] :] = part.T @ bend[i, own:].T
        hessian[starts[-1] :, here] = hessian[here, starts[-1] :].T
    score[starts[-1] :] = gradient[own:].sum(axis=1)
    hessian[starts[-1] :, starts[-1] :] = bend[own:, own:].sum(axis=2)
    return float(mass @ units.value), score, hessian


def ascent_step(gradient, hessian) -> np.ndarray:
    """Newton's step, or where the surface is not concave one along |curvature|."""
    step = newton_step(gradient, hessian)
    if step is None:
        scale = np.sqrt(np.abs(np.diag(hessian)) + np.finfo(float).tiny)
        values, vectors = np.linalg.eigh(hessian / np.outer(scale, scale))
        curvature = np.maximum(np.abs(values), LEAST_CURVATURE)
        step = vectors @ ((vectors.T @ (gradient / scale)) / curvature) / scale
    return step


def bounded_step(gradient, hessian, low, high) -> np.ndarray:
    """`ascent_step` that stays inside: low <= 0 <= high is the room of each coordinate.

    A coordinate that is at its end and would leave the range is fixed; the others step without it.
    """
    moves = np.ones(len(gradient), bool)
    while True:
        step = np.zeros(len(gradient))
        step[moves] = ascent_step(gradient[moves], hessian[np.ix_(moves, moves)])
        room = np.where(step > 0, high, -low)
        blocked = (step != 0) & (room <= 0)
        if not blocked.any():
            break
        moves &= ~blocked
    moving = step != 0
    return step * np.min(room[moving] / np.abs(step[moving]), initial=1.0)


def _room(form: Form, sample: Rows, full, free) -> tuple[np.ndarray, np.ndarray]:
    """How far each free coordinate may move down and up at once."""
    low, high = np.full(len(full), -np.inf), np.full(len(full), np.inf)
    first = len(full) - form.size - sample.k
    down, up = _bounded(form, sample, full)
    low[first:] = np.where(down > -AT_AN_END, 0.0, np.maximum(down, -LONGEST_SHARED_STEP))
    high[first:] = np.where(up < AT_AN_END, 0.0, np.minimum(up, LONGEST_SHARED_STEP))
    return low[free], high[free]


def climb(form: Form, sample: Rows, start, *, fixed=None, held=(), rough=False) -> FormPoint:
    """The maximum reached uphill from `start`. The dependence is held at `fixed` if that is given,
    and the coordinates at the positions `held` do not change."""
    last = sample.q + sample.p + 1
    at = last + sample.k  # where the dependence is
    start = np.array(start, dtype=float)
    if fixed is not None:
        start[at], held = fixed, [*held, at]
    free = np.delete(np.arange(len(start)), held)
    seen: dict = {}

    def objective(part):
        full = start.copy()
        full[free] = part
        value, score, hessian = evaluate_form(form, sample, full)
        seen["last"] = full, score, hessian
        return value, score[free], hessian[np.ix_(free, free)]

    def step(gradient, hessian):  # called at the point that was evaluated last
        return bounded_step(gradient, hessian, *_room(form, sample, seen["last"][0], free))

    found = maximise(objective, start[free], step_of=step, **(ROUGH if rough else {}))
    full, score, hessian = seen["last"]
    if not np.array_equal(full[free], found.point):
        full = start.copy()
        full[free] = found.point
        _, score, hessian = evaluate_form(form, sample, full)
    return FormPoint(
        full[:last], full[last:at], full[at:], found.value, score, hessian, found.status
    )


def walk(form: Form, sample: Rows, start: np.ndarray, stops) -> list[FormPoint]:
    """Rough optima at each stop of the dependence, each started on the tangent at the last one."""
    path: list[FormPoint] = []
    for stop in stops:
        here = _ahead(form, sample, path[-1], float(stop)) if path else start
        path.append(climb(form, sample, here, fixed=float(stop), rough=True))
    return path


def _ahead(form: Form, sample: Rows, point: FormPoint, dependence: float) -> np.ndarray:
    """The next point on the path of conditional optima, to first order, if it is near."""
    theta, full = len(point.v) - 1, point.coordinates
    at = theta + 1 + sample.k
    free = np.delete(np.arange(len(full)), at)
    tangent = newton_step(point.hessian[free, at], point.hessian[np.ix_(free, free)])
    if tangent is None:
        return full
    moved = full.copy()
    moved[free] += (dependence - point.a) * tangent
    others = np.abs(moved - full)[np.r_[theta + 1 : at, at + 1 : len(full)]]
    near = moved[theta] > 0.5 * full[theta] and others.max(initial=0) < 1
    return moved if near and _inside(form, sample, moved) else full


def peaks(path: list[FormPoint]) -> list[FormPoint]:
    """Points of a path ordered by dependence that neither neighbour exceeds."""
    values = np.array([-np.inf, *(point.value for point in path), -np.inf])
    top = (values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:])
    return [point for point, is_top in zip(path, top, strict=True) if is_top]


def polish(form: Form, sample: Rows, start: FormPoint) -> FormPoint:
    """The mode near `start`. status: `boundary` if it lies at an end of a shared parameter,
    `converged` at an interior maximum, `max_iterations` otherwise."""
    found = climb(form, sample, start.coordinates)
    if found.status == "converged" and at_an_end(form, sample, found).any():
        return replace(found, status="boundary")
    if found.status == "converged" and newton_step(found.score, found.hessian) is None:
        return replace(found, status="max_iterations")  # a saddle
    return found


def at_an_end(form: Form, sample: Rows, point: FormPoint) -> np.ndarray:
    """Which of the scale and shared parameters are at an end of their range."""
    low, high = _bounded(form, sample, point.coordinates)
    return (low > -AT_AN_END) | (high < AT_AN_END)


def distinct(modes: list[FormPoint]) -> tuple[FormPoint, ...]:
    """Best first; two climbs that ended at the same dependence are one mode."""
    kept: list[FormPoint] = []
    for mode in sorted(modes, key=lambda point: -point.value):
        if all(abs(mode.a - other.a) > SAME_MODE for other in kept):
            kept.append(mode)
    return tuple(kept)
