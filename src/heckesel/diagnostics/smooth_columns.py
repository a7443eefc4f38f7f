"""What functions of x could stand for an instrument: curves, products of two columns, and steps."""

from itertools import combinations

import numpy as np

from heckesel.numerics.splines import spline_of, spline_width

SMOOTH_KNOTS = (6, 4, 2, 1)  # interior knots; the first that rows and columns allow is used
ROWS_PER_COLUMN = 20  # selected rows needed for each column of the smooth outcome
MOST_COLUMNS = 40  # of the smooth outcome: the cost grows with their square
STEPS, STEP_ROWS = 4, 200  # steps in x that could stand for the instruments, from so many rows


def smooth_columns(x: np.ndarray) -> np.ndarray:
    """x and cubic splines of its columns, with as many knots as rows and columns allow."""
    for knots in SMOOTH_KNOTS:
        width = x.shape[1] + sum(spline_width(column, knots) for column in x.T)
        if width <= min(len(x) / ROWS_PER_COLUMN, MOST_COLUMNS):
            splines = [(spline_of(column, knots), column) for column in x.T]
            return np.column_stack(
                [x, *(b.columns(column) for b, column in splines if b is not None)]
            )
    return x


def with_products(columns: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The columns, and the products of all pairs of x as far as rows allow."""
    pairs = list(combinations(range(x.shape[1]), 2))
    if columns.shape[1] + len(pairs) > min(len(x) / ROWS_PER_COLUMN, MOST_COLUMNS):
        return columns
    centred = x - x.mean(axis=0)
    return np.column_stack([columns, *(centred[:, i] * centred[:, j] for i, j in pairs)])


def with_steps(columns: np.ndarray, x: np.ndarray, values, weight) -> np.ndarray:
    """The columns, and a few steps of single columns of x, each where it explains the most of what
    the columns before it leave of `values`; then the products of these steps."""
    steps: list[np.ndarray] = []
    for _ in range(STEPS if len(x) >= STEP_ROWS else 0):
        left = residual(np.column_stack([columns, *steps]), values, weight)
        found = max((_best_step(column, left, weight) for column in x.T), key=lambda f: f[0])
        steps.append(found[1])
    products = [a * b for a, b in combinations(steps, 2)]
    return np.column_stack([columns, *steps, *products])


def _best_step(column: np.ndarray, left, weight) -> tuple[float, np.ndarray]:
    """By how much the best split of a column lowers the sum of squares, and which rows lie above
    it."""
    order = np.argsort(column, kind="stable")
    ordered, below = column[order], np.cumsum((weight * left)[order])[:-1]
    mass = np.cumsum(weight[order])
    gain = below**2 * (1 / mass[:-1] + 1 / (mass[-1] - mass[:-1]))  # all residuals add up to 0
    gain[ordered[1:] == ordered[:-1]] = -1.0  # equal values cannot be split
    best = int(gain.argmax())
    return float(gain[best]), (column > ordered[best]).astype(float)


def residual(columns, values, weight) -> np.ndarray:
    """(n,) of a weighted regression on a constant and the columns."""
    root, design = np.sqrt(weight), np.column_stack([np.ones(len(values)), columns])
    return values - design @ np.linalg.lstsq(root[:, None] * design, root * values, rcond=None)[0]


def unexplained_share(columns, values, weight) -> float:
    """1 - R2 of a weighted regression on a constant and the columns."""
    centred = values - np.average(values, weights=weight)
    total = float(weight @ centred**2)
    return float(weight @ residual(columns, centred, weight) ** 2) / total if total else 0.0
