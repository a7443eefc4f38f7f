"""`WeightedEnsembleRegressor`: networks on observed outcomes, weighted to look like everyone."""

from __future__ import annotations

import warnings

import numpy as np

from heckesel.data import SelectionData
from heckesel.diagnostics.verdict import NOT_IDENTIFIED, Identification
from heckesel.errors import DataError, IdentificationWarning
from heckesel.estimators.network_options import beside_probit, network_config, train
from heckesel.estimators.regression import identify, read_table
from heckesel.estimators.selection_regressor import SelectionRegressor
from heckesel.numeric_input import numeric
from heckesel.tables.frames import check_same_order


class WeightedEnsembleRegressor(SelectionRegressor):
    """The usual cure: an ensemble whose units count by one over their chance of selection.

    The chance comes from a probit on all columns of X, instruments included, or is given to `fit`
    as `propensity`. Weighting mends what the observed units lack in x and in the instruments. It
    cannot mend selection on anything that is not in X: where the errors of selection and outcome
    are correlated, the observed y at each x is already the wrong one, however it is weighted.

    y is missing (NaN) where it was not observed, or `fit` is given `selected`. `instruments`, by
    name or position, are columns of X that moved selection alone: the networks do not see them.

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
    estimator does not make; `propensity_` holds the chances used, `info_` the training summary.
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

    def fit(self, X, y, *, selected=None, sample_weight=None, propensity=None):
        """propensity : (n,) P(selected) of every row where it is known."""
        data = read_table(self, X, y, selected=selected, sample_weight=sample_weight)
        check_same_order(X, propensity=propensity)
        given = None if propensity is None else _checked(propensity, data)
        possible = True
        try:
            self.identification_ = identify(data)
        except DataError as error:
            if given is None:
                raise
            self.identification_ = Identification(NOT_IDENTIFIED, f"{error}.", {})
            possible = False
        trained, self.propensity_ = _train(self, data, given)
        self.fitted_ = beside_probit(trained, data, possible=possible)
        self.info_ = self.fitted_.info
        return self


def _train(model, data: SelectionData, propensity):
    """The ensemble and the propensities behind its weights; without selection all are one."""
    from heckesel.methods.weighted_ensemble import (
        SMALLEST_PROPENSITY,
        WeightedConfig,
        estimated_propensity,
    )

    network = network_config(model, int(data.s.sum()))
    if propensity is None:
        propensity = np.ones(data.n) if data.s.all() else estimated_propensity(data)
    tiny = np.count_nonzero(propensity[data.s] < SMALLEST_PROPENSITY)
    if tiny:
        warnings.warn(
            f"{tiny} rows with an outcome had a chance of selection below {SMALLEST_PROPENSITY:g} "
            "and are weighted as if it were that",
            IdentificationWarning,
            stacklevel=3,
        )
    config = WeightedConfig(propensity=propensity, network=network)
    return train(model, "weighted_ensemble", data, config), propensity


def _checked(propensity, data: SelectionData) -> np.ndarray:
    values = numeric(propensity, "propensity")
    if values.shape != (data.n,):
        raise DataError(f"propensity has shape {values.shape} but there are {data.n} rows")
    bad = np.flatnonzero(~((values > 0) & (values <= 1)))
    if len(bad):
        raise DataError(
            f"propensity must lie above 0 and at most at 1 but row {bad[0]} has {values[bad[0]]:g}"
        )
    return values
