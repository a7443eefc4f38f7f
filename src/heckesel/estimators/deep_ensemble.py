"""`DeepEnsembleRegressor`: networks on the observed outcomes, as if selection were chance."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from heckesel.diagnostics.verdict import NOT_IDENTIFIED, Identification
from heckesel.errors import DataError
from heckesel.estimators.networks import beside_probit, network_config, train
from heckesel.estimators.regression import (
    identify,
    mean_log_likelihood,
    predict_mean,
    predict_target,
    r2_given_selection,
    read_table,
)
from heckesel.estimators.saved import save_model
from heckesel.predictive import Predictive


class DeepEnsembleRegressor(RegressorMixin, BaseEstimator):
    """The baseline: an ensemble of networks with mean and variance, on the observed outcomes.

    It is right where selection is chance given x, and biased wherever selection depended on
    something that also moved the outcome and is not in X. `predict` answers for everyone all the
    same; compare its `log_likelihood` on held-out rows with that of `DeepHeckmanRegressor`.

    y is missing (NaN) where it was not observed, or `fit` is given `selected`. `instruments`, by
    name or position, are columns of X that moved selection alone: the networks do not see them;
    the probit of selection that stands beside them does.

    * n_members, hidden, epochs, learning_rate, weight_decay, batch_size, dtype, device: the
      ensemble and its training; "auto" takes a GPU if there is one
    * missing: "error", or "indicator" to fill missing x with the mean of the fit and point it out
      by a column
    * target_transform: None, "log" or two functions (forward, inverse): the scale of the fit.
      Predictions are of y itself
    * folds: None trains every member on all rows; a number has each member do without one fold,
      end by it, and the level of sigma judged there
    * progress: a bar on the terminal, for fits over a second

    After `fit`: `identification_` says whether the data could carry a correction, which this
    estimator does not make; `info_` is the training summary.
    """

    def __init__(
        self,
        instruments=None,
        *,
        n_members: int = 5,
        hidden: tuple[int, ...] = (64, 64),
        epochs: int = 1500,
        learning_rate: float | None = None,
        weight_decay: float = 1e-5,
        batch_size: int | None = None,
        device: str = "auto",
        dtype: str = "float32",
        random_state=0,
        progress: bool = True,
        missing: str = "error",
        target_transform=None,
        folds: int | None = None,
    ):
        self.instruments = instruments
        self.n_members = n_members
        self.hidden = hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.device = device
        self.dtype = dtype
        self.random_state = random_state
        self.progress = progress
        self.missing = missing
        self.target_transform = target_transform
        self.folds = folds

    def fit(self, X, y, *, selected=None, sample_weight=None):
        data = read_table(self, X, y, selected=selected, sample_weight=sample_weight)
        possible = True
        try:
            self.identification_ = identify(data, without="a plain ensemble")
        except DataError as error:  # what stops a probit does not stop this ensemble
            self.identification_ = Identification(NOT_IDENTIFIED, f"{error}.", {})
            possible = False
        trained = train(self, "deep_ensemble", data, network_config(self))
        self.fitted_ = beside_probit(trained, data, possible=possible)
        self.info_ = self.fitted_.info
        return self

    def predict(self, X, return_std: bool = False):
        """Mean of y at this x; with `return_std` the total sd as well."""
        return predict_mean(self, X, return_std)

    def predict_interval(self, X, level: float = 0.9, target: str = "population") -> np.ndarray:
        """(m, 2) equal-tailed interval."""
        return predict_target(self, X, target).interval(level)

    def predict_distribution(self, X, target: str = "population") -> Predictive:
        """The same for all three targets: to this model selection is chance given x."""
        return predict_target(self, X, target)

    def score(self, X, y, *, selected=None, sample_weight=None) -> float:
        """R2 of E[y | x, selected] on the rows with an outcome."""
        return r2_given_selection(self, X, y, selected, sample_weight)

    def log_likelihood(self, X, y, *, selected=None, sample_weight=None) -> float:
        """Joint log-likelihood of selection (a probit) and outcome, a mean over units."""
        return mean_log_likelihood(self, X, y, selected, sample_weight)

    def save(self, path) -> None:
        """Write the fitted model to one file, which `hk.load` reads; no pickle, no rows."""
        save_model(self, path)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self.missing == "indicator"
        return tags
