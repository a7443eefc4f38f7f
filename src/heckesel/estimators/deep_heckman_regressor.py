"""`DeepHeckmanRegressor`: Heckman's selection model with splines and networks for the outcome."""

import os
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from heckesel.classical.checks import warn_without_density
from heckesel.data import SelectionData
from heckesel.diagnostics.column_problems import check_fit
from heckesel.errors import DataError, is_one_of
from heckesel.estimators.identify import listing_problems
from heckesel.estimators.network_options import NetworkRegressor, network_config, train
from heckesel.estimators.selection_regressor import identify
from heckesel.fit_info import Candidate, as_dictionary
from heckesel.io import cluster_of
from heckesel.methods import DEEP, method_of, names_of, with_error_models, with_rho_prior
from heckesel.scales import target_transform
from heckesel.tables.fit_input import read_table
from heckesel.verdict.identify import NOTHING_TO_CORRECT, conclude


@dataclass(eq=False, repr=False, kw_only=True)
class DeepHeckmanRegressor(NetworkRegressor):
    """Heckman's selection model with splines and neural networks for the outcome.

    The outcome is y = f(x) + e, where f is a sum of splines or a network, and y is observed only if
    the selection index plus an error u is positive. The errors e and u have correlation rho.

    Parameters
    ----------
    instruments : str, int or list of these, optional
        Columns of X, by name or position, that affect selection but not the outcome
        (exclusion restrictions).
    method : {"auto", "two-step", "joint", "averaged", "profile"}, default="auto"
        "auto" weights splines with normal, skewed, heavy-tailed and heteroskedastic errors at all
        values of rho, and the networks of the two-step, by the likelihood of held-out rows. It
        uses only the two-step if the outcome has few values or a spike, with a `target_transform`,
        and for files. For tables with more than about 20,000 rows, it uses a weighted random
        sample of that size. "two-step" fits a probit, then networks with the inverse Mills ratio
        as an additional regressor. "joint" maximises the likelihood of both equations. "averaged"
        averages the two-step and a likelihood in which selection depends on the outcome and
        errors may have any shape; it uses splines if their held-out loss is within one standard
        error of the networks', and takes about six times as long as the two-step. "profile"
        evaluates the likelihood on held-out folds for each rho and averages predictions over rho.
    n_members : int, optional
        Networks in the ensemble. By default 10 on folds ("profile": 20) and 5 without.
    hidden : tuple of int, default=(64, 64)
        Units in each hidden layer.
    epochs : int, default=1500
        Largest number of passes over the data; with folds, members stop early.
    learning_rate : float, optional
        The default depends on the method.
    warm_up : int, default=100
        Epochs during which "joint" holds rho at 0.
    weight_decay : float or "auto", optional
        L2 penalty. By default 1e-5 ("profile": 1e-3). "auto" chooses it by held-out rows and is
        not available for "profile".
    batch_size : int, optional
        Rows per step; by default all of them. If a table has more than 10,000 rows,
        ``method="auto"`` uses 1,024, and fewer epochs.
    device : str, default="auto"
        "cpu", "cuda" or "cuda:0"; "auto" is a GPU if there is one. ``"cuda:*"`` uses all GPUs of
        this machine.
    dtype : {"float32", "float64"}, default="float32"
        Precision of training.
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
    noise : {"auto", "constant", "varying"}, default="auto"
        A constant sigma, or one that varies with x, which needs folds. "auto" chooses by held-out
        rows; it is "constant" without folds, for "profile", with t or shape errors and with
        `scale`.
    tails : {"auto", "normal"}, default="auto"
        "auto" chooses between normal and t tails by held-out rows; it is "normal" without
        folds, for "profile", with t or shape errors, with `scale` and with a
        `target_transform`.
    errors : {"normal", "t", "shape", "auto"}, default="normal"
        Error distribution of "joint" and "profile". "t" estimates the degrees of freedom ("joint"
        only, population target only). "shape" estimates skewness and tails (sinh-arcsinh
        errors). "auto" chooses between normal and t by held-out rows ("joint" on folds).
    scale : str, int or list of these, optional
        Columns of X, by name or position, in which log sigma is linear ("joint" and "profile").
    selection : {"linear", "network", "auto"}, default="linear"
        A probit, or cross-fitted networks ("two-step" on folds). "auto" chooses by held-out rows;
        it is a probit without folds.
    rho_prior : None, "positive", "negative", (low, high) or callable, default=None
        Prior knowledge about rho, for "auto" and "profile": a sign, an interval or a density. A
        prior with the wrong sign is worse than no prior.

    Attributes
    ----------
    identification_ : Identification
        Whether the data support the correction, and the evidence.
    rho_ : ndarray
        Estimates of rho, one per member; for "auto" one per point of the mixture, for "profile" one
        per mode, best first.
    sigma_ : ndarray
        Estimates of the standard deviation of e, in the same order.
    scale_ : str
        The outcome on the scale of the fit, such as "log(wage)".
    explanation_ : str
        With method "auto", what was fitted and why.
    candidates_ : DataFrame
        With method "auto", one row for each candidate, best first: outcome, estimator, errors, rho,
        weight, held-out log-likelihood, and its difference from the best with a standard error.
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
    >>> model.identification_.verdict
    'supported by the instrument'
    >>> model.predict_interval(frame[["x", "z"]], level=0.9).shape
    (400, 2)
    """

    method: str = "auto"
    warm_up: int = 100
    weight_decay: float | str | None = None
    noise: str = "auto"
    errors: str = "normal"
    scale: Any = None
    selection: str = "linear"
    rho_prior: Any = None

    @listing_problems
    def fit(
        self, X, y, *, selected=None, sample_weight=None, groups=None, columns=None, client=None
    ):
        """Fit the model to a table, or to Parquet files.

        Parameters
        ----------
        X : array-like, frame, str or path
            Columns that explain the outcome and selection, instruments included. A path names
            Parquet files: a file, a folder or a pattern. Files are read again for every epoch
            and are never held in memory as a whole.
        y : array-like of shape (n,) or str
            Outcomes, NaN where they were not observed; with files the name of a column.
        selected : array-like of bool of shape (n,) or str, optional
            Which rows were selected, by default those with an outcome; with files the name of
            a column.
        sample_weight : array-like of shape (n,) or str, optional
            Weight of each row; with files the name of a column.
        groups : str or array-like of shape (n,), optional
            Groups of dependent rows, such as the visits of one patient: the name of a column of
            X, which is then not used as a regressor, or one label per row.
        columns : list of str, optional
            With files, the columns of X; by default all that have no other role.
        client : dask.distributed.Client, optional
            Its workers train the members and fit the splines. The results are the same.

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
        if self.rho_prior is not None and not method_of(self).rho_prior:
            ways = " or ".join(map(repr, with_rho_prior()))
            raise DataError(f"rho_prior needs method={ways}, but method is {self.method!r}")
        self._check_error_model()
        workers = None if client is None else cluster_of(client)
        sides = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
        if isinstance(X, str | os.PathLike):
            from heckesel.estimators.deep_heckman_files import fit_files

            # `fit_files` refuses a scale that needs all rows
            self.transform_ = target_transform(self.target_transform)
            config = self._network(0, workers)  # files are not split into folds
            fit_files(self, X, y, **sides, columns=columns, config=config, workers=workers)
        else:
            if columns is not None:
                raise DataError("columns= is for files; for a frame pass X[columns]")
            data = read_table(self, X, y, **sides, check=check_fit)
            self.identification_ = identify(data)
            scale = self._scale_columns(data)
            network = self._network(int(data.s.sum()), workers, scale=scale)
            name = "deep_ensemble" if data.s.all() else names_of(DEEP)[self.method]
            self.fitted_ = train(self, name, data, network)
        info = self.fitted_.info
        self.info_ = as_dictionary(info)
        self.rho_, self.sigma_ = (self._values(name) for name in ("rho", "sigma"))
        rho = getattr(info, "member_rho", getattr(info, "rho", None))
        if rho is not None and self.identification_.verdict != NOTHING_TO_CORRECT:
            found = {"member_rho_low": float(np.min(rho)), "member_rho_high": float(np.max(rho))}
            self.identification_ = conclude(self.identification_.evidence | found)
        return self

    @property
    def explanation_(self) -> str:
        """What was fitted and why, for a method that chooses."""
        return self._chosen().get("explanation", self.identification_.sentence)

    @property
    def candidates_(self) -> pd.DataFrame:
        """The candidates, best first, for a method that chooses."""
        return pd.DataFrame(
            self._chosen().get("candidates", []), columns=[each.name for each in fields(Candidate)]
        )

    def _chosen(self) -> dict:
        if not method_of(self).explains or not hasattr(self, "info_"):
            raise AttributeError("only a model fitted with method='auto' has candidates")
        return self.info_

    def _values(self, name: str) -> np.ndarray:
        """NaN for every member of networks that were fitted without a correction."""
        found = getattr(self.fitted_.info, name, None)
        if found is None:
            return np.full(len(self.fitted_.members.parameters), np.nan)
        return np.array(found)

    def _check_error_model(self) -> None:
        """Refuse errors="shape" and scale= if the method does not have them."""
        given = self._error_option()
        if given is None or method_of(self).error_models:
            return
        ways = " or ".join(map(repr, with_error_models()))
        raise DataError(f"{given} needs method={ways}, but method is {self.method!r}")

    def _error_option(self) -> str | None:
        """The option that sets sinh-arcsinh errors or a sigma that depends on columns."""
        if is_one_of(self.errors, ("shape",)):
            return "errors='shape'"
        return None if self.scale is None else "scale="

    def _scale_columns(self, data: SelectionData) -> tuple[int, ...]:
        """Positions in x of the columns in `scale`, once the data are suited to the error model."""
        given = self._error_option()
        if given is not None and data.s.all():
            raise DataError(
                "every unit has an outcome, so an ensemble of networks is fitted, which estimates "
                f"sigma(x) itself; omit {given}"
            )
        if is_one_of(self.errors, ("shape",)):
            warn_without_density(data)
        if self.scale is None:
            return ()
        names = self.columns_.x_names_of(self.scale, "scale")
        if not names:
            raise DataError("scale= names no column; omit it for a constant sigma")
        return tuple(data.x_names.index(name) for name in names)

    def _network(self, selected: int, workers, *, scale: tuple[int, ...] = ()):
        return network_config(self, selected, scale, warm_up=self.warm_up, map_over_workers=workers)
