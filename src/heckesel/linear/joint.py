r"""Joint maximum likelihood in Olsen's coordinates.

With theta = 1/sigma and delta = beta/sigma the residual e = theta y - x'delta is linear in the
parameters, so at fixed a = atanh rho the log-likelihood is concave in v = (gamma, delta, theta):
one maximum for each rho, and a curve over rho that shows every mode (see `profile`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from heckesel.likelihoods.normal import selected_units
from heckesel.linear.newton import maximise, newton_step
from heckesel.linear.probit import maximise_probit, probit_terms
from heckesel.linear.sample.sample import Sample, weighted_products
from heckesel.numerics.normal import LOG_2PI

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
    """A point on the likelihood surface: v = (gamma, delta, theta) and a, with derivatives."""

    v: np.ndarray
    a: float
    value: float
    score: np.ndarray
    hessian: np.ndarray
    status: str = "converged"
    last_is_scale: bool = True  # theta, the last of v, must stay positive

    @property
    def scale(self) -> np.ndarray:
        """sigma is constant."""
        return np.empty(0)

    @property
    def shared(self) -> np.ndarray:
        """Normal errors have no parameters besides rho and sigma."""
        return np.array([self.a])

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
