"""Newton's method for every linear likelihood."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

# Half the squared Newton decrement is the expected gain of the next step in log-likelihood. Below
# 1e-10 the estimates agree with the optimum to 1e-5 standard errors. The step computed for this
# check is taken, too, which squares the distance.
GAIN_TOLERANCE = 1e-10
MAX_ITERATIONS = 100
MAX_HALVINGS = 40
# A distance to the optimum of all rows, in standard deviations of a unit's parameters. By a part of
# 20,000 rows the second derivatives change over it by a share of 1e-9, less than a percent of that
# wrongly, and the estimates are exact.
CERTAIN_DISTANCE = 1e-7
MOST_ROUNDS = 6  # each is one pass over all rows; two or three are usually enough


@dataclass(frozen=True)
class Optimum:
    """Where the iteration stopped. status: `converged` or `max_iterations`."""

    point: np.ndarray
    value: float
    hessian: np.ndarray
    status: str


def maximise(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]],
    start: np.ndarray,
    *,
    gain_tolerance: float = GAIN_TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
    last_step: bool = True,
    step_of: Callable[[np.ndarray, np.ndarray], np.ndarray | None] | None = None,
) -> Optimum:
    """Maximum of a concave `objective`, which returns value, gradient and Hessian.

    A step that lowers the value, or leaves the region where it is finite, is halved. Without
    `last_step` the iteration stops where the promised gain is small and saves an evaluation.
    An objective that is not concave provides its own uphill step, `step_of(gradient, hessian)`.
    """
    point = np.asarray(start, dtype=float)
    value, gradient, hessian = objective(point)
    for _ in range(max_iterations):
        step = (step_of or newton_step)(gradient, hessian)
        if step is None:
            break
        gain = 0.5 * float(gradient @ step)
        if gain < gain_tolerance and not last_step:
            return Optimum(point, value, hessian, "converged")
        moved = _line_search(objective, point, value, step, gain)
        if moved is None:  # the remaining gain is below rounding
            status = "converged" if gain < 1e-6 * (1 + abs(value)) else "max_iterations"
            return Optimum(point, value, hessian, status)
        point, value, gradient, hessian = moved
        if gain < gain_tolerance:
            return Optimum(point, value, hessian, "converged")
    return Optimum(point, value, hessian, "max_iterations")


@dataclass(frozen=True)
class Nearby:
    """The log-likelihood of all rows near a point, by a part of them.

    It is `stretch` times that of the part plus a quadratic in the distance from `centre`, so that
    value, score and Hessian there are those of all rows; `missing` holds its coefficients. The
    error is of third order: by how much the part's third derivatives deviate from those of all.
    """

    of_part: Callable[[np.ndarray], tuple]
    stretch: float
    centre: np.ndarray
    missing: list

    def evaluate(self, point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        value, score, hessian = self.of_part(point)
        step, (height, slope, bend) = point - self.centre, self.missing
        bent = bend @ step
        return (
            self.stretch * value + height + float(slope @ step + 0.5 * step @ bent),
            self.stretch * score + slope + bent,
            self.stretch * hessian + bend,
        )


def nearby(centre: np.ndarray, parts: tuple, of_part, stretch: float) -> Nearby:
    """parts : value, score and Hessian of all rows at `centre`."""
    pairs = zip(parts, of_part(centre), strict=True)
    missing = [of_all - stretch * of_some for of_all, of_some in pairs]
    return Nearby(of_part, stretch, centre, missing)


def certified(objective, of_part, stretch: float, start, solve, mass: float):
    """(point, value, score, Hessian, whether it is the optimum) of all rows, close to the optimum
    of a part.

    Each round is one evaluation of all rows, from where the optimum is found by `Nearby`: that
    leaves the square of the distance, times the deviation of the part's third derivatives.

    solve : (Nearby, point) -> its optimum, or None; mass : the weights of all rows added up
    """
    point, parts = start, objective(start)
    for _ in range(MOST_ROUNDS):
        around = nearby(point, parts, of_part, stretch)
        ahead = solve(around, point, parts)
        if ahead is None:
            break
        step = ahead - point
        if 0 <= -step @ parts[2] @ step < CERTAIN_DISTANCE**2 * mass:
            return ahead, *around.evaluate(ahead), True
        moved = objective(ahead)
        if not moved[0] >= parts[0] - 1e-13 * abs(parts[0]):
            break
        point, parts = ahead, moved
    return point, *parts, False


def newton_step(gradient, hessian) -> np.ndarray | None:
    """-H^-1 g, or None where H is not negative definite."""
    curvature = -np.diagonal(hessian)
    if not (curvature > 0).all():
        return None
    scale = 1.0 / np.sqrt(curvature)
    _, step, failed = dposv(-hessian * scale * scale[:, None], gradient * scale)
    return None if failed or not np.isfinite(step).all() else step * scale


def _line_search(objective, point, value, step, gain):
    length = 1.0
    for _ in range(MAX_HALVINGS):
        trial = point + length * step
        result = objective(trial)
        # The value, a sum over n units, has a rounding error; an expected gain below it cannot be
        # checked and need not be.
        if result[0] >= value - 1e-13 * abs(value) - 1e-3 * gain * length:
            return trial, *result
        length *= 0.5
    return None
