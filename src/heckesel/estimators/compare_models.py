"""Choosing between models: `compare_models` on the same folds, and a scorer for scikit-learn."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline

from heckesel.data import check_weights, selected_rows
from heckesel.display import plain
from heckesel.errors import DataError
from heckesel.tables.fit_input import outcome_column, split_groups


def compare_models(
    models: dict,
    X: pd.DataFrame,
    y,
    *,
    selected=None,
    sample_weight=None,
    groups=None,
    splits: int = 5,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    score_name: str = "r2_given_selection",
) -> list[dict]:
    """Cross-validate several models on the same folds.

    Parameters
    ----------
    models : dict of str to estimator
        The models to compare, by name; they are not changed.
    X : DataFrame of shape (n, columns)
        Columns that explain the outcome and selection, instruments included.
    y : array-like of shape (n,)
        Outcomes as numbers, NaN where they were not observed. Classes are 0 and 1.
    selected : array-like of bool of shape (n,), optional
        Which rows were selected; by default those with an outcome.
    sample_weight : array-like of shape (n,), optional
        Weight of each row.
    groups : str or array-like of shape (n,), optional
        Groups of dependent rows: the name of a column of X, or one label per row. Rows of one
        group are in one fold.
    splits : int, default=5
        Number of folds. Each has the same share of selected rows.
    seed : int, default=0
        Seed of the folds.
    progress : callable, optional
        Called with the number of fits done and their total.
    score_name : str, default="r2_given_selection"
        Key under which the model's `score` on held-out outcomes is returned.

    Returns
    -------
    list of dict
        One per model, best first: ``method``, its name; ``log_likelihood``, the joint
        log-likelihood of selection and outcome per held-out unit; ``behind``, its difference from
        the best one, with standard error ``behind_se`` over folds; and the model's `score`. A
        model that cannot be fitted comes last and has ``method`` and ``error``.

    Raises
    ------
    DataError
        If a fold would have no selected or no unselected row.

    Examples
    --------
    >>> import heckesel as hk
    >>> from heckesel.estimators.compare_models import compare_models
    >>> frame = hk.datasets.make_controlled(400, rho=0.9, alpha=1.0, seed=0).frame
    >>> models = {name: hk.HeckmanRegressor(["z"], method=name) for name in ("ml", "two-step")}
    >>> rows = compare_models(models, frame[["x", "z"]], frame["y"], splits=3)
    >>> rows[0]["behind"]
    0.0
    """
    X, found_groups = split_groups(X, groups, None)
    codes = None if found_groups is None else found_groups.codes
    values = outcome_column(y)
    s = selected_rows(values, selected, "y")
    weight = check_weights(sample_weight, len(s), s)
    smallest = min(s.sum(), (~s).sum()) if not s.all() else s.sum()
    if not 2 <= splits <= smallest:
        raise DataError(
            f"the number of folds must be at least 2 and at most {smallest}, so that each has a "
            f"selected and an unselected row; got {splits}"
        )
    if codes is None:
        folds = list(StratifiedKFold(splits, shuffle=True, random_state=seed).split(X, s))
    else:
        by_group = StratifiedGroupKFold(splits, shuffle=True, random_state=seed)
        folds = list(by_group.split(X, s, codes))
    found: dict[str, np.ndarray | str] = {}
    for position, (name, model) in enumerate(models.items()):
        try:
            scores = []
            for done, fold in enumerate(folds):
                scores.append(_scores(model, X, values, s, weight, codes, *fold))
                if progress is not None:
                    progress(position * splits + done + 1, len(models) * splits)
            found[name] = np.array(scores)
        except DataError as error:
            found[name] = str(error)
    total = np.array([weight[held].sum() for _, held in folds])
    return _ranked(found, total / total.sum(), score_name)


def _scores(model, X, y, s, weight, groups, kept, held) -> tuple[float, float]:
    sides = {"selected": s, "sample_weight": weight, "groups": groups}
    given = {name: None if each is None else each[kept] for name, each in sides.items()}
    fitted = clone(model).fit(X.iloc[kept], y[kept], **given)
    rows, options = X.iloc[held], {"selected": s[held], "sample_weight": weight[held]}
    r2 = float("nan")
    if s[held].sum() > 1:  # one outcome has no variance to explain
        r2 = fitted.score(rows, y[held], **options)
    return fitted.log_likelihood(rows, y[held], **options), r2


def _ranked(found: dict, share: np.ndarray, score_name: str) -> list[dict]:
    scored = {name: scores for name, scores in found.items() if not isinstance(scores, str)}
    order = sorted(scored, key=lambda name: -share @ scored[name][:, 0])
    rows = []
    for name in order:
        behind = scored[order[0]][:, 0] - scored[name][:, 0]
        rows.append(
            {
                "method": name,
                "log_likelihood": float(share @ scored[name][:, 0]),
                "behind": float(share @ behind),
                "behind_se": plain(behind.std(ddof=1) / math.sqrt(len(share))),
                score_name: plain(share @ scored[name][:, 1]),
            }
        )
    return rows + [
        {"method": name, "error": reason} for name, reason in found.items() if name not in scored
    ]


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
