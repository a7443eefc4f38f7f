"""`HeckmanClassifier`: a probit with sample selection as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from scipy.special import log_ndtr, ndtr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from heckesel.data import SelectionData, check_weights, numeric, selected_rows
from heckesel.diagnostics.verdict import NO_SELECTION
from heckesel.errors import DataError, IdentificationWarning
from heckesel.estimators.arrays import with_intercept
from heckesel.estimators.binary import fit_binary
from heckesel.estimators.frames import like_input
from heckesel.estimators.labels import class_codes, label_column, learn_classes
from heckesel.estimators.regression import read_columns
from heckesel.predictive import check_target


class HeckmanClassifier(ClassifierMixin, BaseEstimator):
    """Two classes of which one was seen only for those selected: a probit with sample selection.

    In credit scoring this is reject inference: who would have repaid is known for granted loans
    alone. y is missing (NaN or None) where it was not observed, or `fit` is given `selected`.
    Labels are 0 and 1, booleans or two strings. `instruments`, by name or position, are columns
    of X that moved selection but not the outcome.

    * covariance: "information", "opg" or "robust"; None takes "information", and "robust" with
      probability weights
    * weight_kind: what `sample_weight` means, "frequency" or "probability"; None takes whole
      numbers for counts of rows and others for probabilities. Estimates are the same
    * missing: "error", or "indicator" to fill missing x with the mean of the fit and point it out
      by a column

    After `fit`: `classes_`; `coef_` and `intercept_` of the probit of `classes_[1]`, in the order
    of `coef_names_`; `rho_`, the correlation of the two errors; `result_`, with standard errors,
    tests, `modes` and `summary()`; `identification_`, the verdict on whether the data can carry
    the correction.
    """

    def __init__(
        self,
        instruments=None,
        *,
        covariance: str | None = None,
        weight_kind: str | None = None,
        missing: str = "error",
    ):
        self.instruments = instruments
        self.covariance = covariance
        self.weight_kind = weight_kind
        self.missing = missing

    def fit(self, X, y, *, selected=None, sample_weight=None):
        name = str(getattr(y, "name", None) or "y")

        def outcome():
            values = label_column(y)
            self.classes_ = learn_classes(values, selected, name)
            return class_codes(values, self.classes_, selected, name)

        data = read_columns(self, X, outcome, name, selected, sample_weight, linear=True)
        self.coef_names_ = data.x_names
        whole = (data.weight == np.round(data.weight)).all()
        self.result_ = fit_binary(
            _with_constants(data),
            self.classes_,
            covariance=self.covariance,
            weight_kind=self.weight_kind or ("frequency" if whole else "probability"),
        )
        self.identification_ = self.result_.identification
        outcome_params = self.result_.params["outcome"]
        self.intercept_ = float(outcome_params["Intercept"])
        self.coef_ = outcome_params.drop("Intercept").to_numpy()
        self.rho_ = self.result_.rho
        return self

    def predict(self, X):
        """The more probable class of any unit with this x, in the library X comes from."""
        probability = self.predict_proba(X)
        return like_input(
            self.classes_[(probability[:, 1] > 0.5).astype(int)], X, self.outcome_name_
        )

    def predict_proba(self, X, target: str = "population") -> np.ndarray:
        """(m, 2) probabilities of `classes_`.

        `population`: of any unit with this x; `selected`, `unselected`: given that it was or was
        not selected, which needs the instrument columns in X.
        """
        rows = self._rows(X, target)
        z, _ = self.result_.probit_index(*rows)
        return np.column_stack([ndtr(-z), ndtr(z)])

    def predict_proba_interval(
        self, X, level: float = 0.9, target: str = "population"
    ) -> np.ndarray:
        """(m, 2) interval of the probability of `classes_[1]`: how well the data determine it.

        The delta method on the scale of the probit, where P = Phi(z), so that it stays within 0
        and 1. Where the fit lies at rho = +-1 rho is taken as known, with a warning.
        """
        rows = self._rows(X, target)
        if self.result_.cov_given_rho is not None:
            warnings.warn(
                f"the fit lies at rho = {self.rho_:+.0f}; these intervals take rho as known",
                IdentificationWarning,
                stacklevel=2,
            )
        return ndtr(self.result_.probit_index_interval(*rows, level))

    def score(self, X, y, *, selected=None, sample_weight=None) -> float:
        """Accuracy, on the rows with an outcome, of the more probable class given selection.

        Only these rows can be scored, and on them a model that ignores selection would win against
        the population's class; given selection is the fair comparison. To choose between models
        prefer `log_likelihood`, as `scoring=hk.joint_log_likelihood_scorer` does.
        """
        rows = self._rows(X, "selected")
        z, _ = self.result_.probit_index(*rows)
        codes = self._codes(y, selected)
        seen = selected_rows(codes, None, self.outcome_name_)
        weight = None if sample_weight is None else numeric(sample_weight, "sample_weight")[seen]
        return float(accuracy_score(codes[seen] == 1.0, z[seen] > 0, sample_weight=weight))

    def log_likelihood(self, X, y, *, selected=None, sample_weight=None) -> float:
        """Joint log-likelihood of selection and class, a mean over units.

        log P(class, selected) where y was observed, log P(unselected) where not. A fit that saw no
        unselected unit gives them probability 0.
        """
        check_is_fitted(self)
        codes = self._codes(y, selected)
        s = ~np.isnan(codes)
        x, w, target = self._rows(X, "selected")
        if len(x) != len(codes):
            raise DataError(f"X has {len(x)} rows but y has {len(codes)}")
        z, _ = self.result_.probit_index(x, w, target)
        unit = log_ndtr(np.where(codes == 1.0, z, -z))
        if self.result_.has_selection:
            index = w @ self.result_.params["select"].to_numpy()
            unit = np.where(s, unit + log_ndtr(index), log_ndtr(-index))
        else:
            unit = np.where(s, unit, -np.inf)
        weight = check_weights(sample_weight, len(codes), np.ones(len(codes), dtype=bool))
        used = weight > 0
        return float(np.average(unit[used], weights=weight[used]))

    def _codes(self, y, selected) -> np.ndarray:
        codes = class_codes(label_column(y), self.classes_, selected, self.outcome_name_)
        if selected is not None:
            s = selected_rows(codes, selected, self.outcome_name_)
            return np.where(s, codes, np.nan)
        return codes

    def _rows(self, X, target: str):
        """x and w with constants, and the target, checked."""
        check_is_fitted(self)
        check_target(target)
        if self.identification_.verdict == NO_SELECTION:
            if target == "unselected":
                raise DataError(
                    "the fit saw no unselected unit, so target='unselected' has no meaning"
                )
            target = "population"
        x = with_intercept(self.columns_.x(X))
        w = None if target == "population" else with_intercept(self.columns_.w(X))
        return x, w, target

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.string = True
        tags.input_tags.allow_nan = self.missing == "indicator"
        return tags


def _with_constants(data: SelectionData) -> SelectionData:
    for names in (data.x_names, data.w_names):
        if "Intercept" in names:
            raise DataError("the name 'Intercept' is taken: one is added to each equation")
    return replace(
        data,
        x=with_intercept(data.x),
        w=with_intercept(data.w),
        x_names=("Intercept", *data.x_names),
        w_names=("Intercept", *data.w_names),
    )
