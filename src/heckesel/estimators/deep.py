"""`DeepHeckmanRegressor`: from a table with missing outcomes to predictions for everyone."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from heckesel.data import SelectionData, selection_data
from heckesel.diagnostics.exclusion import probit_verdict
from heckesel.diagnostics.verdict import NO_SELECTION, Identification
from heckesel.errors import DataError, IdentificationWarning
from heckesel.estimators.columns import Columns, learn_columns
from heckesel.estimators.progress import progress_bar
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
    * progress: a bar on the terminal, for fits over a second

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

    def fit(self, X, y, *, selected=None, sample_weight=None):
        if self.method not in METHODS:
            raise DataError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")
        self.columns_, data = table_data(X, y, self.instruments, selected, sample_weight)
        self.n_features_in_ = len(self.columns_.names)
        if self.columns_.from_frame:
            self.feature_names_in_ = np.array(self.columns_.names, dtype=object)
        self.identification_ = _identify(data)
        self.fitted_ = self._train(data)
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
        )
        name = METHODS[self.method] if not data.s.all() else "deep_ensemble"
        seed = int(check_random_state(self.random_state).randint(2**31))
        with progress_bar("training", enabled=self.progress) as progress:
            return load_method(name).fit(data, seed=seed, config=config, progress=progress)

    def predict(self, X, return_std: bool = False):
        """Mean of y for any unit with this x; with `return_std` the total sd as well."""
        predictive = self.predict_distribution(X)
        return (predictive.mean, predictive.std) if return_std else predictive.mean

    def predict_interval(self, X, level: float = 0.9, target: str = "population") -> np.ndarray:
        """(m, 2) equal-tailed interval."""
        return self.predict_distribution(X, target).interval(level)

    def predict_distribution(self, X, target: str = "population") -> Predictive:
        """`population`: y of any unit; `selected`, `unselected`: given that it was or was not
        selected, which needs the instrument columns in X."""
        check_is_fitted(self)
        w = None if target == "population" else self.columns_.w(X)
        return self.fitted_.predict(self.columns_.x(X), w, target)

    def score(self, X, y, *, selected=None, sample_weight=None) -> float:
        """R2 of E[y | x, w, selected] on the rows with an outcome.

        Only these rows can be scored, and on them the naive model would win against the
        population mean; given selection is the fair comparison.
        """
        y = np.asarray(y, dtype=float)
        rows = ~np.isnan(y) if selected is None else np.asarray(selected).astype(bool)
        target = "selected" if self.identification_.verdict != NO_SELECTION else "population"
        mean = self.predict_distribution(X, target).mean
        weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(r2_score(y[rows], mean[rows], sample_weight=weight))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def table_data(X, y, instruments, selected, weight) -> tuple[Columns, SelectionData]:
    """Columns of X learned, and the checked data: x without instruments, w with them."""
    columns = learn_columns(X, instruments)
    data = selection_data(
        columns.x(X),
        columns.w(X),
        y,
        selected=selected,
        weight=weight,
        x_names=columns.x_names,
        w_names=columns.w_names,
        y_name=str(getattr(y, "name", None) or "y"),
    )
    return columns, data


def _identify(data: SelectionData) -> Identification:
    """The verdict, with a warning where there is no instrument or no selection."""
    if data.s.all():
        verdict = Identification(
            NO_SELECTION, "every unit has an outcome, so there is nothing to correct.", {}
        )
        message = f"all {data.n} rows have an outcome, so nothing was selected: a plain ensemble"
        warnings.warn(message, IdentificationWarning, stacklevel=4)
        return verdict
    verdict = probit_verdict(data)
    if not data.instruments:
        warnings.warn(str(verdict), IdentificationWarning, stacklevel=4)
    return verdict
