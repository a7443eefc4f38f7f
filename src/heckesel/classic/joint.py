r"""Joint maximum likelihood in Olsen's coordinates.

With theta = 1/sigma and delta = beta/sigma the residual e = theta y - x'delta is linear in the
parameters, so at fixed a = atanh rho the log-likelihood is concave in v = (gamma, delta, theta):
one maximum for each rho, and a curve over rho that shows every mode (see `profile`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from heckesel.classic.blocks import sum_over_blocks
from heckesel.classic.newton import maximise, newton_step
from heckesel.classic.probit import maximise_probit
from heckesel.classic.standardise import Scaling, scaling_of
from heckesel.data import SelectionData
from heckesel.likelihoods.normal import selected_units, unselected_units

POLISH_ITERATIONS = 60
FEWEST_KEPT = 2000
LARGEST_THETA = 1e12  # sigma a trillionth of the spread of y: further out squares overflow
POLISH_GAIN = 1e-12  # in log-likelihood; the step computed at this point is still taken


@dataclass(frozen=True)
class Sample:
    """Standardised rows, selected apart from unselected.

    w_selected : (n1, q), residual_columns : (n1, p + 1) = [-x, y], w_unselected : (n0, q)
    """

    w_selected: np.ndarray
    residual_columns: np.ndarray
    weight_selected: np.ndarray
    w_unselected: np.ndarray
    weight_unselected: np.ndarray

    @property
    def q(self) -> int:
        return self.w_selected.shape[1]

    @property
    def p(self) -> int:
        return self.residual_columns.shape[1] - 1

    @property
    def n(self) -> int:
        return len(self.w_selected) + len(self.w_unselected)

    def subsample(self, rows: int, seed: int) -> Sample:
        """About `rows` units drawn without replacement, but of each kind at least FEWEST_KEPT;
        weights make up for a kind that is kept more often than the other."""
        rng = np.random.default_rng(seed)
        share = rows / self.n
        chosen, factors = [], []
        for part in (self.w_selected, self.w_unselected):
            kept = max(round(share * len(part)), min(len(part), FEWEST_KEPT))
            chosen.append(np.sort(rng.permutation(len(part))[:kept]))
            factors.append(share * len(part) / kept)
        some, others = chosen
        return Sample(
            self.w_selected[some],
            self.residual_columns[some],
            self.weight_selected[some] * factors[0],
            self.w_unselected[others],
            self.weight_unselected[others] * factors[1],
        )


@dataclass(frozen=True)
class Scalings:
    """How the columns of a `Sample` were standardised."""

    w: Scaling
    x: Scaling
    y_centre: float
    y_scale: float


def standardised_sample(data: SelectionData) -> tuple[Sample, Scalings]:
    """x over the selected (the rows it is needed on), w over all, y over the selected."""
    s = data.s
    y, weight = data.y[s], data.weight
    w_scaling, x_scaling = scaling_of(data.w), scaling_of(data.x[s])
    y_centre = float(y.mean()) if x_scaling.constant is not None else 0.0
    y_scale = float(np.sqrt(np.mean((y - y_centre) ** 2))) or 1.0
    residual_columns = np.empty((len(y), data.x.shape[1] + 1))
    np.compress(s, data.x, axis=0, out=residual_columns[:, :-1])
    residual_columns[:, :-1] -= x_scaling.centre
    residual_columns[:, :-1] /= -x_scaling.scale
    residual_columns[:, -1] = (y - y_centre) / y_scale
    w_selected, w_unselected = data.w[s], data.w[~s]
    for part in (w_selected, w_unselected):
        part -= w_scaling.centre
        part /= w_scaling.scale
    sample = Sample(w_selected, residual_columns, weight[s], w_unselected, weight[~s])
    return sample, Scalings(w_scaling, x_scaling, y_centre, y_scale)


def evaluate(sample: Sample, point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-likelihood, score and Hessian in (gamma, delta, theta, a), summed over row blocks."""
    q, size = sample.q, sample.q + sample.p + 2
    gamma, residual_weights, a = point[:q], point[q:-1], point[-1]
    theta = point[-2]
    value, score, hessian = 0.0, np.zeros(size), np.zeros((size, size))
    if not 0 < theta < LARGEST_THETA:
        return -np.inf, score, hessian
    mass_selected = sample.weight_selected.sum()
    value += mass_selected * np.log(theta)
    score[-2] += mass_selected / theta
    hessian[-2, -2] -= mass_selected / theta**2
    parts = sum_over_blocks(
        lambda block: _selected_block(
            sample.w_selected[block],
            sample.residual_columns[block],
            sample.weight_selected[block],
            (gamma, residual_weights, a),
        ),
        len(sample.w_selected),
    )
    value, score, hessian = value + parts[0], score + parts[1], hessian + parts[2]
    if len(sample.w_unselected):
        parts = sum_over_blocks(
            lambda block: _unselected_block(
                sample.w_unselected[block], sample.weight_unselected[block], gamma
            ),
            len(sample.w_unselected),
        )
        value += parts[0]
        score[:q] += parts[1]
        hessian[:q, :q] += parts[2]
    lower = np.tril_indices(size, -1)
    hessian[lower] = hessian.T[lower]
    return float(value), score, hessian


