"""The classic selection model by maximum likelihood: linear in x, normal errors, global mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckesel.data import SelectionData
from heckesel.linear.covariance import inverse
from heckesel.linear.estimates import (
    Estimates,
    back_transform,
    estimates_at,
    standardised_hessian,
)
from heckesel.linear.results.prediction import covariance_of_known
from heckesel.linear.rho_scan import scan, selected_mode
from heckesel.linear.sample.sample import standardised_sample
from heckesel.predictive.distribution import (
    Predictive,
    check_target,
    possible_covariance,
    predict_given_selection,
)
from heckesel.tables.array_design import with_intercept


@dataclass(frozen=True)
class LinearHeckmanFit:
    """estimates : of the best mode, constants last in beta and gamma

    covariance : (p + 1, p + 1) of beta; at rho = +-1, where no other exists, that given rho
    """

    estimates: Estimates
    covariance: np.ndarray
    info: dict

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """Normal around x'beta; given selection, what the correlation of the errors makes of it."""
        check_target(target, needs_w=w is None)
        found, x = self.estimates, _with_constant(x)
        mean = x @ found.beta
        epistemic = np.einsum("ij,jk,ik->i", x, self.covariance, x)
        if target == "population":
            return Predictive.normal(mean, epistemic, found.sigma**2)
        sign = 1.0 if target == "selected" else -1.0
        covariance = sign * possible_covariance(found.rho * found.sigma, found.sigma)
        index = sign * (_with_constant(w) @ found.gamma)
        return predict_given_selection(mean, epistemic, found.sigma, covariance, index)


@dataclass(frozen=True)
class LinearModel:
    """A `HeckmanFit` with the interface of fitted methods: x and w without constants.

    result : the fit, or the part of it that a saved model holds
    at_boundary : the same estimates if rho = +-1. They have no joint covariance, so predictions use
        that of the others given rho, and rho = .999 where they need a density.
    """

    result: Any
    at_boundary: LinearHeckmanFit | None = None

    @property
    def info(self) -> dict:
        return {"rho": [self.result.rho], "sigma": [self.result.sigma]}

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        if self.at_boundary is not None:
            return self.at_boundary.predict(x, w, target)
        if target == "population" or abs(self.result.rho) <= 1:
            return self.result.predict(x=x, w=w, target=target)
        # a two-step rho beyond one belongs to no distribution: use the nearest covariance that does
        sign, sigma = 1.0 if target == "selected" else -1.0, self.result.sigma
        f = self.result.predict(x=x)
        covariance = sign * possible_covariance(self.result.rho * sigma, sigma)
        return predict_given_selection(f.mean, f.epistemic, sigma, covariance, sign * self.index(w))

    def index(self, w) -> np.ndarray:
        return with_intercept(w) @ self.result.params["select"].to_numpy()

    def graph(self, graph, x: str):
        r"""The population prediction at x (m, p) in an ONNX graph: mean :math:`x'\beta`, variance
        :math:`\sigma^2 + x'Vx`, with x measured from the point c where the variance is smallest,
        so that float32 has nothing to cancel:

        .. math:: \bar x = (1, x - c), \qquad x'Vx = \bar x' (S V S')\,\bar x .
        """
        beta, covariance, sigma = self._estimates()  # the constant first
        centre = _centre_of(covariance)
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
        return graph.part(mean, variance, "normal")

    def _estimates(self):
        """beta, its covariance and sigma, the constant first."""
        if self.at_boundary is not None:
            found, order = self.at_boundary, np.roll(np.arange(len(self.at_boundary.covariance)), 1)
            beta, sigma = found.estimates.beta[order], found.estimates.sigma
            return beta, found.covariance[np.ix_(order, order)], sigma
        beta = self.result.params["outcome"].to_numpy()
        covariance = covariance_of_known(self.result)[: len(beta), : len(beta)]
        return beta, covariance, self.result.sigma


def _centre_of(covariance) -> np.ndarray:
    """The x at which x'Vx is smallest; 0 if there is none."""
    try:
        centre = -np.linalg.solve(covariance[1:, 1:], covariance[1:, 0])
    except np.linalg.LinAlgError:
        return np.zeros(len(covariance) - 1)
    return centre if np.isfinite(centre).all() else np.zeros(len(centre))


def fit_many(
    datas: Sequence[SelectionData], *, seeds=None, config=None, device=None, progress=None
) -> list[LinearHeckmanFit]:
    """The best of all modes over rho (see `selected_mode`); nothing is random or configurable."""
    return [_fit(data) for data in datas]


def _fit(data: SelectionData) -> LinearHeckmanFit:
    sample, scalings = standardised_sample(
        replace(
            data,
            x=_with_constant(data.x),
            w=_with_constant(data.w),
            x_names=(*data.x_names, "Intercept"),
            w_names=(*data.w_names, "Intercept"),
        )
    )
    modes = scan(sample).modes
    best = modes[selected_mode(modes)]
    found = estimates_at(best, sample, scalings)
    p = sample.p
    hessian = standardised_hessian(best, sample.q)
    if found.status == "boundary":
        hessian = hessian[:-1, :-1]
    back = back_transform(scalings)[:p, :p]
    info = {
        "rho": [found.rho],
        "sigma": [found.sigma],
        "training_loss": [-found.loglik / float(data.weight.sum())],
        "status": found.status,
    }
    return LinearHeckmanFit(found, back @ inverse(-hessian)[:p, :p] @ back.T, info)


def _with_constant(values):
    values = np.asarray(values, dtype=float)
    return np.column_stack([values, np.ones(len(values))])
