"""`DeepHeckmanRegressor`: from a table with missing outcomes to predictions for everyone."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.estimators.networks import predicting_in_float64
from heckesel.estimators.progress import progress_bar
from heckesel.estimators.regression import (
    identify,
    mean_log_likelihood,
    predict_mean,
    predict_target,
    r2_given_selection,
    read_table,
)
from heckesel.predictive import Predictive

METHODS = {"two-step": "heckman_two_step", "joint": "heckman_joint"}


class DeepHeckmanRegressor(RegressorMixin, BaseEstimator):
    """Heckman's selection model with a neural network as outcome function, as an ensemble.

    y is missing (NaN) where it was not observed, or `fit` is given `selected`. `instruments`,
    by name or position, are columns of X that moved selection but not the outcome.

    * method: "two-step" (probit, then a network with the Mills ratio beside it) or "joint" (one
      likelihood; `warm_up` epochs with rho held at 0)
    * n_members, hidden, epochs, learning_rate, weight_decay, batch_size, dtype, device: the
      ensemble and its training; None takes the method's own learning rate, "auto" a GPU if any
    * folds: None trains every member on all rows, as in the paper; a number, say 5, has each
      member do without one fold, end by it, and sigma judged there: calibrated where networks
      would overfit
    * noise: "constant", "varying" (a sigma for every x) or "auto" (what rows left out prefer);
      the last two need folds
    * errors: "normal", or "t" with estimated degrees of freedom (joint; population target only)
    * selection: "linear", or "network" for an index of networks, cross-fitted (two-step on folds)
    * progress: a bar on the terminal, for fits over a second
    * missing: "error", or "indicator" to fill missing x with the mean of the fit and point it out
      by a column
    * target_transform: None, "log" or two functions (forward, inverse): the scale of the fit.
      Predictions are of y itself

    After `fit`: `identification_` says whether the data can carry the correction, `rho_` and
    `sigma_` hold one value a member, `info_` the training summary.
    """

    def __init__(
        self,
        instruments=None,
        *,
        method: str = "two-step",
        n_members: int = 5,
        hidden: tuple[int, ...] = (64, 64),
        epochs: int = 1500,
        learning_rate: float | None = None,
        warm_up: int = 100,
        weight_decay: float = 1e-5,
        batch_size: int | None = None,
        device: str = "auto",
        dtype: str = "float32",
        random_state=0,
        progress: bool = True,
        missing: str = "error",
        target_transform=None,
        folds: int | None = None,
        noise: str = "constant",
        errors: str = "normal",
        selection: str = "linear",
    ):
        self.instruments = instruments
        self.method = method
        self.n_members = n_members
        self.hidden = hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.warm_up = warm_up
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.device = device
        self.dtype = dtype
        self.random_state = random_state
        self.progress = progress
        self.missing = missing
        self.target_transform = target_transform
        self.folds = folds
        self.noise = noise
        self.errors = errors
        self.selection = selection

    def fit(self, X, y, *, selected=None, sample_weight=None):
        if self.method not in METHODS:
            raise DataError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")
        data = read_table(self, X, y, selected=selected, sample_weight=sample_weight)
        self.identification_ = identify(data, without="a plain ensemble")
        self.fitted_ = predicting_in_float64(self._train(data))
        self.info_ = self.fitted_.info
        self.rho_ = np.array(self.info_.get("rho", np.full(self.n_members, np.nan)))
        self.sigma_ = np.array(self.info_.get("sigma", np.full(self.n_members, np.nan)))
        return self

    def _train(self, data: SelectionData):
        from heckesel.deep.config import NetworkConfig
        from heckesel.methods import load_method

        config = NetworkConfig(
            hidden=tuple(self.hidden),
            n_members=self.n_members,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            warm_up=self.warm_up,
            weight_decay=self.weight_decay,
            dtype=self.dtype,
            device=self.device,
            batch_size=self.batch_size,
            folds=self.folds,
            noise=self.noise,
            errors=self.errors,
            selection=self.selection,
        )
        name = METHODS[self.method] if not data.s.all() else "deep_ensemble"
        seed = int(check_random_state(self.random_state).randint(2**31))
        with progress_bar("training", enabled=self.progress) as progress:
            return load_method(name).fit(data, seed=seed, config=config, progress=progress)

    def predict(self, X, return_std: bool = False):
        """Mean of y for any unit with this x; with `return_std` the total sd as well."""
        return predict_mean(self, X, return_std)

    def predict_interval(self, X, level: float = 0.9, target: str = "population") -> np.ndarray:
        """(m, 2) equal-tailed interval."""
        return predict_target(self, X, target).interval(level)

    def predict_distribution(self, X, target: str = "population") -> Predictive:
        """`population`: y of any unit; `selected`, `unselected`: given that it was or was not
        selected, which needs the instrument columns in X."""
        return predict_target(self, X, target)

    def score(self, X, y, *, selected=None, sample_weight=None) -> float:
        """R2 of E[y | x, w, selected] on the rows with an outcome."""
        return r2_given_selection(self, X, y, selected, sample_weight)

    def log_likelihood(self, X, y, *, selected=None, sample_weight=None) -> float:
        """Joint log-likelihood of selection and outcome, a mean over units."""
        return mean_log_likelihood(self, X, y, selected, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self.missing == "indicator"
        return tags
