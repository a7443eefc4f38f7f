"""`DeepHeckmanRegressor`: Heckman's selection model with neural networks for the outcome."""

from __future__ import annotations

import os

import numpy as np

from heckesel.data import SelectionData
from heckesel.diagnostics.verdict import with_members
from heckesel.errors import DataError, is_one_of
from heckesel.estimators.network_options import ON_FOLDS, train, training_options, training_plan
from heckesel.estimators.selection_regressor import SelectionRegressor, identify
from heckesel.methods import DEEP, METHODS, load_method, names_of
from heckesel.tables.cluster import cluster_of
from heckesel.tables.fit_input import read_table


class DeepHeckmanRegressor(SelectionRegressor):
    """Heckman's selection model with an ensemble of neural networks for the outcome.

    The outcome is y = f(x) + e, where f is a network, and y is observed only if the selection
    index plus an error u is positive. The errors e and u have correlation rho.

    Parameters
    ----------
    instruments : str, int or list of these, optional
        Columns of X, by name or position, that affect selection but not the outcome
        (exclusion restrictions).
    method : {"two-step", "joint", "averaged", "profile", "auto"}, default="two-step"
        "two-step" fits a probit, then networks with the inverse Mills ratio as an extra term.
        "joint" maximises one likelihood. "averaged" averages the two-step and a likelihood in
        which selection depends on the outcome and errors may have any shape; it uses splines if
        their held-out loss is within one standard error of the networks', and takes about six
        times as long. "profile" evaluates the likelihood on held-out folds for each rho and
        averages predictions over rho. "auto" fits splines with normal, skewed, heavy-tailed and
        heteroskedastic errors at all values of rho, and weights them by the likelihood of
        held-out rows; it uses the two-step if the outcome has few values or a spike.
    n_members : int, optional
        Networks in the ensemble. By default 10 on folds ("profile": 20) and 5 without.
    hidden : tuple of int, default=(64, 64)
        Units in each hidden layer.
    epochs : int, default=1500
        Passes over the data, at most; with folds, members stop early.
    learning_rate : float, optional
        By default the method chooses it.
    warm_up : int, default=100
        Epochs during which "joint" holds rho at 0.
    weight_decay : float or "auto", optional
        L2 penalty. By default 1e-5 ("profile": 1e-3). "auto" lets held-out rows choose; it is
        not available for "profile".
    batch_size : int, optional
        Rows per step; by default all of them.
    device : str, default="auto"
        "cpu", "cuda" or "cuda:0"; "auto" is a GPU if there is one.
    dtype : {"float32", "float64"}, default="float32"
        Precision of training.
    random_state : int, RandomState or None, default=0
        Seed. The same seed gives the same fit.
    progress : bool, default=True
        Whether to show a progress bar on a terminal if the fit takes more than a second.
    missing : {"error", "indicator"}, default="error"
        What to do with missing values in X: raise an error, or impute the mean and add a missing
        indicator.
    target_transform : None, "log" or (forward, inverse), default=None
        Scale on which the outcome is fitted. Predictions are on the scale of y.
    folds : int, "auto" or None, default="auto"
        Each member holds out one fold, for early stopping and to estimate the noise. None trains
        every member on all rows, as in the paper. "auto" is 5 if at least 100 rows are selected.
    noise : {"auto", "constant", "varying"}, default="auto"
        One sigma, or a sigma for each x, which needs folds. "auto" lets held-out rows choose; it
        is "constant" without folds, for "profile" and with t errors.
    tails : {"auto", "normal"}, default="auto"
        "auto" lets held-out rows choose between normal and t tails; it is "normal" without
        folds, for "profile", with t errors and with a `target_transform`.
    errors : {"normal", "t", "auto"}, default="normal"
        "t" estimates the degrees of freedom ("joint" only, population target only); "auto" lets
        held-out rows choose ("joint" on folds).
    selection : {"linear", "network", "auto"}, default="linear"
        A probit, or cross-fitted networks ("two-step" on folds); "auto" lets held-out rows
        choose, and is a probit without folds.
    rho_prior : None, "positive", "negative", (low, high) or callable, default=None
        Prior knowledge about rho, for "profile": a sign, an interval or a density. A wrong sign
        does more harm than no prior.

    Attributes
    ----------
    identification_ : Identification
        Whether the data support the correction, and the evidence.
    rho_ : ndarray
        Estimates of rho, one per member; for "profile" one per mode, best first.
    sigma_ : ndarray
        Estimates of the standard deviation of e, in the same order.
    explanation_ : str
        With method "auto", what was fitted and why.
    info_ : dict
        Summary of the training.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns, if X was a frame.

    Examples
    --------
    >>> import warnings
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(300, rho=0.9, alpha=1.0, seed=0).frame
    >>> model = hk.DeepHeckmanRegressor(["z"], hidden=(8,), n_members=2, epochs=20)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # 20 epochs are too few, as a warning says
    ...     model = model.fit(frame[["x", "z"]], frame["y"])
    >>> model.identification_.verdict
    'identified by an instrument'
    >>> model.predict_interval(frame[["x", "z"]], level=0.9).shape
    (300, 2)
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
        """Fit the model to a table, or to Parquet files.

        Parameters
        ----------
        X : array-like, frame, str or path
            Columns that explain the outcome and selection, instruments included. A path names
            Parquet files: a file, a folder or a pattern. Files are read again for every epoch
            and are never in memory as a whole.
        y : array-like of shape (n,) or str
            Outcomes, NaN where they were not observed; with files the name of a column.
        selected : array-like of bool of shape (n,) or str, optional
            Which rows were selected, if missing y does not show it; with files the name of a
            column.
        sample_weight : array-like of shape (n,) or str, optional
            Weight of each row; with files the name of a column.
        columns : list of str, optional
            With files, the columns of X; by default all that have no other role.
        client : dask.distributed.Client, optional
            Its workers train the members. The networks are the same.

        Returns
        -------
        DeepHeckmanRegressor
            The fitted estimator itself.

        Raises
        ------
        DataError
            If the data or an option cannot be used.
        HeckeselError
            If training diverged.

        Warns
        -----
        IdentificationWarning
            If there is no instrument, or no unselected row.
        ConvergenceWarning
            If training needs more epochs.
        """
        known = names_of(DEEP)
        if not is_one_of(self.method, known):
            raise DataError(f"method must be one of {', '.join(known)}, got {self.method!r}")
        if self.rho_prior is not None and self.method not in ("auto", "profile"):
            raise DataError(
                f"rho_prior needs method='auto' or 'profile', but method is {self.method!r}"
            )
        workers = None if client is None else cluster_of(client)
        sides = {"selected": selected, "sample_weight": sample_weight}
        if isinstance(X, str | os.PathLike):
            from heckesel.estimators.deep_heckman_files import fit_files

            config = self._config(0, workers)  # files are not split into folds
            fit_files(self, X, y, **sides, columns=columns, config=config, workers=workers)
        else:
            if columns is not None:
                raise DataError("columns= is for files; for a frame pass X[columns]")
            data = read_table(self, X, y, **sides)
            self.identification_ = identify(data)
            self.fitted_ = self._train(data, self._config(int(data.s.sum()), workers))
        self.info_ = self.fitted_.info
        if self.method == "auto":
            self.explanation_ = self.info_.get("explanation", self.identification_.sentence)
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
        return np.full(len(self.fitted_.members.parameters), np.nan)

    def _config(self, selected: int, workers):
        from heckesel.networks.training.config import NetworkConfig

        profile, decay = self.method == "profile", self.weight_decay
        plan = training_plan(self, selected, needs_folds=self.method in ON_FOLDS)
        return NetworkConfig(
            **training_options(self),
            n_members=plan.n_members,
            warm_up=0 if profile else self.warm_up,
            weight_decay=weight_decay_of(self.method) if decay is None else decay,
            folds=plan.folds,
            noise=plan.noise,
            tails=plan.tails,
            errors=plan.errors,
            selection=plan.selection,
            map_over_workers=workers,
        )

    def _train(self, data: SelectionData, network):
        name = names_of(DEEP)[self.method] if not data.s.all() else "deep_ensemble"
        build = getattr(load_method(name), "options", None)
        return train(self, name, data, build(network, self) if build else network)


def weight_decay_of(method: str) -> float:
    """What a method's networks take where the user leaves it open."""
    return METHODS[names_of(DEEP)[method]].weight_decay
