"""`DeepHeckmanRegressor`, the paper's ensembles, and the naive `DeepEnsembleRegressor`."""

from contextlib import suppress
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any

import numpy as np

from heckesel.classical.checks import checked_probit
from heckesel.column_checks import check_fit, check_selection, listing_problems
from heckesel.data import SelectionData, seed_of
from heckesel.errors import DataError, is_one_of
from heckesel.estimators.fitted_model import SelectionRegressor
from heckesel.io import progress_bar
from heckesel.learners.networks import LEAST_FOR_FOLDS, Networks, network_config
from heckesel.regressor import identify_data
from heckesel.scales import on_other_scale
from heckesel.tables.fit_input import read_table

AUTO = "auto"
METHODS = ("two-step", "joint")
MEMBERS_ON_FOLDS = 10  # two members for each fold; more change nothing


@dataclass(eq=False, repr=False)
class _NetworkRegressor(SelectionRegressor):
    """The options of both regressors."""

    instruments: Any = None
    _: KW_ONLY
    networks: Any = None
    tails: str = AUTO
    missing: str = "error"
    on_problem: str = "error"
    target_transform: Any = None
    unobserved: Any = None
    random_state: Any = 0
    verbose: bool = False

    def _config(self, selected: int):
        """The options as a `NetworkConfig` with every "auto" resolved, for `selected` selected
        units.

        On folds, held-out rows choose "auto" noise and tails; without, noise is "constant" and
        tails are "normal". Tails are normal with a `target_transform`, since exp(t) has no finite
        mean.
        """
        networks = self.networks
        if networks is None:
            enough = selected >= LEAST_FOR_FOLDS
            networks = Networks(n_members=MEMBERS_ON_FOLDS) if enough else Networks()
        if not isinstance(networks, Networks):
            raise DataError(f"networks must be hk.Networks(...) or None, got {networks!r}")
        noise, tails = getattr(self, "noise", "constant"), self.tails
        more = {"warm_up": self.warm_up} if hasattr(self, "warm_up") else {}
        config = network_config(networks, selected, **more)
        if is_one_of(noise, (AUTO,)) and (config.folds is None or self.method == "joint"):
            noise = "constant"
        if is_one_of(tails, (AUTO,)) and (config.folds is None or on_other_scale(self)):
            tails = "normal"
        return replace(config, noise=noise, tails=tails)

    def _facts(self) -> list[tuple[str, str]]:
        info = self.info_
        facts = [("members", str(len(info["training_loss"])))]
        if "rho" in info:
            facts.append(
                ("rho of the members", f"{min(info['rho']):.2f} to {max(info['rho']):.2f}")
            )
        if "held_out_loss" in info:
            facts.append(("folds", str(info["folds"])))
            facts.append(("held-out loss", f"{info['held_out_loss']:.4g}"))
        return facts

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
        with progress_bar("training", enabled=self.verbose) as progress:
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
    networks : Networks, optional
        Size, training and device of the networks; its `random_state` is not used. By default
        ``hk.Networks(n_members=10)``, and five members if fewer than 100 rows are selected.
    warm_up : int, default=100
        Epochs during which "joint" holds rho at 0; with folds it starts at classical estimates
        instead.
    random_state : int, RandomState or None, default=0
        Seed. The same seed gives the same fit.
    verbose : bool, default=False
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
    >>> model = hk.DeepHeckmanRegressor(["z"], networks=hk.Networks(hidden=(8,), epochs=20))
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
        check_selection(data)
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
    networks : Networks, optional
        Size, training and device of the networks; its `random_state` is not used. By default
        ``hk.Networks(n_members=10)``, and five members if fewer than 100 rows are selected.
    random_state : int, RandomState or None, default=0
        Seed. The same seed gives the same fit.
    verbose : bool, default=False
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
    >>> model = hk.DeepEnsembleRegressor(["z"], networks=hk.Networks(hidden=(8,), epochs=20))
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
