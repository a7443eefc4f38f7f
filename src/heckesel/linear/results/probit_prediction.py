"""Probabilities of a linear probit with selection, and how well the data determine them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri_exp

from heckesel.errors import warn_user
from heckesel.likelihoods.binary import selected_units
from heckesel.linear.results.averages import LinearMeans, density, variance_along
from heckesel.linear.results.inference import critical_value
from heckesel.linear.results.prediction import given_rho
from heckesel.numeric_input import check_level
from heckesel.numerics.bivariate import log_conditional_cdf
from heckesel.numerics.normal import inverse_mills
from heckesel.tables.array_design import with_intercept

ATANH_RHO = ("ancillary", "atanh_rho")


def probit_index(fit, x, w, target: str) -> tuple[np.ndarray, np.ndarray]:
    r"""(m,) z with P(y = 1) = Phi(z), and its (m, k) gradient in the order of `fit.params`.

    * population: z = f = x'beta
    * selected:   P = Phi_2(eta, f; rho) / Phi(eta)
    * unselected: P = Phi_2(-eta, f; -rho) / Phi(-eta)

    x : (m, p) and w : (m, q) with their constants. z is computed from the rarer class, whose
    probability has more digits: dz = d log P / lambda(z). If all classes are separated, the three
    have the same limit for any rho, and z = f is used.
    """
    p, gradient = x.shape[1], np.zeros((len(x), len(fit.params)))
    f = x @ fit.params.to_numpy()[:p]
    if target == "population" or not fit.has_selection or np.isnan(fit.rho):
        gradient[:, :p] = x
        return f, gradient
    way = 1.0 if target == "selected" else -1.0
    h, a = way * (w @ fit.params["select"].to_numpy()), way * fit.params[ATANH_RHO]
    sign = np.where(log_conditional_cdf(f, h, a) < np.log(0.5), 1.0, -1.0)
    units = selected_units(h, f, a, sign)
    z = ndtri_exp(units.value - log_ndtr(h))
    slope = sign / inverse_mills(z)
    d_index, d_f, d_a = units.gradient
    gradient[:, :p] = (slope * d_f)[:, None] * x
    gradient[:, p:-1] = (slope * way * (d_index - inverse_mills(h)))[:, None] * w
    gradient[:, -1] = slope * way * d_a
    return sign * z, gradient


def probit_means(fit, target: str) -> LinearMeans:
    """The probability of the second class as the mean outcome."""

    def outcome(fit, x, w, _):
        z, gradient = probit_index(fit, x, w, target)
        return ndtr(z), density(z)[:, None] * gradient

    return LinearMeans(fit, target, outcome, is_binary=True)


def probit_index_interval(fit, x, w, target: str, level: float) -> np.ndarray:
    """(m, 2) interval of z, over all rho the data allow where these are given, otherwise by the
    delta method; NaN where it depends on a coefficient without standard error."""
    check_level(level)
    if fit.over_rho is not None:
        return _interval_over_rho(fit, x, w, target, level)
    z, gradient = probit_index(fit, x, w, target)
    cov = fit.cov if fit.cov_given_rho is None else fit.cov_given_rho
    variance = variance_along(gradient, cov.to_numpy())
    half = critical_value(level, fit.freedom) * np.sqrt(variance)
    return np.column_stack([z - half, z + half])


def _interval_over_rho(fit, x, w, target: str, level: float) -> np.ndarray:
    over, values, variances = fit.over_rho, [], []
    for at, covariance in enumerate(over.cov):
        z, gradient = probit_index(given_rho(fit, at), x, w, target)
        values.append(z)
        variances.append(variance_along(gradient, covariance))
    return over.interval(np.array(values), np.array(variances), level)


@dataclass(frozen=True)
class LinearProbit:
    """A fit with params, cov, rho and has_selection, as the model of a classifier; x and w come
    without constants."""

    result: Any

    def index_of_outcome(self, x, w, target: str) -> np.ndarray:
        """(m,) z with P(second class) = Phi(z)."""
        x, w = _constants(x, w)
        return probit_index(self.result, x, w, target)[0]

    def probabilities(self, x, w=None, target: str = "population") -> np.ndarray:
        """(m, 2) of the first and the second class."""
        z = self.index_of_outcome(x, w, target)
        return np.column_stack([ndtr(-z), ndtr(z)])

    def log_probabilities(self, x, w=None, target: str = "population") -> np.ndarray:
        z = self.index_of_outcome(x, w, target)
        return np.column_stack([log_ndtr(-z), log_ndtr(z)])

    def interval(self, x, w, target: str, level: float) -> np.ndarray:
        """(m, 2) of the second class's probability."""
        x, w = _constants(x, w)
        return ndtr(probit_index_interval(self.result, x, w, target, level))

    def means(self, target: str, transform: None = None) -> LinearMeans:
        """The probability of the second class of rows, with inference."""
        fit = self.result
        if fit.over_rho is None and fit.cov_given_rho is not None:
            warn_user(f"the fit is at rho = {fit.rho:+.0f}; these intervals treat rho as known")
            fit = replace(fit, cov=fit.cov_given_rho)
        return probit_means(fit, target)

    def matrices(self, x, w) -> tuple:
        """x and w with constants; None where not needed, as the columns of log sigma(x)."""
        x = None if x is None else with_intercept(x)
        return x, None if w is None else with_intercept(w), None

    def probability_graph(self, graph, x: str) -> tuple[str, str]:
        """(1, m) population probabilities of the first and the second class in an ONNX graph."""
        intercept, *slopes = self.result.params["outcome"]
        index = graph.call("MatMul", x, graph.double(np.array(slopes)[:, None]))
        index = graph.as_number(graph.call("Add", index, graph.double(np.array(intercept))))
        z = graph.call("Transpose", index, perm=[1, 0])
        return graph.normal_cdf(graph.call("Neg", z)), graph.normal_cdf(z)

    def index(self, w) -> np.ndarray:
        return with_intercept(w) @ self.result.params["select"].to_numpy()


def _constants(x, w):
    return with_intercept(x), None if w is None else with_intercept(w)
