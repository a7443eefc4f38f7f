"""Cubic splines of one column, in a basis in which their roughness penalty is a ridge penalty."""

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline

DEGREE = 3
# More than a smooth curve needs, because the ridge penalty determines its smoothness.
INNER_KNOTS = 18


@dataclass(frozen=True)
class Spline:
    """The nonlinear part of a cubic spline: b(x) = (B(x) - B_0 - x B_1) T, columns (h,).

    knots : with the ends repeated; turn : (K, h) from B-splines to columns; line : (2, h), the
    straight lines that are subtracted, so that b is orthogonal to (1, x) over the points it was
    built from

    Outside the outer knots the spline is constant.
    """

    knots: np.ndarray
    turn: np.ndarray
    line: np.ndarray

    def columns(self, x: np.ndarray) -> np.ndarray:
        """(m, h)"""
        inside = np.clip(x, self.knots[0], self.knots[-1])
        design = BSpline.design_matrix(inside, self.knots, DEGREE).toarray()
        return design @ self.turn - np.column_stack([np.ones_like(inside), inside]) @ self.line


def spline_of(x: np.ndarray, inner_knots: int = INNER_KNOTS) -> Spline | None:
    r"""A basis whose ridge :math:`|\delta|^2` is the roughness :math:`\int (f'')^2`, up to scale.

    With the roughness matrix R'R, R = V diag(r) U', columns :math:`B U_+ r_+^{-1}` turn it into the
    identity. The two directions without roughness are straight lines, which the caller adds. R
    itself is decomposed, because R'R would lose digits if some knots are much closer together than
    others. Knots are quantiles of x. None for a column with fewer than five distinct values.
    """
    knots = spline_knots(np.unique(x), inner_knots)
    return None if knots is None else spline_on(knots, x)[0]


def spline_on(knots: np.ndarray, x: np.ndarray) -> tuple[Spline, np.ndarray]:
    """The spline on these knots, and its columns at x."""
    _, size, vectors = np.linalg.svd(_roughness_root(knots))
    bent = len(vectors) - 2
    # In row-major order, as in saved files, because the order affects rounding.
    turn = np.ascontiguousarray(vectors[:bent].T) / size[:bent]
    design = BSpline.design_matrix(x, knots, DEGREE).toarray()
    columns = design @ turn
    straight = np.column_stack([np.ones_like(x), x])
    line = np.linalg.lstsq(straight, columns, rcond=None)[0]
    unit = np.sqrt(np.mean((columns - straight @ line) ** 2) * turn.shape[1])
    spline = Spline(knots, turn / unit, line / unit)
    return spline, design @ spline.turn - straight @ spline.line


def spline_width(x: np.ndarray, inner_knots: int) -> int:
    """The number of columns of `spline_of`, 0 if it is None."""
    return width_on(spline_knots(np.unique(x), inner_knots))


def width_on(knots: np.ndarray | None) -> int:
    """The number of columns of a spline on these knots."""
    return 0 if knots is None else len(knots) - DEGREE - 1 - 2  # without the straight lines


def spline_knots(values: np.ndarray, inner_knots: int) -> np.ndarray | None:
    """Quantiles of the distinct values of a column, given in order, with its ends repeated."""
    if len(values) < 5:
        return None
    inner = np.unique(np.quantile(values, np.linspace(0, 1, inner_knots + 2)[1:-1]))
    ends = values[[0, -1]]
    return np.concatenate([np.repeat(ends[0], 4), inner, np.repeat(ends[1], 4)])


def _roughness_root(knots: np.ndarray) -> np.ndarray:
    """(nodes, K) R with R'R the integrals of B_i'' B_j''.

    B'' is linear between knots, so two nodes per interval are exact.
    """
    count = len(knots) - DEGREE - 1
    bends = BSpline(knots, np.eye(count), DEGREE).derivative(2)
    left, right = knots[DEGREE : -DEGREE - 1], knots[DEGREE + 1 : len(knots) - DEGREE]
    middle, half = 0.5 * (left + right), 0.5 * (right - left)
    nodes = (middle + half * node for node in (-1 / np.sqrt(3), 1 / np.sqrt(3)))
    return np.concatenate([np.sqrt(half)[:, None] * bends(at) for at in nodes])
