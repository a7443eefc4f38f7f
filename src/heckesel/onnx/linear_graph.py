"""A linear fit as part of an ONNX graph."""

from __future__ import annotations

import numpy as np

from heckesel.estimators.heckman_regressor import LinearModel
from heckesel.linear.results.prediction import covariance_of_known
from heckesel.onnx.graph import Graph
from heckesel.onnx.output_moments import Part


def write_fit(graph: Graph, fit: LinearModel, x: str) -> Part:
    r"""Mean :math:`x'\beta` and variance :math:`\sigma^2 + x'Vx`, with x measured from the point c
    where it is surest, so that float32 has nothing to cancel:

    .. math:: \bar x = (1, x - c), \qquad x'Vx = \bar x' (S V S')\,\bar x .
    """
    beta, covariance, sigma = _estimates(fit)  # the constant first
    centre = _surest(covariance)
    shift = np.eye(len(beta))
    shift[0, 1:] = centre
    beta, covariance = shift @ beta, shift @ covariance @ shift.T
    apart = graph.centred(x, centre)
    mean = graph.call("Add", graph.call("MatMul", apart, beta[1:, None]), beta[:1])
    across = graph.call("MatMul", apart, covariance[1:, 1:])
    across = graph.call("Add", across, 2 * covariance[:1, 1:])
    bent = graph.call("ReduceSum", graph.call("Mul", across, apart), np.array([1]), keepdims=1)
    doubt = graph.call("Add", bent, covariance[0, 0])
    possible = graph.call("GreaterOrEqual", doubt, np.float32(0))
    doubt = graph.call("Where", possible, doubt, np.float32(np.nan))  # as `predict` has it
    variance = graph.call("Add", doubt, np.float64(sigma**2))
    last = np.array([1])
    mean, variance = graph.call("Squeeze", mean, last), graph.call("Squeeze", variance, last)
    return Part(mean, variance, "normal")


def _surest(covariance) -> np.ndarray:
    """Where x'Vx is smallest; any other place is as right, and 0 where there is no such."""
    try:
        centre = -np.linalg.solve(covariance[1:, 1:], covariance[1:, 0])
    except np.linalg.LinAlgError:
        return np.zeros(len(covariance) - 1)
    return centre if np.isfinite(centre).all() else np.zeros(len(centre))


def _estimates(fit: LinearModel):
    """beta, its covariance and sigma, the constant first."""
    if fit.at_boundary is not None:
        found, order = fit.at_boundary, np.roll(np.arange(len(fit.at_boundary.covariance)), 1)
        beta, sigma = found.estimates.beta[order], found.estimates.sigma
        return beta, found.covariance[np.ix_(order, order)], sigma
    beta = fit.result.params["outcome"].to_numpy()
    covariance = covariance_of_known(fit.result)[: len(beta), : len(beta)]
    return beta, covariance, fit.result.sigma
