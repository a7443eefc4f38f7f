"""`DeepHeckmanRegressor`, the paper's ensembles, and the naive `DeepEnsembleRegressor`."""

from contextlib import suppress
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any

import numpy as np

from heckesel.classical.checks import checked_probit
from heckesel.data import SelectionData, seed_of
from heckesel.diagnostics.column_problems import check_fit, listing_problems
from heckesel.errors import DataError, is_one_of, is_whole
from heckesel.estimators.selection_regressor import SelectionRegressor
from heckesel.io import progress_bar
from heckesel.regressor import identify_data
from heckesel.scales import on_other_scale
from heckesel.tables.fit_input import read_table

AUTO = "auto"
METHODS = ("two-step", "joint")
FOLDS, MEMBERS_ON_FOLDS = 5, 10  # two members for each fold; more change nothing
PAPERS_MEMBERS = 5  # all trained on all rows
LEAST_SELECTED = 100  # so that a fold has twenty rows for early stopping


@dataclass(eq=False, repr=False)
class _NetworkRegressor(SelectionRegressor):
    """The options of both regressors."""

    instruments: Any = None
    _: KW_ONLY
    n_members: int | None = None
    hidden: tuple[int, ...] = (64, 64)
    epochs: int = 1500
    learning_rate: float | None = None
    weight_decay: float = 1e-5
    batch_size: int | None = None
    device: str = "auto"
    dtype: str = "float32"
    n_jobs: int | None = None
    random_state: Any = 0
    progress: bool = True
    missing: str = "error"
    on_problem: str = "error"
    target_transform: Any = None
    unobserved: Any = None
    folds: int | str | None = AUTO
    tails: str = AUTO

    def _config(self, selected: int):
        """The options as a `NetworkConfig` with every "auto" resolved, for `selected` selected
        units.

        "auto" folds are FOLDS if at least LEAST_SELECTED units are selected. On folds, held-out
        rows choose "auto" noise and tails; without, noise is "constant" and tails are "normal".
        Tails are normal with a `target_transform`, since exp(t) has no finite mean.
        """
        from heckesel.deep.training import NetworkConfig, check_whole

        members, folds = self.n_members, self.folds
        if not (folds is None or is_one_of(folds, (AUTO,)) or is_whole(folds)):
            raise DataError(f"folds must be a whole number, 'auto' or None, got {folds!r}")
        if members is not None:
            check_whole("n_members", members, 1)
        if folds == AUTO:
            enough = selected >= LEAST_SELECTED and members != 1
            folds = min(FOLDS, members or FOLDS) if enough else None
        assert not isinstance(folds, str)
        if members is None:
            members = PAPERS_MEMBERS if folds is None else MEMBERS_ON_FOLDS
        noise, tails = getattr(self, "noise", "constant"), self.tails
        if is_one_of(noise, (AUTO,)) and (folds is None or self.method == "joint"):
            noise = "constant"
        if is_one_of(tails, (AUTO,)) and (folds is None or on_other_scale(self)):
            tails = "normal"
        same = ("hidden", "epochs", "learning_rate", "weight_decay", "batch_size", "device")
        given = {name: getattr(self, name) for name in (*same, "dtype", "n_jobs")}
        if hasattr(self, "warm_up"):
            given["warm_up"] = self.warm_up
        return NetworkConfig(n_members=members, folds=folds, noise=noise, tails=tails, **given)

    def _train(self, data: SelectionData, method: str | None) -> None:
        """Set `fitted_` and `info_`; method None is the plain ensemble."""
        from heckesel.deep import methods

        config = self._config(int(data.s.sum()))
        methods.check_outcome(data)
        fit: Any = {
            None: methods.fit_plain,
            "two-step": methods.fit_two_step,
            "joint": methods.fit_joint,
        }[method]
        with progress_bar("training", enabled=self.progress) as progress:
            (self.fitted_,) = fit([data], [seed_of(self.random_state)], config, progress=progress)
        methods.check_training(self.fitted_, config, data)
        info = asdict(self.fitted_.info)
        self.info_ = {name: value for name, value in info.items() if value is not None}


