"""`HeckmanRegressor`: the classic selection model as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from heckesel.estimators.heckman import heckman
from heckesel.estimators.selection_regressor import SelectionRegressor
from heckesel.linear.results.heckman_fit import HeckmanFit
from heckesel.methods import linear_heckman
from heckesel.methods.linear_heckman import LinearHeckmanFit
from heckesel.predictive.distribution import (
    Predictive,
    possible_covariance,
    predict_given_selection,
)
from heckesel.tables.array_design import with_intercept
from heckesel.tables.fit_input import read_table
from heckesel.tables.weights import kind_of_weights, scaled_weight

if TYPE_CHECKING:
    from heckesel.saving.saved_linear import SavedFit


class HeckmanRegressor(SelectionRegressor):
    """Heckman's selection model with a linear outcome, by maximum likelihood or in two steps.

    y is missing (NaN) where it was not observed, or `fit` is given `selected`. `instruments`,
    by name or position, are columns of X that moved selection but not the outcome.

    * method: "ml" (the best of all modes of the likelihood) or "two-step"
    * covariance: of the estimates, as in `hk.heckman`; None takes the usual one
    * weight_kind: what `sample_weight` means, "frequency" or "probability"; None takes whole
      numbers for counts of rows and others for probabilities. Estimates are the same
    * missing: "error", or "indicator" to fill missing x with the mean of the fit and point it out
      by a column
    * target_transform: None, "log" or two functions (forward, inverse): the scale on which the
      outcome is linear. Predictions are of y itself

    After `fit`: `coef_` and `intercept_` of the outcome, in the order of `coef_names_` (categories
    have a column per level but the first, instruments none); `rho_`, `sigma_`; `result_`, the
    `HeckmanFit` with standard errors, tests and tables; `identification_`, the verdict on whether
    the data can carry the correction.
    """

    takes_categories = False  # their codes, rounded, make constant columns

    def __init__(
        self,
        instruments=None,
        *,
        method: str = "ml",
        covariance: str | None = None,
        weight_kind: str | None = None,
        missing: str = "error",
        target_transform=None,
    ):
        self.instruments = instruments
        self.method = method
        self.covariance = covariance
        self.weight_kind = weight_kind
        self.missing = missing
        self.target_transform = target_transform

    def fit(self, X, y, *, selected=None, sample_weight=None):
        data = read_table(self, X, y, selected=selected, sample_weight=sample_weight, linear=True)
        weight_kind = kind_of_weights(self.weight_kind, data.weight)
        self.result_ = heckman(
            y=pd.Series(data.y, name=data.y_name),
            x=pd.DataFrame(data.x, columns=list(data.x_names)),
            w=pd.DataFrame(data.w, columns=list(data.w_names)),
            selected=data.s,
            method=self.method,
            covariance=self.covariance,
            weights=data.weight,
            weight_kind=weight_kind,
        )
        self.fitted_ = LinearModel(self.result_)
        if self.result_.status == "boundary":
            counted = replace(data, weight=scaled_weight(data.weight, weight_kind))
            self.fitted_ = LinearModel(self.result_, linear_heckman.fit(counted))
        self.identification_ = self.result_.identification
        outcome = self.result_.params["outcome"]
        self.intercept_ = float(outcome["Intercept"])
        self.coef_ = outcome.drop("Intercept").to_numpy()
        self.coef_names_ = data.x_names
        self.rho_, self.sigma_ = self.result_.rho, self.result_.sigma
        return self


@dataclass(frozen=True)
class LinearModel:
    """A `HeckmanFit` under the contract of fitted methods: x and w without constants.

    at_boundary : the same estimates where rho = +-1. No covariance of all of them exists there,
    so predictions take that of the others given rho, and .999 where they need a density.
    """

    result: HeckmanFit | SavedFit
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
