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
from heckesel.linear.rho_scan import scan
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
    """A `HeckmanFit` under the contract of fitted methods: x and w without constants.

    result : the fit, or what a saved model keeps of it
    at_boundary : the same estimates where rho = +-1. No covariance of all of them exists there,
    so predictions take that of the others given rho, and .999 where they need a density.
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
        # two steps can put rho beyond one, where no distribution is: take the nearest, and say so
        sign, sigma = 1.0 if target == "selected" else -1.0, self.result.sigma
        f = self.result.predict(x=x)
        covariance = sign * possible_covariance(self.result.rho * sigma, sigma)
        return predict_given_selection(f.mean, f.epistemic, sigma, covariance, sign * self.index(w))

    def index(self, w) -> np.ndarray:
        return with_intercept(w) @ self.result.params["select"].to_numpy()


def fit_many(
    datas: Sequence[SelectionData], *, seeds=None, config=None, device=None, progress=None
) -> list[LinearHeckmanFit]:
    """The best of all modes over rho; nothing is random and there is nothing to choose."""
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
    best = scan(sample).modes[0]
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
