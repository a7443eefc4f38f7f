"""`DeepEnsembleRegressor`: networks on the observed outcomes, as if selection were chance."""

from __future__ import annotations

from heckesel.diagnostics.verdict import NOT_IDENTIFIED, Identification
from heckesel.errors import DataError
from heckesel.estimators.network_options import network_config, train
from heckesel.estimators.regression import identify, read_table
from heckesel.estimators.selection_regressor import SelectionRegressor


class DeepEnsembleRegressor(SelectionRegressor):
    """The baseline: an ensemble of networks with mean and variance, on the observed outcomes.

    It is right where selection is chance given x, and biased wherever selection depended on
    something that also moved the outcome and is not in X. `predict` answers for everyone all the
    same; compare its `log_likelihood` on held-out rows with that of `DeepHeckmanRegressor`.

    y is missing (NaN) where it was not observed, or `fit` is given `selected`. `instruments`, by
    name or position, are columns of X that moved selection alone: the networks do not see them;
    the probit of selection that stands beside them does.

    * n_members, hidden, epochs, learning_rate, weight_decay, batch_size, dtype, device: the
      ensemble and its training; None takes 10 members on folds and 5 without; device "auto" a GPU
      if there is one, weight_decay "auto" what rows left out prefer
    * missing: "error", or "indicator" to fill missing x with the mean of the fit and point it out
      by a column
    * target_transform: None, "log" or two functions (forward, inverse): the scale of the fit.
      Predictions are of y itself
    * folds: None trains every member on all rows; a number has each member do without one fold,
      end by it, and the level of sigma judged there; "auto" is 5 from 100 selected rows on
    * tails: "normal", or "auto" for those of a t where rows left out prefer them
    * progress: a bar on the terminal, for fits over a second

    After `fit`: `identification_` says whether the data could carry a correction, which this
    estimator does not make; `info_` is the training summary.
    """

    def __init__(
        self,
        instruments=None,
        *,
        n_members: int | None = None,
        hidden: tuple[int, ...] = (64, 64),
        epochs: int = 1500,
        learning_rate: float | None = None,
        weight_decay: float | str = 1e-5,
        batch_size: int | None = None,
        device: str = "auto",
        dtype: str = "float32",
        random_state=0,
        progress: bool = True,
        missing: str = "error",
        target_transform=None,
        folds: int | str | None = "auto",
        tails: str = "auto",
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
        self.tails = tails

    def fit(self, X, y, *, selected=None, sample_weight=None):
        data = read_table(self, X, y, selected=selected, sample_weight=sample_weight)
        possible = True
        try:
            self.identification_ = identify(data)
        except DataError as error:  # what stops a probit does not stop this ensemble
            self.identification_ = Identification(NOT_IDENTIFIED, f"{error}.", {})
            possible = False
        trained = train(self, "deep_ensemble", data, network_config(self, int(data.s.sum())))
        from heckesel.methods.beside_probit import beside_probit

        self.fitted_ = beside_probit(trained, data, possible=possible)
        self.info_ = self.fitted_.info
        return self
