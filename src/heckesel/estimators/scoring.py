"""`joint_log_likelihood_scorer`: for choosing models when outcomes are missing."""

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from heckesel.errors import DataError


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
            Which rows were selected, if missing y does not show it.
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
