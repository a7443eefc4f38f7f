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
from heckesel.classical.prediction import LinearMeans, outcome_means
from heckesel.classical.rows import standardised_sample
from heckesel.data import SelectionData
from heckesel.errors import warn_user
from heckesel.predictive import (
    Predictive,
    check_target,
    possible_covariance,
    predict_given_selection,
)
from heckesel.scales import TargetTransform
from heckesel.tables.formula import with_intercept


@dataclass(frozen=True)
class LinearInfo:
    """A linear fit.

    sigma, rho : one number each, in a list as for members of an ensemble
    training_loss : minus the mean log-likelihood of a unit
    status : "converged", "boundary" (no interior optimum) or "max_iterations"
    """

    sigma: list[float]
    rho: list[float] | None = None
    training_loss: list[float] | None = None
    status: str | None = None


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
