"""`joint_log_likelihood_scorer`: what to select models by when outcomes are missing."""

from __future__ import annotations

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from heckesel.errors import DataError


class JointLogLikelihoodScorer(BaseEstimator):
    """Mean joint log-likelihood of selection and outcome per held-out unit; larger is better.

    Give it as `scoring=`; missing y is scored as unselected. In a Pipeline the last step is the
    model. With metadata routing a copy of it takes `set_score_request(selected=True)`, and with
    it the mask that the fits were given.
    """

    def __call__(self, estimator, X, y, **options) -> float:
        return self.score(estimator, X, y, **options)

    def score(self, estimator, X, y, *, selected=None, sample_weight=None) -> float:
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
                    "regressors of heckesel, alone or at the end of a Pipeline"
                )
        return estimator.log_likelihood(X, y, selected=selected, sample_weight=sample_weight)


joint_log_likelihood_scorer = JointLogLikelihoodScorer()