@dataclass(eq=False, repr=False, kw_only=True)
class DeepHeckmanRegressor(_NetworkRegressor):
    """Heckman's selection model with an ensemble of neural networks for the outcome.

    The outcome is y = f(x) + e, where f is a network, and y is observed only if the selection index
    plus an error u is positive. The errors e and u have correlation rho.

    Parameters
    ----------
    instruments : str, int or list of these, optional
        Columns of X, by name or position, that affect selection but not the outcome
        (exclusion restrictions).
    method : {"two-step", "joint"}, default="two-step"
        "two-step" fits a probit, then networks with the inverse Mills ratio as an additional
        regressor. "joint" maximises the likelihood of both equations.
    n_members : int, optional
        Networks in the ensemble. By default 10 on folds and 5 without.
    hidden : tuple of int, default=(64, 64)
        Units in each hidden layer.
    epochs : int, default=1500
        Largest number of passes over the data; with folds, members stop early.
    learning_rate : float, optional
        By default 1e-2.
    warm_up : int, default=100
        Epochs during which "joint" holds rho at 0; with folds it starts at classical estimates
        instead.
    weight_decay : float, default=1e-5
        L2 penalty.
    batch_size : int, optional
        Rows per step; by default all of them.
    device : str, default="auto"
        "cpu", "cuda" or "cuda:0"; "auto" is a GPU if there is one.
    dtype : {"float32", "float64"}, default="float32"
        Precision of training.
    n_jobs : int, optional
        Processes that train members on a CPU, as in joblib. Results are the same.
    random_state : int, RandomState or None, default=0
        Seed. The same seed gives the same fit.
    progress : bool, default=True
        Whether to show a progress bar on a terminal if the fit takes more than a second.
    missing : {"error", "indicator"}, default="error"
        What to do with missing values in X: raise an error, or impute the mean and add a missing
        indicator.
    on_problem : {"error", "fix"}, default="error"
        "fix" omits or transforms unusable columns; see `heckesel.column_report`.
    target_transform : {None, "log", "log1p", "sqrt", "yeo-johnson", "auto"} or (forward, inverse)
        Scale on which the outcome is fitted. Predictions are on the scale of y. "sqrt" is the
        signed root. "yeo-johnson" estimates its parameter. "auto" is the simplest scale whose
        held-out likelihood of y is within one standard error of the best.
    unobserved : number or list of numbers, optional
        Values of y that stand for a missing outcome, such as 0 or 999.
    folds : int, "auto" or None, default="auto"
        Each member holds out one fold, for early stopping and to estimate the noise. None trains
        every member on all rows, as in the paper. "auto" is 5 if at least 100 rows are selected.
    tails : {"auto", "normal"}, default="auto"
        "auto" chooses between normal and t tails by held-out rows; it is "normal" without
        folds and with a `target_transform`.
    noise : {"auto", "constant", "varying"}, default="auto"
        A constant sigma, or one that varies with x ("two-step" on folds). "auto" chooses by
        held-out rows; it is "constant" without folds and for "joint".

    Attributes
    ----------
    identification_ : Identification
        Whether the data support the correction, and the evidence.
    rho_ : ndarray
        Estimates of rho, one per member.
    sigma_ : ndarray
        Estimates of the standard deviation of e, in the same order.
    scale_ : str
        The outcome on the scale of the fit, such as "log(wage)".
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
    >>> frame = hk.datasets.make_controlled(400, rho=0.9, alpha=1.0, seed=0).frame
    >>> model = hk.DeepHeckmanRegressor(["z"], hidden=(8,), n_members=5, epochs=20)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # 20 epochs are too few, as a warning says
    ...     model = model.fit(frame[["x", "z"]], frame["y"])
    >>> model.predict_interval(frame[["x", "z"]], level=0.9).shape
    (400, 2)
    """

    method: str = "two-step"
    warm_up: int = 100
    noise: str = AUTO

    @listing_problems
    def fit(self, X, y, *, selected=None, sample_weight=None, groups=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or frame of shape (n, columns)
            Columns that explain the outcome and selection, instruments included.
        y : array-like of shape (n,)
            Outcomes, NaN where they were not observed.
        selected : array-like of bool of shape (n,), optional
            Which rows were selected; by default those with an outcome.
        sample_weight : array-like of shape (n,), optional
            Weight of each row.
        groups : str or array-like of shape (n,), optional
            Groups of dependent rows, such as the visits of one patient: the name of a column of
            X, which is then not used as a regressor, or one label per row.

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
        if not is_one_of(self.method, METHODS):
            raise DataError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")
        sides = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
        data = read_table(self, X, y, **sides, check=check_fit)
        found = identify_data(data)
        self._train(data, None if data.s.all() else self.method)
        nothing = [np.nan] * len(self.fitted_.members.loss)  # fitted without a correction
        self.rho_, self.sigma_ = (
            np.array(self.info_.get(name, nothing)) for name in ("rho", "sigma")
        )
        rho = self.info_.get("rho")
        if rho is not None:
            ends = {"member_rho_low": float(min(rho)), "member_rho_high": float(max(rho))}
            found = replace(found, evidence=found.evidence | ends)
        self.identification_ = found
        return self


class DeepEnsembleRegressor(_NetworkRegressor):
    """Ensemble of networks fitted to the observed outcomes without a correction (a baseline).

    It assumes that outcomes are missing at random given x. It is biased if selection depends on
    something that also affects the outcome and is not in X. Compare its `log_likelihood` on
    held-out rows with that of `DeepHeckmanRegressor`.

    Parameters
    ----------
    instruments : str, int or list of these, optional
        Columns of X, by name or position, that affect selection but not the outcome
        (exclusion restrictions). Only the probit of selection uses them.
    n_members : int, optional
        Networks in the ensemble. By default 10 on folds and 5 without.
    hidden : tuple of int, default=(64, 64)
        Units in each hidden layer.
    epochs : int, default=1500
        Largest number of passes over the data; with folds, members stop early.
    learning_rate : float, optional
        By default 5e-3.
    weight_decay : float, default=1e-5
        L2 penalty.
    batch_size : int, optional
        Rows per step; by default all of them.
    device : str, default="auto"
        "cpu", "cuda" or "cuda:0"; "auto" uses a GPU if there is one.
    dtype : {"float32", "float64"}, default="float32"
        Precision of training.
    n_jobs : int, optional
        Processes that train members on a CPU, as in joblib. Results are the same.
    random_state : int, RandomState or None, default=0
        Seed. The same seed gives the same fit.
    progress : bool, default=True
        Whether to show a progress bar on a terminal if the fit takes more than a second.
    missing : {"error", "indicator"}, default="error"
        What to do with missing values in X: raise an error, or impute the mean and add a missing
        indicator.
    on_problem : {"error", "fix"}, default="error"
        "fix" omits or transforms unusable columns; see `heckesel.column_report`.
    target_transform : {None, "log", "log1p", "sqrt", "yeo-johnson", "auto"} or (forward, inverse)
        Scale on which the outcome is fitted. Predictions are on the scale of y. "sqrt" is the
        signed root. "yeo-johnson" estimates its parameter. "auto" is the simplest scale whose
        held-out likelihood of y is within one standard error of the best.
    unobserved : number or list of numbers, optional
        Values of y that stand for a missing outcome, such as 0 or 999.
    folds : int, "auto" or None, default="auto"
        Each member holds out one fold, for early stopping and to estimate the level of the noise.
        None trains every member on all rows. "auto" is 5 if at least 100 rows are selected.
    tails : {"auto", "normal"}, default="auto"
        "auto" chooses between normal and t tails by held-out rows.

    Attributes
    ----------
    identification_ : Identification
        Whether the data would support a correction, which this estimator does not make.
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
    >>> model = hk.DeepEnsembleRegressor(["z"], hidden=(8,), n_members=2, epochs=20)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # 20 epochs are too few, as a warning says
    ...     model = model.fit(frame[["x", "z"]], frame["y"])
    >>> mean, std = model.predict(frame[["x"]], return_std=True)
    >>> mean.shape
    (300,)
    """

    @listing_problems
    def fit(self, X, y, *, selected=None, sample_weight=None, groups=None):
        """Fit the networks to the observed outcomes, and a probit to selection.

        Parameters
        ----------
        X : array-like or frame of shape (n, columns)
            Columns that explain the outcome and selection, instruments included.
        y : array-like of shape (n,)
            Outcomes, NaN where they were not observed.
        selected : array-like of bool of shape (n,), optional
            Which rows were selected; by default those with an outcome.
        sample_weight : array-like of shape (n,), optional
            Weight of each row.
        groups : str or array-like of shape (n,), optional
            Groups of dependent rows, such as the visits of one patient: the name of a column of
            X, which is then not used as a regressor, or one label per row.

        Returns
        -------
        DeepEnsembleRegressor
            The fitted estimator itself.

        Raises
        ------
        DataError
            If the data or an option cannot be used.
        HeckeselError
            If training diverged.
        """
        sides = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
        data = read_table(self, X, y, **sides, check=check_fit)
        self.identification_ = identify_data(data, exact=True)
        self._train(data, None)
        if not data.s.all():
            w, names = np.column_stack([data.w, np.ones(data.n)]), (*data.w_names, "Intercept")
            with suppress(DataError):  # columns that separate the selected have no probit
                gamma = checked_probit(w, data.s, names, data.weight).gamma
                self.fitted_ = replace(self.fitted_, gamma=gamma)
        return self
