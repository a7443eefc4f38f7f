"""The classic selection model by maximum likelihood: linear in x, normal errors, global mode."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtr

from heckesel.classical.covariance import inverse
from heckesel.classical.ml import (
    Estimates,
    back_transform,
    estimates_at,
    scan,
    selected_mode,
    standardised_hessian,
)
from heckesel.classical.prediction import LinearMeans, covariance_of_known, outcome_means
from heckesel.classical.rows import standardised_sample
from heckesel.data import SelectionData
from heckesel.errors import warn_user
from heckesel.fit_info import LinearInfo
from heckesel.math.sinh_arcsinh import population_moments
from heckesel.predictive import (
    Predictive,
    check_target,
    possible_covariance,
    predict_given_selection,
)
from heckesel.scales import TargetTransform
from heckesel.tables.formula import with_intercept


@dataclass(frozen=True)
class LinearHeckmanFit:
    """estimates : of the best mode, constants last in beta and gamma

    covariance : (p + 1, p + 1) of beta; at rho = +-1, where no other exists, that given rho
    """

    estimates: Estimates
    covariance: np.ndarray
    info: LinearInfo

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """Normal around x'beta; given selection, with the moments of the truncated errors."""
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
    at_boundary : the same estimates if rho = +-1 and errors are normal with a constant sigma. They
        have no joint covariance, so predictions use that of the others given rho, and rho = .999
        where they need a density. Other fits have `cov_given_rho` instead.
    """

    result: Any
    at_boundary: LinearHeckmanFit | None = None

    @property
    def info(self) -> LinearInfo:
        return LinearInfo([self.result.sigma], [self.result.rho])

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        if self.at_boundary is not None:
            return self.at_boundary.predict(x, w, target)
        if target == "population" or abs(self.result.rho) <= 1:
            return self._used().predict(x=x, w=w, target=target)
        # a two-step may estimate |rho| > 1, which no distribution has: use the nearest rho
        sign, sigma = 1.0 if target == "selected" else -1.0, self.result.sigma
        f = self.result.predict(x=x)
        covariance = sign * possible_covariance(self.result.rho * sigma, sigma)
        return predict_given_selection(f.mean, f.epistemic, sigma, covariance, sign * self.index(w))

    def _used(self):
        """The fit; at rho = +-1 with the covariance of the other parameters."""
        if self.result.cov_given_rho is None:
            return self.result
        found = replace(self.result, cov=self.result.cov_given_rho)
        if "over_rho" in vars(self.result):  # which a loaded fit could not compute again
            vars(found)["over_rho"] = self.result.over_rho
        return found

    def means(self, target: str, transform: TargetTransform | None) -> LinearMeans:
        """The expected outcome of rows, with inference; at rho = +-1 without a joint covariance,
        that of the other parameters given rho."""
        fit = self._used()
        if fit.over_rho is None and np.isnan(fit.cov.to_numpy()[0, 0]) and self.at_boundary:
            order = np.roll(np.arange(len(self.at_boundary.covariance)), 1)  # the constant first
            known = np.zeros(fit.cov.shape)
            known[: len(order), : len(order)] = self.at_boundary.covariance[np.ix_(order, order)]
            fit = replace(fit, cov=pd.DataFrame(known, fit.cov.index, fit.cov.columns))
        if fit is not self.result and fit.over_rho is None:
            warn_user(f"the fit is at rho = {fit.rho:+.0f}; these intervals treat rho as known")
        return outcome_means(fit, target, transform)

    def matrices(self, x, w) -> tuple:
        """x, w and the columns of log sigma(x), with constants; None where not needed."""
        names, scale = self.result.data, None
        x = None if x is None else with_intercept(x)
        if x is not None and names.scale_names:
            scale = x[:, [names.x_names.index(name) for name in names.scale_names]]
        return x, None if w is None else with_intercept(w), scale

    def index(self, w) -> np.ndarray:
        """The index with P(selected) = Phi(index), also for t errors."""
        index = with_intercept(w) @ self.result.params["select"].to_numpy()
        if self.result.errors != "t":
            return index
        return -np.sign(index) * ndtri(stdtr(self.result.df, -np.abs(index)))

    def graph(self, graph, x: str):
        r"""The population prediction at x (m, p) in an ONNX graph, with a = (1, x):

        .. math:: a'\beta + \sigma m, \qquad
                  \sigma^2 v + a'(V_0 + 2\sigma V_1 + \sigma^2 V_2)\,a .

        m and v are the moments of :math:`e = (y - x'\beta)/\sigma`. x is measured from the point c
        where the second part is smallest, so that no digits cancel in float32.
        """
        found = self._population()
        centre = _centre_of(found.covariances[0])
        shift = np.eye(len(found.beta))
        shift[0, 1:] = centre
        apart = graph.centred(x, centre)
        mean = _affine(graph, apart, shift @ found.beta)
        doubt, *others = (
            _quadratic(graph, apart, shift @ each @ shift.T) for each in found.covariances
        )
        variance = np.float64(found.variance)
        if found.log_sigma is not None:
            sigma = graph.call("Exp", _affine(graph, apart, shift @ found.log_sigma))
            variance = graph.call("Mul", graph.square(sigma), variance)
            mean = graph.call("Add", mean, graph.call("Mul", sigma, np.float64(found.mean)))
            if others:
                linear, squared = others
                more = graph.call("Add", linear, graph.call("Mul", squared, sigma))
                doubt = graph.call("Add", doubt, graph.call("Mul", more, sigma))
        possible = graph.call("GreaterOrEqual", doubt, np.float32(0))
        doubt = graph.call("Where", possible, doubt, np.float32(np.nan))  # as in `predict`
        variance = graph.call("Add", doubt, variance)
        last = np.array([1])
        mean, variance = graph.call("Squeeze", mean, last), graph.call("Squeeze", variance, last)
        errors = self.result.errors
        return graph.part(mean, variance, errors, df=self.result.df if errors == "t" else None)

    def _population(self) -> Population:
        if self.at_boundary is not None:
            found, order = self.at_boundary, np.roll(np.arange(len(self.at_boundary.covariance)), 1)
            beta, sigma = found.estimates.beta[order], found.estimates.sigma
            return Population(beta, (found.covariance[np.ix_(order, order)],), variance=sigma**2)
        result, df = self._used(), self.result.df
        params, covariance = result.params, covariance_of_known(result)
        beta, names = params["outcome"].to_numpy(), list(params["outcome"].index)
        size, scale = len(beta), result.data.scale_names
        variance = 1.0 if np.isinf(df) else df / (df - 2) if df > 2 else np.inf
        covariances: tuple[np.ndarray, ...] = (covariance[:size, :size],)
        mean = 0.0
        if result.errors == "shape":
            ancillary, labels = params["ancillary"], list(params.index)
            moments = population_moments(ancillary["skewness"], ancillary["log_tail"])
            mean, variance = float(moments.mean), float(moments.variance)
            slope = np.zeros((len(params), size))  # of the mean less a'beta, divided by sigma
            slope[labels.index(("ancillary", "log_sigma")), 0] = mean
            slope[labels.index(("ancillary", "skewness")), 0] = moments.d_skewness
            slope[labels.index(("ancillary", "log_tail")), 0] = moments.d_log_tail
            for name in scale:
                slope[labels.index(("scale", name)), names.index(name)] = mean
            across = covariance[:size] @ slope
            covariances = (*covariances, across + across.T, slope.T @ covariance @ slope)
        if scale:
            log_sigma = np.zeros(size)
            log_sigma[0] = params["ancillary", "log_sigma"]
            log_sigma[[names.index(name) for name in scale]] = params["scale"]
            return Population(beta, covariances, variance, mean, log_sigma)
        sigma = result.sigma
        together = sum(sigma**power * each for power, each in enumerate(covariances))
        beta = beta + sigma * mean * np.eye(size)[0]
        return Population(beta, (together,), sigma**2 * variance)


@dataclass(frozen=True)
class Population:
    """Arrays for `LinearModel.graph`, the constant first. covariances : V_0, 2 V_1 and V_2; mean,
    variance : of e. Where sigma is constant, all of it is part of beta, V_0 and the variance, and
    log_sigma is None."""

    beta: np.ndarray
    covariances: tuple[np.ndarray, ...]
    variance: float
    mean: float = 0.0
    log_sigma: np.ndarray | None = None


def _affine(graph, apart: str, vector) -> str:
    """(m, 1) of (1, apart)'vector."""
    return graph.call("Add", graph.call("MatMul", apart, vector[1:, None]), vector[:1])


