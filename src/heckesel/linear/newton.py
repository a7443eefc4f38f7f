"""Newton's method for every linear likelihood."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

# Half the squared Newton decrement is the gain in log-likelihood the next step still
# promises; below 1e-10 the estimates agree with the optimum to 1e-5 standard errors, and the
# step that was computed to find this out is taken too, which squares the distance.
GAIN_TOLERANCE = 1e-10
MAX_ITERATIONS = 100
MAX_HALVINGS = 40


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
    An objective that is not concave brings its own uphill step, `step_of(gradient, hessian)`.
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
        if moved is None:  # rounding hides what is left to gain
            status = "converged" if gain < 1e-6 * (1 + abs(value)) else "max_iterations"
            return Optimum(point, value, hessian, status)
        point, value, gradient, hessian = moved
        if gain < gain_tolerance:
            return Optimum(point, value, hessian, "converged")
    return Optimum(point, value, hessian, "max_iterations")


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
        # Rounding of a sum over n units makes the value waver; a promised gain below that
        # waver cannot be checked and need not be.
        if result[0] >= value - 1e-13 * abs(value) - 1e-3 * gain * length:
            return trial, *result
        length *= 0.5
    return None
