"""`HeckmanClassifier`: two classes, seen only for the selected."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from heckesel.classical.linear_model import LinearProbit
from heckesel.classical.probit_results import fit_binary
from heckesel.classical.results import explain_modes, keep_result
from heckesel.column_checks import check_fit, listing_problems
from heckesel.correction.corrected import CorrectedClasses
from heckesel.data import SelectionData, check_level, kind_of_weights, marked_rows
from heckesel.errors import DataError, is_one_of, warn_user
from heckesel.estimators.fitted_model import FittedModel, check_same_length, rows_for_target
from heckesel.regressor import check_enough, check_options, facts_of_learner, learn
from heckesel.selection_model import warn_of_fit
from heckesel.tables.fit_input import (
    class_codes,
    label_column,
    learn_classes,
    read_columns,
    without_unobserved,
)
from heckesel.tables.formula import with_constants
from heckesel.tables.frames import check_same_order
from heckesel.verdict.linear import identify_classes

METHODS = ("auto", "ml")


@dataclass(eq=False, repr=False)
class HeckmanClassifier(ClassifierMixin, FittedModel):
    r"""Probabilities of two classes for everyone, when the class is seen only for the selected.

    In credit scoring this is reject inference: repayment is known only for granted loans.

    Parameters
    ----------
    instruments : str, int or list of these, optional
        Columns of X, by name or position, that affect selection but not the class
        (exclusion restrictions).
    learner : {"auto", "linear", "splines", "boosting"} or estimator, default="auto"
        Learner of the probability of the second class among the selected, as in
        `HeckmanRegressor`: a regressor of 0 and 1.
    method : {"auto", "ml"}, default="auto"
        ``"auto"`` takes rho from the instrument and a prior calibrated on real data. ``"ml"`` is
        the linear probit with sample selection, with standard errors.
    rho_prior : float, "uniform" or callable, optional
        Prior of rho for ``"auto"``, as in `HeckmanRegressor`.
    covariance : {"information", "opg", "robust"}, optional
        Covariance of the estimates of ``"ml"``. By default "information", and "robust" with
        probability weights.
    cv : int, splitter, iterable or "auto", default="auto"
        Folds of the learner and of selection.
    missing : {"error", "indicator"}
        "indicator" imputes the mean of a missing x and adds a missing indicator.
    on_problem : {"error", "fix"}
        "fix" omits or transforms unusable columns; see `heckesel.column_report`.
    unobserved : label or list of labels, optional
        Values of y that stand for a missing class.
    random_state : int, RandomState or None, default=0
        Seed of folds and learners.
    n_jobs : int, optional
        Workers for the folds of the learner, through joblib.
    verbose : bool, default=False
        Whether to print the stages of the fit.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    identification_ : Identification
        The verdict: how far the correction can be trusted, why, and what to do.
    rho_ : float
        Posterior mean of the correlation of the errors, or its estimate with ``"ml"``.
    result_ : HeckmanProbitFit
        The probit with sample selection, for ``"ml"``.

    Notes
    -----
    The probability moves along its probit, from :math:`g` of the selected to
    :math:`\Phi(\Phi^{-1}(g) + \theta\,(h_0 - m)/c)` of the unselected, with c the root mean square
    of :math:`\phi(\Phi^{-1}(g))`.

    Examples
    --------
    >>> import heckesel as hk
    >>> loans = hk.datasets.make_loans(1000, seed=0).frame
    >>> X = loans.drop(columns=["default"])
    >>> model = hk.HeckmanClassifier(instruments=["leniency"], learner="linear")
    >>> model = model.fit(X, loans["default"])
    >>> model.predict_proba(X).shape
    (1000, 2)
    """

    instruments: Any = None
    _: KW_ONLY
    learner: Any = "auto"
    method: str = "auto"
    rho_prior: Any = None
    covariance: str | None = None
    cv: Any = "auto"
    missing: str = "error"
    on_problem: str = "error"
    unobserved: Any = None
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: bool = False

    takes_categories = False

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
        if not is_one_of(self.method, METHODS):
            raise DataError(f"method must be 'auto' or 'ml', got {self.method!r}")
        check_options(self)
        check_same_order(X, y=y)
        name = str(getattr(y, "name", None) or "y")

        def outcome():
            values = without_unobserved(label_column(y), self.unobserved)
            self.classes_ = learn_classes(values, selected, name)
            return class_codes(values, self.classes_, selected, name)

        classical = self.method == "ml"
        check = check_fit if classical else check_enough
        data = read_columns(
            self, X, outcome, name, selected, sample_weight, groups, check=check, linear=True
        )
        return self._fit_probit(data) if classical else self._fit_corrected(data)

    def _fit_corrected(self, data: SelectionData):
        if data.y[data.s].min() == data.y[data.s].max():
            raise DataError(
                f"only one class of {data.y_name!r} was observed, so there is nothing to learn"
            )
        learn(self, data)
        self.fitted_: Any = CorrectedClasses(self.fitted_)
        return self

    def _fit_probit(self, data: SelectionData):
        fit = fit_binary(
            with_constants(data)[0],
            self.classes_,
            covariance=self.covariance,
            weight_kind=kind_of_weights(None, data.weight),
            prefer_interior=True,
        )
        self.identification_ = identify_classes(fit)
        keep_result(self, replace(fit, identification=self.identification_))
        warn_of_fit(self.result_, "a plain probit")
        self.explanation_, self.candidates_ = explain_modes(self.result_)
        self.fitted_ = LinearProbit(self.result_)
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
        ndarray of shape (m,)
            Labels from `classes_`.
        """
        probability = self.predict_proba(X, target)
        return self.classes_[(probability[:, 1] > 0.5).astype(int)]

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
        With ``"auto"`` the interval is that of the posterior of rho and of the members. With
        ``"ml"`` it is computed for z, where P = Phi(z), by the delta method if the instruments
        identify rho well, and otherwise by the profile likelihood.
        """
        x, w, target = rows_for_target(self, X, target)
        check_level(level)
        if (
            self.method == "ml"
            and self.result_.over_rho is None
            and self.result_.cov_given_rho is not None
        ):
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
        codes, seen, weight = self._to_score(X, y, selected, sample_weight)
        second = self.predict_proba(X, "selected")[:, 1] > 0.5
        check_same_length(second, codes)
        return float(accuracy_score(codes[seen] == 1.0, second[seen], sample_weight=weight))

    def _outcomes(self, y, selected) -> np.ndarray:
        labels = without_unobserved(label_column(y), self.unobserved)
        codes = class_codes(labels, self.classes_, selected, self.outcome_name_)
        return np.where(marked_rows(codes, selected, self.outcome_name_), codes, np.nan)

    def _log_density(self, x, w, target: str, y) -> np.ndarray:
        log_p = self.fitted_.log_probabilities(x, w, target)
        return np.where(y == 1.0, log_p[:, 1], log_p[:, 0])

    def _numbers(self, x, w, target: str):
        return self.fitted_.probabilities(x, w, target)

    def _facts(self) -> list[tuple[str, str]]:
        return facts_of_learner(self)

    def check_loaded(self) -> None:
        """As for regressors, and the classes are two sorted labels."""
        if len(self.classes_) != 2 or not self.classes_[0] < self.classes_[1]:
            raise ValueError("classes that are not two sorted labels")
        super().check_loaded()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
