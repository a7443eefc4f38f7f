"""Several models on the same folds: what can be compared where outcomes are missing."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from heckesel.data import check_weights, selected_rows
from heckesel.errors import DataError
from heckesel.estimators.regression import outcome_column


def compare_models(
    models: dict,
    X: pd.DataFrame,
    y,
    *,
    selected=None,
    sample_weight=None,
    splits: int = 5,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    score_name: str = "r2_given_selection",
) -> list[dict]:
    """One dict for each model, best first: `log_likelihood`, the joint one of selection and outcome
    per held-out unit; `behind`, how far it is below the best one's, with the standard error of that
    difference over folds, `behind_se`; the model's own `score` on held-out outcomes, by the name
    `score_name`. y is numeric: classifiers are given codes.

    A model that cannot be fitted has `error` in their place. Folds keep the share of selected rows.
    """
    values = outcome_column(y)
    s = selected_rows(values, selected, "y")
    weight = check_weights(sample_weight, len(s), s)
    smallest = min(s.sum(), (~s).sum()) if not s.all() else s.sum()
    if not 2 <= splits <= smallest:
        raise DataError(
            f"{splits} folds need at least two, and a selected and an unselected row in each; the "
            f"fewer of the two kinds has {smallest} rows"
        )
    folds = list(StratifiedKFold(splits, shuffle=True, random_state=seed).split(X, s))
    found: dict[str, np.ndarray | str] = {}
    for position, (name, model) in enumerate(models.items()):
        try:
            scores = []
            for done, fold in enumerate(folds):
                scores.append(_scores(model, X, values, s, weight, *fold))
                if progress is not None:
                    progress(position * splits + done + 1, len(models) * splits)
            found[name] = np.array(scores)
        except DataError as error:
            found[name] = str(error)
    total = np.array([weight[held].sum() for _, held in folds])
    return _ranked(found, total / total.sum(), score_name)


def _scores(model, X, y, s, weight, kept, held) -> tuple[float, float]:
    fitted = clone(model).fit(X.iloc[kept], y[kept], selected=s[kept], sample_weight=weight[kept])
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
                "behind_se": _plain(behind.std(ddof=1) / math.sqrt(len(share))),
                score_name: _plain(share @ scored[name][:, 1]),
            }
        )
    return rows + [
        {"method": name, "error": reason} for name, reason in found.items() if name not in scored
    ]


def _plain(value) -> float | None:
    return float(value) if math.isfinite(value) else None
