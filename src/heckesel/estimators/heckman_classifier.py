"""`HeckmanClassifier`: a probit with sample selection, linear or with networks."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score

from heckesel.classical.probit_results import LinearProbit, fit_binary
from heckesel.classical.results import explain_modes, keep_result
from heckesel.data import SelectionData, check_level, check_weights, kind_of_weights, selected_rows
from heckesel.diagnostics.column_problems import check_fit
from heckesel.errors import warn_user
from heckesel.estimators.classifier_networks import (
    check_options,
    fit_binary_networks,
    verdict_on_networks,
)
from heckesel.estimators.group_averages import GroupAverages
from heckesel.estimators.identify import listing_problems
from heckesel.estimators.scoring import class_log_likelihood, codes_of
from heckesel.estimators.selection_regressor import check_predictions, rows_for_target
from heckesel.fit_info import as_dictionary
from heckesel.saving import save
from heckesel.selection_model import warn_of_fit
from heckesel.tables.fit_input import (
    class_codes,
    label_column,
    learn_classes,
    read_columns,
    without_unobserved,
)
from heckesel.tables.formula import with_constants
from heckesel.tables.frames import check_same_order, like_input
from heckesel.verdict.fitted import identify_classes


@dataclass(eq=False, repr=False)
class HeckmanClassifier(GroupAverages, ClassifierMixin, BaseEstimator):
    r"""Probit with sample selection, with a linear index or networks.

    The class is observed only for selected units. In credit scoring this is reject inference:
    repayment is known only for granted loans.

    Parameters
    ----------
    instruments : str, int or list of these, optional
        Columns of X, by name or position, that affect selection but not the class
        (exclusion restrictions).
    outcome : {"linear", "network"}, default="linear"
        "linear" is a linear index, with standard errors. "network" is an ensemble of networks at
        several values of rho, weighted by their held-out likelihood.
    method : {"auto", "ml"}, default="auto"
        Both are maximum likelihood with a linear outcome, the only estimator that the linear
        classifier has. If the likelihood has several maxima over rho, "ml" uses the highest.
        "auto" prefers an interior maximum to one at rho = -1 or 1 that is not clearly higher.
    covariance : {"information", "opg", "robust"}, optional
        Covariance of the estimates of a linear outcome. By default "information", and "robust"
        with probability weights.
    weight_kind : {"frequency", "probability"}, optional
        Meaning of `sample_weight` for a linear outcome. By default whole numbers are frequencies
        and other numbers probability weights. The estimates are the same.
    missing : {"error", "indicator"}, default="error"
        What to do with missing values in X: raise an error, or impute the mean and add a missing
        indicator.
    on_problem : {"error", "fix"}, default="error"
        "fix" omits or transforms unusable columns; see `heckesel.column_report`.
    unobserved : label or list of labels, optional
        Labels that stand for a missing class, such as "unknown" or 9.
    rho_prior : None, "positive", "negative", (low, high) or callable, default=None
        Prior knowledge about rho, for networks: a sign, an interval or a density. A prior with the
        wrong sign is worse than no prior.
    n_members : int, default=5
        Networks at each rho.
    folds : int, default=5
        Number of folds; each network holds out one, for early stopping and to weight rho.
    hidden, epochs, learning_rate, weight_decay, batch_size, device, dtype, random_state, progress
        The networks and their training, as in `DeepHeckmanRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two classes, sorted.
    identification_ : Identification
        Whether the data support the correction, and the evidence.
    rho_ : float or ndarray
        Correlation of the two errors; with networks one value per mode, best first.
    coef_, intercept_ : ndarray and float
        Linear index of `classes_[1]`, in the order of `coef_names_`. Linear outcome only.
    result_ : HeckmanProbitFit
        Standard errors, tests, `modes` and `summary()`. Linear outcome only.
    explanation_ : str
        With method "auto", which maximum is used and why. Linear outcome only.
    candidates_ : DataFrame
        With method "auto", one row for each maximum of the likelihood. Linear outcome only.
    info_ : dict
        Summary of the training. Networks only.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns, if X was a frame.

    Notes
    -----
    The model is :math:`y = 1[f(x) + e > 0]`, observed if :math:`w'\gamma + u > 0`, where e and u
    are standard normal with correlation :math:`\rho`.

    Examples
    --------
    >>> import heckesel as hk
    >>> loans = hk.datasets.make_loans(2000, seed=0).frame
    >>> X, y = loans.drop(columns="default"), loans["default"]
    >>> model = hk.HeckmanClassifier(["leniency"]).fit(X, y)
    >>> model.identification_.verdict
    'supported by the instrument'
    >>> model.predict_proba(X, target="unselected").shape
    (2000, 2)
    """

    instruments: Any = None
    _: KW_ONLY
    outcome: str = "linear"
    method: str = "auto"
    covariance: str | None = None
    weight_kind: str | None = None
    missing: str = "error"
    on_problem: str = "error"
    unobserved: Any = None
    rho_prior: Any = None
    n_members: int = 5
    folds: int = 5
    hidden: tuple[int, ...] = (32, 32)
    epochs: int = 1500
    learning_rate: float | None = None
    weight_decay: float = 1e-3
    batch_size: int | None = None
    device: str = "auto"
    dtype: str = "float32"
    random_state: Any = 0
    progress: bool = True

    @listing_problems
    def fit(self, X, y, *, selected=None, sample_weight=None, groups=None):
        """Fit the model to a table.

        Parameters
        ----------
        X : array-like or frame of shape (n, columns)
            Columns that explain the class and selection, instruments included.
        y : array-like of shape (n,)
            Labels: 0 and 1, booleans or two strings; NaN or None where not observed.
        selected : array-like of bool of shape (n,), optional
            Which rows were selected; by default those with an outcome.
        sample_weight : array-like of shape (n,), optional
            Weight of each row.
        groups : str or array-like of shape (n,), optional
            Groups of dependent rows, such as the visits of one patient: the name of a column of
            X, which is then not used as a regressor, or one label per row.

        Returns
        -------
        HeckmanClassifier
            The fitted estimator itself.

        Raises
        ------
        DataError
            If the data or an option cannot be used, for instance if a column predicts the class
            perfectly.
        """
        check_options(self)
        check_same_order(X, y=y)
        name = str(getattr(y, "name", None) or "y")

        def outcome():
            values = without_unobserved(label_column(y), self.unobserved)
            self.classes_ = learn_classes(values, selected, name)
            return class_codes(values, self.classes_, selected, name)

        linear = self.outcome == "linear"
        data = read_columns(
            self, X, outcome, name, selected, sample_weight, groups, check=check_fit, linear=linear
        )
        return self._fit_linear(data) if linear else self._fit_networks(data)

    def _fit_linear(self, data: SelectionData):
        fit = fit_binary(
            with_constants(data)[0],
            self.classes_,
            covariance=self.covariance,
            weight_kind=kind_of_weights(self.weight_kind, data.weight),
            prefer_interior=self.method == "auto",
        )
        self.identification_ = identify_classes(fit)
        keep_result(self, replace(fit, identification=self.identification_))
        warn_of_fit(self.result_, "a plain probit")
        if self.method == "auto":
            self.explanation_, self.candidates_ = explain_modes(self.result_)
        self.fitted_: Any = LinearProbit(self.result_)
        return self

    def _fit_networks(self, data: SelectionData):
        self.fitted_ = fit_binary_networks(self, data)
        self.info_ = as_dictionary(self.fitted_.info)
        self.identification_ = verdict_on_networks(data, self.fitted_.info.curve)
        modes = self.identification_.evidence.get("modes", [])
        self.rho_ = np.array([mode["rho"] for mode in modes] or [np.nan])
        return self

    def predict(self, X, *, target: str = "population"):
        """Predict the more probable class.

        Parameters
        ----------
        X : array-like or frame of shape (m, columns)
            Units to predict. A frame needs no instrument columns for the population.
        target : {"population", "selected", "unselected"}, default="population"
            Units to which the class refers; see `predict_proba`.

        Returns
        -------
        array or series of shape (m,)
            Labels from `classes_`, in the library that X comes from.
        """
        probability = self.predict_proba(X, target)
        return like_input(
            self.classes_[(probability[:, 1] > 0.5).astype(int)], X, self.outcome_name_
        )

    def predict_proba(self, X, target: str = "population") -> np.ndarray:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like or frame of shape (m, columns)
            Units to predict, as in `predict`.
        target : {"population", "selected", "unselected"}, default="population"
            "population" is any unit with this x. "selected" and "unselected" are given that the
            unit was or was not selected; both need the instrument columns.

        Returns
        -------
        ndarray of shape (m, 2)
            In the order of `classes_`.

        Raises
        ------
        DataError
            If X cannot be used, or `target` is "unselected" and the fit had no unselected unit.
        """
        x, w, target = rows_for_target(self, X, target)
        return self.fitted_.probabilities(x, w, target)

    def predict_proba_interval(
        self, X, level: float = 0.9, target: str = "population"
    ) -> np.ndarray:
        """Predict confidence intervals for the probability of `classes_[1]`.

        Parameters
        ----------
        X : array-like or frame of shape (m, columns)
            Units to predict, as in `predict`.
        level : float, default=0.9
            Confidence level, between 0 and 1.
        target : {"population", "selected", "unselected"}, default="population"
            Units to which the probability refers; see `predict_proba`.

        Returns
        -------
        ndarray of shape (m, 2)
            Lower and upper end, both between 0 and 1.

        Raises
        ------
        DataError
            If `level` is not between 0 and 1, or X cannot be used.

        Warns
        -----
        IdentificationWarning
            If a linear fit with a robust covariance or probability weights has rho = -1 or 1; the
            intervals then treat rho as known.

        Notes
        -----
        Intervals are computed for z, where P = Phi(z). A linear outcome uses the delta method if
        the instruments identify rho well. Otherwise it uses the profile likelihood: the interval
        covers all values of rho that the data allow. Networks use the disagreement between members
        and between values of rho.
        """
        x, w, target = rows_for_target(self, X, target)
        check_level(level)
        linear = self.outcome == "linear"
        if linear and self.result_.over_rho is None and self.result_.cov_given_rho is not None:
            warn_user(f"the fit is at rho = {self.rho_:+.0f}; these intervals treat rho as known")
        return self.fitted_.interval(x, w, target, level)

    def score(self, X, y, *, selected=None, sample_weight=None) -> float:
        """Compute the accuracy, given selection, on the rows with an outcome.

        Parameters
        ----------
        X, y, selected, sample_weight
            As in `fit`.

        Returns
        -------
        float
            Share of correct classes.

        Notes
        -----
        Only observed classes can be scored, so the more probable class given selection is scored.
        To choose between models, prefer `log_likelihood`, as
        ``scoring=hk.joint_log_likelihood_scorer`` does.
        """
        check_same_order(X, y=y, selected=selected, sample_weight=sample_weight)
        second = self.predict_proba(X, "selected")[:, 1] > 0.5
        codes = codes_of(self, y, selected)
        seen = selected_rows(codes, None, self.outcome_name_)
        weight = check_weights(sample_weight, len(codes), seen)[seen]
        return float(accuracy_score(codes[seen] == 1.0, second[seen], sample_weight=weight))

    def log_likelihood(self, X, y, *, selected=None, sample_weight=None) -> float:
        """Compute the joint log-likelihood of selection and class, as a mean over units.

        Parameters
        ----------
        X, y, selected, sample_weight
            As in `fit`.

        Returns
        -------
        float
            Mean of log P(class, selected) for selected and log P(unselected) for other units. A
            fit without unselected units gives them probability 0.
        """
        return class_log_likelihood(self, X, y, selected, sample_weight)

    def save(self, path) -> None:
        """Save the fitted model to one file, which `hk.load` reads.

        Parameters
        ----------
        path : str or path
            File to write, such as "loans.heckesel". It holds no pickle and no rows of the data.
        """
        save(self, path)

    def check_loaded(self) -> None:
        """Predict two rows, which fails if parts of the file contradict each other."""
        if len(self.classes_) != 2 or not self.classes_[0] < self.classes_[1]:
            raise ValueError("classes that are not two sorted labels")
        check_predictions(self, self.fitted_.probabilities)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "indicator"
        return tags