def _selected_block(w, r, mass, parameters) -> tuple:
    """Value, score and the upper triangle of the Hessian of a block of selected units."""
    gamma, residual_weights, a = parameters
    q, last = w.shape[1], w.shape[1] + r.shape[1]
    units = selected_units(w @ gamma, r @ residual_weights, a)
    score, hessian = np.empty(last + 1), np.zeros((last + 1, last + 1))
    score[:q] = w.T @ (mass * units.d_index)
    score[q:last] = r.T @ (mass * units.d_e)
    score[last] = mass @ units.d_a
    weighted = np.empty((len(w), last))
    np.multiply(w, (mass * units.d_index_index)[:, None], out=weighted[:, :q])
    np.multiply(r, (mass * units.d_index_e)[:, None], out=weighted[:, q:])
    hessian[:q, :last] = w.T @ weighted
    hessian[q:last, q:last] = r.T @ (r * (mass * units.d_e_e)[:, None])
    hessian[:q, last] = w.T @ (mass * units.d_index_a)
    hessian[q:last, last] = r.T @ (mass * units.d_e_a)
    hessian[last, last] = mass @ units.d_a_a
    return mass @ units.value, score, hessian


def _unselected_block(w, mass, gamma) -> tuple:
    units = unselected_units(w @ gamma)
    score = w.T @ (mass * units.d_index)
    return mass @ units.value, score, w.T @ (w * (mass * units.d_index_index)[:, None])


@dataclass(frozen=True)
class Point:
    """A place on the likelihood surface: v = (gamma, delta, theta) and a, with derivatives."""

    v: np.ndarray
    a: float
    value: float
    score: np.ndarray
    hessian: np.ndarray
    status: str = "converged"
    iterations: int = 0

    @property
    def log_df(self) -> None:
        """Normal errors have no degrees of freedom."""
        return None

    @property
    def slope(self) -> float:
        """d/da of the profile log-likelihood, when v is optimal at this a."""
        return float(self.score[-1])

    @property
    def curvature(self) -> float:
        """Second derivative of the profile log-likelihood in a."""
        step = newton_step(self.hessian[:-1, -1], self.hessian[:-1, :-1])
        if step is None:
            return float("nan")
        return float(self.hessian[-1, -1] + self.hessian[-1, :-1] @ step)

    def predict(self, a: float) -> np.ndarray:
        """v at a nearby a, to first order along the path of conditional optima."""
        tangent = newton_step(self.hessian[:-1, -1], self.hessian[:-1, :-1])
        if tangent is None:
            return self.v
        moved = self.v + (a - self.a) * tangent
        return moved if moved[-1] > 0.2 * self.v[-1] else self.v


def at_zero(sample: Sample) -> np.ndarray:
    """The conditional optimum at rho = 0, where the model is a probit and least squares."""
    signed = np.concatenate([sample.w_selected, -sample.w_unselected])
    mass = np.concatenate([sample.weight_selected, sample.weight_unselected])
    gamma = maximise_probit(signed, mass, np.zeros(sample.q)).point
    root = np.sqrt(sample.weight_selected)[:, None]
    x, y = -sample.residual_columns[:, :-1] * root, sample.residual_columns[:, -1:] * root
    beta = np.linalg.lstsq(x, y, rcond=None)[0][:, 0]
    sigma = np.sqrt(np.sum((y[:, 0] - x @ beta) ** 2) / sample.weight_selected.sum())
    # an outcome that x explains exactly has sigma 0; any finite start will do for Newton
    theta = 1.0 / max(sigma, 1e-8)
    return np.concatenate([gamma, beta * theta, [theta]])


def solve_at(
    sample: Sample, a: float, start: np.ndarray, *, gain_tolerance=1e-10, last_step=True
) -> Point:
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
    return Point(found.point, a, found.value, score, hessian, found.status, found.iterations)


def polish(sample: Sample, start: Point, *, low=-np.inf, high=np.inf) -> Point:
    """The mode near `start` by joint Newton steps inside (low, high).

    Where the surface is not concave or the step leaves the bracket, one conditional fit at
    fixed a shows the sign of the profile slope, and the bracket shrinks (or, while a side is
    still open, the search moves uphill by growing steps).
    """
    here = replace(start, status="max_iterations")
    reach = 0.1
    for iteration in range(POLISH_ITERATIONS):
        step = newton_step(here.score, here.hessian)
        gain = 0.5 * float(here.score @ step) if step is not None else np.inf
        trial = _try_step(sample, here, step, gain, low, high)
        if trial is not None:
            here = trial
            if gain < POLISH_GAIN:
                return replace(here, status="converged", iterations=iteration + 1)
            continue
        if step is not None and gain < 1e-9 * (1 + abs(here.value)):
            return replace(here, status="converged", iterations=iteration + 1)
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
            return Point(target[:-1], float(target[-1]), value, score, hessian, here.status)
    return None
