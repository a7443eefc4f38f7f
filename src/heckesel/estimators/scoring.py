"""`joint_log_likelihood_scorer`, for choosing models when outcomes are missing, and the
log-likelihood of classifiers."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from heckesel.data import selected_rows
from heckesel.errors import DataError
from heckesel.estimators.selection_regressor import (
    check_same_length,
    joint_mean,
    rows_for_target,
)
from heckesel.tables.fit_input import class_codes, label_column, without_unobserved
from heckesel.tables.frames import check_same_order


class JointLogLikelihoodScorer(BaseEstimator):
    """Score models by their mean joint log-likelihood of selection and outcome.

    Pass `hk.joint_log_likelihood_scorer` as ``scoring=`` to scikit-learn. Larger is better. Rows
    with missing y count as unselected. In a Pipeline, the last step is the model.

    Notes
    -----
    With metadata routing, ``set_score_request(selected=True)`` on a copy of the scorer makes it
    use the same mask as the fits.

    Examples
    --------
    >>> import heckesel as hk
    >>> from sklearn.model_selection import KFold, cross_val_score
    >>> frame = hk.datasets.make_controlled(300, rho=0.9, alpha=1.0, seed=0).frame
    >>> cross_val_score(
    ...     hk.HeckmanRegressor(["z"]), frame[["x", "z"]], frame["y"],
    ...     scoring=hk.joint_log_likelihood_scorer, cv=KFold(3, shuffle=True, random_state=0),
    ... ).shape
    (3,)
    """

    def __call__(self, estimator, X, y, **options) -> float:
        """Call `score`, as scikit-learn expects of a scorer."""
        return self.score(estimator, X, y, **options)

    def score(self, estimator, X, y, *, selected=None, sample_weight=None) -> float:
        """Compute the mean joint log-likelihood per unit.

        Parameters
        ----------
        estimator : fitted estimator of heckesel, Pipeline or search
            The model to score.
        X, y : array-like or frame
            Held-out rows; y is missing where it was not observed.
        selected : array-like of bool, optional
            Which rows were selected; by default those with an outcome.
        sample_weight : array-like, optional
            Weight of each row.

        Returns
        -------
        float
            Larger is better.

        Raises
        ------
        DataError
            If the model has no `log_likelihood`.
        """
        while not hasattr(estimator, "log_likelihood"):
            if isinstance(estimator, Pipeline):
                if len(estimator) > 1:
                    X = estimator[:-1].transform(X)
                estimator = estimator[-1]
            elif hasattr(estimator, "best_estimator_"):
                estimator = estimator.best_estimator_
            else:
                raise DataError(
                    f"{type(estimator).__name__} has no log_likelihood; this scorer is for "
                    "estimators of heckesel, alone or as the last step of a Pipeline"
                )
        return estimator.log_likelihood(X, y, selected=selected, sample_weight=sample_weight)


joint_log_likelihood_scorer = JointLogLikelihoodScorer()


def class_log_likelihood(model, X, y, selected, sample_weight) -> float:
    """The joint log-likelihood of selection and class under a classifier, a mean over units."""
    check_is_fitted(model)
    check_same_order(X, y=y, selected=selected, sample_weight=sample_weight)
    codes = codes_of(model, y, selected)
    s = ~np.isnan(codes)
    x, w, target = rows_for_target(model, X, "selected")
    check_same_length(x, codes)
    log_p = model.fitted_.log_probabilities(x, w, target)
    of_class = np.where(codes == 1.0, log_p[:, 1], log_p[:, 0])
    return joint_mean(model, s, w, of_class, sample_weight)


def codes_of(model, y, selected) -> np.ndarray:
    """(n,) 0 and 1 for the classes of the fit, NaN for units that were not selected."""
    labels = without_unobserved(label_column(y), model.unobserved)
    codes = class_codes(labels, model.classes_, selected, model.outcome_name_)
    if selected is not None:
        s = selected_rows(codes, selected, model.outcome_name_)
        return np.where(s, codes, np.nan)
    return codes
