"""`HeckmanRegressor`: the classic selection model as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from heckesel.estimators.heckman import heckman
from heckesel.estimators.regression import read_table
from heckesel.estimators.selection_regressor import SelectionRegressor
from heckesel.methods import fit_one, linear_heckman
from heckesel.methods.linear_heckman import LinearModel
from heckesel.tables.weights import kind_of_weights, scaled_weight


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
            self.fitted_ = LinearModel(self.result_, fit_one(linear_heckman, counted))
        self.identification_ = self.result_.identification
        outcome = self.result_.params["outcome"]
        self.intercept_ = float(outcome["Intercept"])
        self.coef_ = outcome.drop("Intercept").to_numpy()
        self.coef_names_ = data.x_names
        self.rho_, self.sigma_ = self.result_.rho, self.result_.sigma
        return self
