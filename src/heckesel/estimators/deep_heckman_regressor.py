"""`DeepHeckmanRegressor`: from a table with missing outcomes to predictions for everyone."""

from __future__ import annotations

import os

import numpy as np

from heckesel.data import SelectionData
from heckesel.diagnostics.verdict import with_members
from heckesel.errors import DataError, is_one_of
from heckesel.estimators.network_options import ON_FOLDS, judging, train, training_options
from heckesel.estimators.regression import identify, read_table
from heckesel.estimators.selection_regressor import SelectionRegressor
from heckesel.tables.cluster import cluster_of

METHODS = {
    "two-step": "heckman_two_step",
    "joint": "heckman_joint",
    "averaged": "heckman_averaged",
    "profile": "heckman_profile",
}
# Of a network method that leaves them open: the paper's, and what held-out folds chose.
WEIGHT_DECAY = {"two-step": 1e-5, "joint": 1e-5, "averaged": 1e-5, "profile": 1e-3}


class DeepHeckmanRegressor(SelectionRegressor):
    """Heckman's selection model with a neural network as outcome function, as an ensemble.

    y is missing (NaN) where it was not observed, or `fit` is given `selected`. `instruments`,
    by name or position, are columns of X that moved selection but not the outcome.

    * method: "two-step" (probit, then a network with the Mills ratio beside it), "joint" (one
      likelihood; `warm_up` epochs with rho held at 0), "averaged" (the two-step, a likelihood in
      which selection looks at the outcome and errors have any shape, and splines where rows left
      out do not tell them from networks; on folds, six times as long) or "profile" (the likelihood
      over every rho, judged on folds; predictions average over what it leaves open; networks, or
      splines where rows left out prefer them)
    * rho_prior: for "profile", what is known about rho: None, "positive", "negative", an interval
      or a density. A wrong sign costs more than none
    * n_members, hidden, epochs, learning_rate, weight_decay, batch_size, dtype, device: the
      ensemble and its training; None takes the method's own and 10 members on folds (profile: 20),
      5 without; device "auto" a GPU if there is one, weight_decay "auto" what rows left out prefer
      (not with "profile")
    * folds: None trains every member on all rows, as in the paper; a number has each member do
      without one fold, end by it, and sigma judged there: calibrated where networks would
      overfit; "auto" is 5 from 100 selected rows on
    * noise: "constant", "varying" (a sigma for every x; needs folds) or "auto", what rows left
      out prefer; one sigma where there are none, and with "profile" or t errors
    * tails: "normal", or "auto" for those of a t where rows left out prefer them; normal where
      there are none, with "profile" or t errors, and with a target_transform
    * errors: "normal", or "t" with estimated degrees of freedom (joint; population target only),
      or "auto", whichever rows left out prefer (joint on folds)
    * selection: "linear", "network" for an index of networks, cross-fitted (two-step on folds), or
      "auto", whichever describes selection better on rows left out; a probit where there are none
    * progress: a bar on the terminal, for fits over a second
    * missing: "error", or "indicator" to fill missing x with the mean of the fit and point it out
      by a column
    * target_transform: None, "log" or two functions (forward, inverse): the scale of the fit.
      Predictions are of y itself

    After `fit`: `identification_` says whether the data can carry the correction, `rho_` and
    `sigma_` hold one value a member (profile: a mode, best first), `info_` the training summary.
    """

    def __init__(
        self,
        instruments=None,
        *,
        method: str = "two-step",
        n_members: int | None = None,
        hidden: tuple[int, ...] = (64, 64),
        epochs: int = 1500,
        learning_rate: float | None = None,
        warm_up: int = 100,
        weight_decay: float | str | None = None,
        batch_size: int | None = None,
        device: str = "auto",
        dtype: str = "float32",
        random_state=0,
        progress: bool = True,
        missing: str = "error",
        target_transform=None,
        folds: int | str | None = "auto",
        noise: str = "auto",
        tails: str = "auto",
        errors: str = "normal",
        selection: str = "linear",
        rho_prior=None,
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
        self.tails = tails
        self.errors = errors
        self.selection = selection
        self.rho_prior = rho_prior

    def fit(self, X, y, *, selected=None, sample_weight=None, columns=None, client=None):
        """Fit to a table, or to Parquet files: X is then their path (a file, a folder or a pattern)
        and y, `selected` and `sample_weight` are names of columns. All other columns are X, or
        those that `columns` lists. Rows are read again for every epoch and never held together.

        With `client`, a `dask.distributed.Client`, its workers train blocks of the members; the
        networks are the same.
        """
        if not is_one_of(self.method, METHODS):
            raise DataError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")
        if self.rho_prior is not None and self.method != "profile":
            raise DataError(f"rho_prior needs method='profile', and this one is {self.method!r}")
        spread = None if client is None else cluster_of(client)
        sides = {"selected": selected, "sample_weight": sample_weight}
        if isinstance(X, str | os.PathLike):
            from heckesel.estimators.deep_heckman_files import fit_files

            config = self._config(0, spread)  # files are read again and again, not dealt out
            fit_files(self, X, y, **sides, columns=columns, config=config, spread=spread)
        else:
            if columns is not None:
                raise DataError("columns= is for files; of a frame pass X[columns]")
            data = read_table(self, X, y, **sides)
            self.identification_ = identify(data)
            self.fitted_ = self._train(data, self._config(int(data.s.sum()), spread))
        self.info_ = self.fitted_.info
        self.rho_, self.sigma_ = (self._values(name) for name in ("rho", "sigma"))
        self.identification_ = with_members(
            self.identification_, self.info_.get("member_rho", self.info_.get("rho"))
        )
        return self

    def _values(self, name: str) -> np.ndarray:
        if "modes" in self.info_:
            return np.array([mode[name] for mode in self.info_["modes"]])
        if name in self.info_:
            return np.array(self.info_[name])
        return np.full(len(self.fitted_.members.theta), np.nan)

    def _config(self, selected: int, spread):
        from heckesel.networks.training.config import NetworkConfig

        profile, decay = self.method == "profile", self.weight_decay
        judged = judging(self, selected, needs_folds=self.method in ON_FOLDS)
        return NetworkConfig(
            **training_options(self),
            n_members=judged.n_members,
            warm_up=0 if profile else self.warm_up,
            weight_decay=WEIGHT_DECAY[self.method] if decay is None else decay,
            folds=judged.folds,
            noise=judged.noise,
            tails=judged.tails,
            errors=judged.errors,
            selection=judged.selection,
            spread=spread,
        )

    def _train(self, data: SelectionData, network):
        name = METHODS[self.method] if not data.s.all() else "deep_ensemble"
        config: object = network
        if name == "heckman_profile":
            from heckesel.methods.heckman_profile import ProfileConfig

            config = ProfileConfig(network, self.rho_prior)
        return train(self, name, data, config)