def _quadratic(graph, apart: str, matrix) -> str:
    """(m, 1) of (1, apart)'matrix(1, apart), for a symmetric matrix."""
    across = graph.call("MatMul", apart, matrix[1:, 1:])
    across = graph.call("Add", across, 2 * matrix[:1, 1:])
    bent = graph.call("ReduceSum", graph.call("Mul", across, apart), np.array([1]), keepdims=1)
    return graph.call("Add", bent, matrix[0, 0])


def _centre_of(covariance) -> np.ndarray:
    """The x at which x'Vx is smallest; 0 if there is none."""
    try:
        centre = -np.linalg.solve(covariance[1:, 1:], covariance[1:, 0])
    except np.linalg.LinAlgError:
        return np.zeros(len(covariance) - 1)
    return centre if np.isfinite(centre).all() else np.zeros(len(centre))


def fit_many(
    datas, *, seeds=None, config=None, device=None, progress=None
) -> list[LinearHeckmanFit]:
    """The best of all modes over rho (see `selected_mode`); nothing is random or configurable."""
    return [_fit(data) for data in datas]


def _fit(data: SelectionData) -> LinearHeckmanFit:
    x, x_names = _with_constant(data.x), (*data.x_names, "Intercept")
    w, w_names = _with_constant(data.w), (*data.w_names, "Intercept")
    complete = replace(data, x=x, w=w, x_names=x_names, w_names=w_names)
    sample, scalings = standardised_sample(complete)
    modes = scan(sample).modes
    best = modes[selected_mode(modes)]
    found = estimates_at(best, sample, scalings)
    p = sample.p
    hessian = standardised_hessian(best, sample.q)
    if found.status == "boundary":
        hessian = hessian[:-1, :-1]
    back = back_transform(scalings)[:p, :p]
    loss = -found.loglik / float(data.weight.sum())
    info = LinearInfo([found.sigma], [found.rho], [loss], found.status)
    return LinearHeckmanFit(found, back @ inverse(-hessian)[:p, :p] @ back.T, info)


def _with_constant(values):
    values = np.asarray(values, dtype=float)
    return np.column_stack([values, np.ones(len(values))])


def linear_model(result, data: SelectionData) -> LinearModel:
    """The fit as a model; at rho = +-1 with `LinearModel.at_boundary`. data : of the fit, with
    weights that count rows"""
    if result.scan is None or result.status != "boundary":
        return LinearModel(result)
    return LinearModel(result, _fit(data))
