"""The methods that every regressor has after its fit; all numbers are in `regression`."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from heckesel.estimators.load import save
from heckesel.estimators.regression import (
    mean_log_likelihood,
    predict_mean,
    predict_target,
    r2_given_selection,
)
from heckesel.onnx.export import export_model
from heckesel.predictive.distribution import Predictive


class SelectionRegressor(RegressorMixin, BaseEstimator):
    """`fit` leaves `columns_`, `transform_`, `identification_` and `fitted_`; this is the rest.

    takes_categories : whether scikit-learn may hand over category codes
    """

    takes_categories = True

    def predict(self, X, return_std: bool = False, *, target: str = "population"):
        """Mean of y, by default for any unit with this x, and with `return_std` the total sd as
        well; `target` as in `predict_distribution`."""
        return predict_mean(self, X, return_std, target)

    def predict_interval(self, X, level: float = 0.9, target: str = "population") -> np.ndarray:
        """(m, 2) equal-tailed interval."""
        return predict_target(self, X, target).interval(level)

    def predict_distribution(self, X, target: str = "population") -> Predictive:
        """`population`: y of any unit; `selected`, `unselected`: given that it was or was not
        selected, which needs the instrument columns in X. A baseline that takes selection for
        chance given x has one answer for all three."""
        return predict_target(self, X, target)

    def score(self, X, y, *, selected=None, sample_weight=None) -> float:
        """R2 of E[y | x, w, selected] on the rows with an outcome."""
        return r2_given_selection(self, X, y, selected, sample_weight)

    def log_likelihood(self, X, y, *, selected=None, sample_weight=None) -> float:
        """Joint log-likelihood of selection and outcome, a mean over units."""
        return mean_log_likelihood(self, X, y, selected, sample_weight)

    def save(self, path) -> None:
        """Write the fitted model to one file, which `hk.load` reads; no pickle, no rows."""
        save(self, path)

    def export_onnx(self, path) -> None:
        """Write the population prediction to an ONNX file, which other programs and languages run.

        Inputs: `X`, (m, columns) float32, every number of the outcome in the order of the fit and
        without instruments, truths as 0 and 1; a text column is an input (m, 1) of its own name.
        Outputs: `mean` and `std`, (m,) float32. Scaling, categories, filled gaps and a logarithm
        of y are inside. A row that `predict` would refuse has NaN. Metadata: the columns, and the
        `distribution` that mean and std belong to.
        """
        export_model(self, path)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = self.takes_categories
        tags.input_tags.allow_nan = self.missing == "indicator"  # type: ignore[attr-defined]
        return tags
