"""Functions of x that could replace an instrument: curves, products of two columns, and steps."""

from itertools import combinations

import numpy as np

from heckesel.math.splines import spline_knots, spline_on, width_on

SMOOTH_KNOTS = (6, 4, 2, 1)  # interior knots; the first that rows and columns allow is used
ROWS_PER_COLUMN = 20  # selected rows needed for each column of the smooth outcome
MOST_COLUMNS = 40  # of the smooth outcome: the cost grows with their square
STEPS, STEP_ROWS = 4, 200  # steps in x that could replace instruments, if there are STEP_ROWS rows


def smooth_columns(x: np.ndarray) -> np.ndarray:
    """x and cubic splines of its columns, with as many knots as rows and columns allow."""
    distinct = [np.unique(column) for column in x.T]
    for count in SMOOTH_KNOTS:
        knots = [spline_knots(values, count) for values in distinct]
        width = x.shape[1] + sum(map(width_on, knots))
        if width <= min(len(x) / ROWS_PER_COLUMN, MOST_COLUMNS):
            pairs = zip(knots, x.T, strict=True)
            curves = [spline_on(on, column)[1] for on, column in pairs if on is not None]
            return np.column_stack([x, *curves])
    return x


def with_products(columns: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The columns, and the products of all pairs of x as far as rows allow."""
    pairs = list(combinations(range(x.shape[1]), 2))
    if columns.shape[1] + len(pairs) > min(len(x) / ROWS_PER_COLUMN, MOST_COLUMNS):
        return columns
    centred = x - x.mean(axis=0)
    return np.column_stack([columns, *(centred[:, i] * centred[:, j] for i, j in pairs)])


def with_steps(columns: np.ndarray, x: np.ndarray, values, weight) -> np.ndarray:
    """The columns, a few steps of single columns of x, and the products of these steps. Each step
    is the one that explains most of the residual of `values` on the columns before it."""
    steps: list[np.ndarray] = []
    if len(x) >= STEP_ROWS:
        orders = [np.argsort(column, kind="stable") for column in x.T]
        for _ in range(STEPS):
            left = residual(np.column_stack([columns, *steps]), values, weight)
            found = [_best_step(*one, left, weight) for one in zip(x.T, orders, strict=True)]
            _, column, cut = max(found, key=lambda step: step[0])
            steps.append((column > cut).astype(float))
    products = [a * b for a, b in combinations(steps, 2)]
    return np.column_stack([columns, *steps, *products])


def _best_step(column: np.ndarray, order, left, weight) -> tuple[float, np.ndarray, float]:
    """The reduction of the sum of squares by the best split of a column, the column, and the value
    at which it is split; order : the one that sorts the column."""
    ordered, below = column[order], np.cumsum((weight * left)[order])[:-1]
    mass = np.cumsum(weight[order])
    gain = below**2 * (1 / mass[:-1] + 1 / (mass[-1] - mass[:-1]))  # all residuals add up to 0
    gain[ordered[1:] == ordered[:-1]] = -1.0  # equal values cannot be split
    best = int(gain.argmax())
    return float(gain[best]), column, float(ordered[best])


def residual(columns, values, weight) -> np.ndarray:
    """(n,) of a weighted regression on a constant and the columns."""
    root, design = np.sqrt(weight), np.column_stack([np.ones(len(values)), columns])
    return values - design @ np.linalg.lstsq(root[:, None] * design, root * values, rcond=None)[0]


def unexplained_share(columns, values, weight) -> float:
    """1 - R2 of a weighted regression on a constant and the columns."""
    centred = values - np.average(values, weights=weight)
    total = float(weight @ centred**2)
    return float(weight @ residual(columns, centred, weight) ** 2) / total if total else 0.0
