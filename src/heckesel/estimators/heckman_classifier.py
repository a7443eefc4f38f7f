"""`HeckmanClassifier`: a probit with sample selection, linear or of networks."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from heckesel.data import SelectionData, check_weights, selected_rows
from heckesel.diagnostics.verdict import NO_SELECTION
from heckesel.errors import DataError, IdentificationWarning, is_one_of
from heckesel.estimators.classifier_networks import fit_binary_networks, judge_networks
from heckesel.estimators.regression import known_target, read_columns
from heckesel.linear.results.assemble_probit import fit_binary
from heckesel.linear.results.inference import check_level
from heckesel.linear.results.probit_prediction import LinearProbit
from heckesel.saving.saved_model import save_model
from heckesel.tables.array_design import with_intercept
from heckesel.tables.frames import check_same_order, like_input
from heckesel.tables.labels import class_codes, label_column, learn_classes
from heckesel.tables.weights import kind_of_weights

OUTCOMES = ("linear", "network")


class HeckmanClassifier(ClassifierMixin, BaseEstimator):
    """Two classes of which one was seen only for those selected: a probit with sample selection.

    In credit scoring this is reject inference: who would have repaid is known for granted loans
    alone. y is missing (NaN or None) where it was not observed, or `fit` is given `selected`.
    Labels are 0 and 1, booleans or two strings. `instruments`, by name or position, are columns
    of X that moved selection but not the outcome.

    * outcome: "linear" is x'beta, with standard errors; "network" an ensemble of networks at
      several values of rho, weighted by the likelihood of rows that each did not see
    * missing: "error", or "indicator" to fill missing x with the mean of the fit and point it out
      by a column

    For outcome="linear":

    * covariance: "information", "opg" or "robust"; None takes "information", and "robust" with
      probability weights
    * weight_kind: what `sample_weight` means, "frequency" or "probability"; None takes whole
      numbers for counts of rows and others for probabilities. Estimates are the same

    For outcome="network":

    * rho_prior: what is known about rho: None, "positive", "negative", an interval or a density.
      A wrong sign costs more than none
    * n_members, folds: networks at each rho, and into how many parts rows are dealt; member j
      does without part j modulo folds and ends by it
    * hidden, epochs, learning_rate, weight_decay, batch_size, dtype, device, random_state: the
      networks and their training; "auto" is a GPU if there is one
    * progress: a bar on the terminal, for fits over a second

    After `fit`: `classes_`; `identification_`, the verdict on whether the data can carry the
    correction; `rho_`, the correlation of the two errors, with networks one for each mode, best
    first. A linear outcome has `coef_` and `intercept_` of the probit of `classes_[1]`, in the
    order of `coef_names_`, and `result_`, with standard errors, tests, `modes` and `summary()`;
    networks have `info_`, the training summary.
    """

    def __init__(
        self,
        instruments=None,
        *,
        outcome: str = "linear",
        covariance: str | None = None,
        weight_kind: str | None = None,
        missing: str = "error",
        rho_prior=None,
        n_members: int = 5,
        folds: int = 5,
        hidden: tuple[int, ...] = (32, 32),
        epochs: int = 1500,
        learning_rate: float | None = None,
        weight_decay: float = 1e-3,
        batch_size: int | None = None,
        device: str = "auto",
        dtype: str = "float32",
        random_state=0,
        progress: bool = True,
    ):
        self.instruments = instruments
        self.outcome = outcome
        self.covariance = covariance
        self.weight_kind = weight_kind
        self.missing = missing
        self.rho_prior = rho_prior
        self.n_members = n_members
        self.folds = folds
        self.hidden = hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.device = device
        self.dtype = dtype
        self.random_state = random_state
        self.progress = progress

    def fit(self, X, y, *, selected=None, sample_weight=None):
        self._check_options()
        check_same_order(X, y=y)
        name = str(getattr(y, "name", None) or "y")

        def outcome():
            values = label_column(y)
            self.classes_ = learn_classes(values, selected, name)
            return class_codes(values, self.classes_, selected, name)

        linear = self.outcome == "linear"
        data = read_columns(self, X, outcome, name, selected, sample_weight, linear=linear)
        return self._fit_linear(data) if linear else self._fit_networks(data)

    def _check_options(self) -> None:
        if not is_one_of(self.outcome, OUTCOMES):
            raise DataError(f"outcome must be one of {', '.join(OUTCOMES)}, got {self.outcome!r}")
        if self.outcome == "linear":
            if self.rho_prior is not None:
                raise DataError("rho_prior is for outcome='network', and this one is linear")
            return
        for name in ("covariance", "weight_kind"):
            if getattr(self, name) is not None:
                raise DataError(f"{name} is for outcome='linear': networks have no standard errors")

    def _fit_linear(self, data: SelectionData):
        self.coef_names_ = data.x_names
        self.result_ = fit_binary(
            _with_constants(data),
            self.classes_,
            covariance=self.covariance,
            weight_kind=kind_of_weights(self.weight_kind, data.weight),
        )
        self.fitted_: Any = LinearProbit(self.result_)
        self.identification_ = self.result_.identification
        outcome_params = self.result_.params["outcome"]
        self.intercept_ = float(outcome_params["Intercept"])
        self.coef_ = outcome_params.drop("Intercept").to_numpy()
        self.rho_: Any = self.result_.rho
        return self

    def _fit_networks(self, data: SelectionData):
        self.fitted_ = fit_binary_networks(self, data)
        self.info_ = self.fitted_.info
        self.identification_ = judge_networks(data, self.info_)
        profile = self.identification_.profile
        modes = () if profile is None else profile.modes
        self.rho_ = np.array([rho for rho, _ in modes] or [np.nan])
        return self

    def predict(self, X, *, target: str = "population"):
        """The more probable class, by default of any unit with this x, in the library X comes
        from; `target` as in `predict_proba`."""
        probability = self.predict_proba(X, target)
        return like_input(
            self.classes_[(probability[:, 1] > 0.5).astype(int)], X, self.outcome_name_
        )

    def predict_proba(self, X, target: str = "population") -> np.ndarray:
        """(m, 2) probabilities of `classes_`.

        `population`: of any unit with this x; `selected`, `unselected`: given that it was or was
        not selected, which needs the instrument columns in X.
        """
        x, w, target = self._rows(X, target)
        return self.fitted_.probabilities(x, w, target)

    def predict_proba_interval(
        self, X, level: float = 0.9, target: str = "population"
    ) -> np.ndarray:
        """(m, 2) interval of the probability of `classes_[1]`: how well the data determine it.

        On the scale of the probit, where P = Phi(z), so that it stays within 0 and 1. A linear
        outcome takes the delta method; where its fit lies at rho = +-1 rho is taken as known, with
        a warning. Networks take what members and values of rho disagree by.
        """
        x, w, target = self._rows(X, target)
        check_level(level)
        if self.outcome == "linear" and self.result_.cov_given_rho is not None:
            warnings.warn(
                f"the fit lies at rho = {self.rho_:+.0f}; these intervals take rho as known",
                IdentificationWarning,
                stacklevel=2,
            )
        return self.fitted_.interval(x, w, target, level)

    def score(self, X, y, *, selected=None, sample_weight=None) -> float:
        """Accuracy, on the rows with an outcome, of the more probable class given selection.

        Only these rows can be scored, and on them a model that ignores selection would win against
        the population's class; given selection is the fair comparison. To choose between models
        prefer `log_likelihood`, as `scoring=hk.joint_log_likelihood_scorer` does.
        """
        check_same_order(X, y=y, selected=selected, sample_weight=sample_weight)
        second = self.fitted_.probabilities(*self._rows(X, "selected"))[:, 1] > 0.5
        codes = self._codes(y, selected)
        seen = selected_rows(codes, None, self.outcome_name_)
        weight = check_weights(sample_weight, len(codes), seen)[seen]
        return float(accuracy_score(codes[seen] == 1.0, second[seen], sample_weight=weight))

    def log_likelihood(self, X, y, *, selected=None, sample_weight=None) -> float:
        """Joint log-likelihood of selection and class, a mean over units.

        log P(class, selected) where y was observed, log P(unselected) where not. A fit that saw no
        unselected unit gives them probability 0.
        """
        check_is_fitted(self)
        check_same_order(X, y=y, selected=selected, sample_weight=sample_weight)
        codes = self._codes(y, selected)
        s = ~np.isnan(codes)
        x, w, target = self._rows(X, "selected")
        if len(x) != len(codes):
            raise DataError(f"X has {len(x)} rows but y has {len(codes)}")
        log_p = self.fitted_.log_probabilities(x, w, target)
        unit = np.where(codes == 1.0, log_p[:, 1], log_p[:, 0])
        if self.identification_.verdict != NO_SELECTION:
            index = self.fitted_.index(w)
            unit = np.where(s, unit + log_ndtr(index), log_ndtr(-index))
        else:
            unit = np.where(s, unit, -np.inf)
        weight = check_weights(sample_weight, len(codes), np.ones(len(codes), dtype=bool))
        used = weight > 0
        return float(np.average(unit[used], weights=weight[used]))

    def save(self, path) -> None:
        """Write the fitted model to one file, which `hk.load` reads; no pickle, no rows."""
        save_model(self, path)

    def _codes(self, y, selected) -> np.ndarray:
        codes = class_codes(label_column(y), self.classes_, selected, self.outcome_name_)
        if selected is not None:
            s = selected_rows(codes, selected, self.outcome_name_)
            return np.where(s, codes, np.nan)
        return codes

    def _rows(self, X, target: str):
        """x, w where the target needs it, and the target, checked."""
        check_is_fitted(self)
        target = known_target(self, target)
        w = None if target == "population" else self.columns_.w(X)
        return self.columns_.x(X), w, target

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.string = True
        tags.input_tags.allow_nan = self.missing == "indicator"
        return tags


def _with_constants(data: SelectionData) -> SelectionData:
    return replace(
        data,
        x=with_intercept(data.x),
        w=with_intercept(data.w),
        x_names=("Intercept", *data.x_names),
        w_names=("Intercept", *data.w_names),
    )
