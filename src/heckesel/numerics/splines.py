"""Cubic splines of one column, written so that their penalty is a plain ridge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline

DEGREE = 3
# Knots inside the range: far more than a smooth curve needs, since the ridge decides.
INNER_KNOTS = 18


@dataclass(frozen=True)
class Spline:
    """The wiggly part of a cubic spline: b(x) = (B(x) - B_0 - x B_1) T, columns (h,).

    knots : with the ends repeated; turn : (K, h) to the columns; line : (2, h), the straight line
    that is taken off, so that b is orthogonal to (1, x) over the points it was built from

    Beyond the outer knots the spline is continued by its value there.
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
    identity; the two directions without roughness are the straight lines, which are left to the
    caller. R itself is decomposed, since knots far from each other and close ones differ by more
    in R'R than rounding leaves. Knots are quantiles of x. None for a column with fewer than five
    values, where a curve has nothing to bend to.
    """
    knots = _knots(x, inner_knots)
    if knots is None:
        return None
    _, size, vectors = np.linalg.svd(_roughness_root(knots))
    bent = len(vectors) - 2
    # Row by row, as files hold it: products of either order round differently.
    turn = np.ascontiguousarray(vectors[:bent].T) / size[:bent]
    columns = BSpline.design_matrix(x, knots, DEGREE).toarray() @ turn
    straight = np.column_stack([np.ones_like(x), x])
    line = np.linalg.lstsq(straight, columns, rcond=None)[0]
    unit = np.sqrt(np.mean((columns - straight @ line) ** 2) * turn.shape[1])
    return Spline(knots, turn / unit, line / unit)


def spline_width(x: np.ndarray, inner_knots: int) -> int:
    """How many columns `spline_of` has, 0 for none."""
    knots = _knots(x, inner_knots)
    return 0 if knots is None else len(knots) - DEGREE - 1 - 2  # straight lines are left out


def _knots(x: np.ndarray, inner_knots: int) -> np.ndarray | None:
    values = np.unique(x)
    if len(values) < 5:
        return None
    inner = np.unique(np.quantile(values, np.linspace(0, 1, inner_knots + 2)[1:-1]))
    ends = values[[0, -1]]
    return np.concatenate([np.repeat(ends[0], 4), inner, np.repeat(ends[1], 4)])


def _roughness_root(knots: np.ndarray) -> np.ndarray:
    """(nodes, K) R with R'R the integrals of B_i'' B_j''; B'' is linear between knots, so two
    nodes do."""
    count = len(knots) - DEGREE - 1
    bends = BSpline(knots, np.eye(count), DEGREE).derivative(2)
    left, right = knots[DEGREE : -DEGREE - 1], knots[DEGREE + 1 : len(knots) - DEGREE]
    middle, half = 0.5 * (left + right), 0.5 * (right - left)
    nodes = (middle + half * node for node in (-1 / np.sqrt(3), 1 / np.sqrt(3)))
    return np.concatenate([np.sqrt(half)[:, None] * bends(at) for at in nodes])
