"""Columns of splines as part of an ONNX graph."""

import numpy as np

from heckesel.math.splines import DEGREE, Spline


def spline_columns(graph, basis, x: str) -> str:
    """(1, m, h), as `SplineBasis.columns` at x (m, p)."""
    own = [graph.call("Gather", x, np.array([j]), axis=1) for j in range(len(basis.curves))]
    pairs = zip(basis.curves, own, strict=True)
    wiggles = [_wiggles(graph, curve, column) for curve, column in pairs if curve]
    small: dict[int, tuple[str, int]] = {}
    for i, j, *splines in basis.surfaces:
        for at, spline in zip((i, j), splines, strict=True):
            small[at] = small.get(at) or _with_wiggles(graph, spline, own[at])
    surfaces = [_products(graph, small[i], small[j]) for i, j, *_ in basis.surfaces]
    straight = graph.call("Pad", x, np.array([0, 1, 0, 0]), np.float32(1))  # a constant first
    blocks = graph.call("Concat", straight, *wiggles, *surfaces, axis=1)
    return graph.call("Unsqueeze", blocks, np.array([0]))


def _with_wiggles(graph, spline: Spline | None, x: str) -> tuple[str, int]:
    """(m, h) of x (m, 1) and its wiggles, and h."""
    if spline is None:
        return x, 1
    return graph.call("Concat", x, _wiggles(graph, spline, x), axis=1), 1 + spline.turn.shape[1]


def _products(graph, one: tuple[str, int], other: tuple[str, int]) -> str:
    """(m, h) of every column of one with every column of the other."""
    (left, rows), (right, columns) = one, other
    left, right = (
        graph.call("Unsqueeze", value, np.array([axis])) for value, axis in ((left, 2), (right, 1))
    )
    return graph.call(
        "Reshape", graph.call("Mul", left, right), np.array([-1, rows * columns], dtype=np.int64)
    )


def _wiggles(graph, spline: Spline, x: str) -> str:
    r"""(m, h) as `Spline.columns` at x (m, 1), with the line inside the coefficients.

    B-splines add up to one, and weighted by the means :math:`g` of the knots inside each of them
    to x (Marsden), so that :math:`B T - \ell_0 - x \ell_1 = B (T - \ell_0 - g \ell_1)`: no large
    numbers cancel in single precision.
    """
    knots = spline.knots.astype(np.float32).astype(float)  # as rounded in the graph
    inside = np.lib.stride_tricks.sliding_window_view(knots[1:-1], DEGREE).mean(axis=1)
    turn = spline.turn - spline.line[0] - inside[:, None] * spline.line[1]
    x = graph.call("Clip", x, np.float32(knots[0]), np.float32(knots[-1]))
    return graph.call("MatMul", _b_splines(graph, knots, x), turn)


def _b_splines(graph, knots: np.ndarray, x: str) -> str:
    r"""(m, K) by the recursion of Cox and de Boor, x (m, 1) within the knots:

    .. math:: B_{i,d} = r_{i,d} B_{i,d-1} + (1 - r_{i+1,d}) B_{i+1,d-1}, \qquad
              r_{i,d} = (x - t_i)/(t_{i+d} - t_i),

    from :math:`B_{i,0}`, 1 between knots i and i + 1. Where :math:`t_{i+d} = t_i`,
    :math:`B_{i,d-1}` is zero and any r will do.
    """
    left, right = knots[:-1], knots[1:].copy()
    right[np.flatnonzero(left < right)[-1]] = np.inf  # the end belongs to the last interval
    above, below = graph.call("GreaterOrEqual", x, left), graph.call("Less", x, right)
    values = graph.as_number(graph.call("And", above, below))
    for degree in range(1, DEGREE + 1):
        start, width = knots[:-degree], knots[degree:] - knots[:-degree]
        slope = np.divide(1.0, width, out=np.zeros_like(width), where=width > 0)
        rise = graph.call("Mul", graph.call("Sub", x, start), slope)
        rising = graph.call("Mul", rise, values)
        falling = graph.call("Sub", values, rising)
        count = len(start) - 1
        values = graph.call(
            "Add",
            graph.call("Gather", rising, np.arange(count), axis=1),
            graph.call("Gather", falling, np.arange(1, count + 1), axis=1),
        )
    return values
