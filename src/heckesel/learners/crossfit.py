"""Out-of-fold predictions of E[y | x, s = 1], one member per fold, and the choice of a learner."""

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from heckesel.errors import DataError
from heckesel.learners.networks import LEAST_FOR_FOLDS, Networks, cross_fit_networks
from heckesel.learners.splines import FoldedRows, RidgeMembers

FEW, MANY = 5_000, 50_000  # selected rows up to which there are ten folds, and beyond which three
FEWEST_FOR_BOOSTING = 200  # selected rows
ROUNDS, PATIENCE = 300, 8  # of boosting; it stops early by the held-out fold


@dataclass(frozen=True)
class ModelMembers:
    """One fitted scikit-learn model per fold; splines : the members to which they are added"""

    models: tuple
    splines: RidgeMembers | None = None

    def predict_members(self, x: np.ndarray) -> np.ndarray:
        """(k, m)"""
        found = np.stack([np.asarray(model.predict(x), dtype=float) for model in self.models])
        return found if self.splines is None else found + self.splines.predict_members(x)


@dataclass(frozen=True)
class OutcomeFit:
    """The learner of the selected.

    name : what was fitted
    members : one model per fold, with `predict_members`
    losses : mean squared error of held-out rows by learner, relative to the variance of y
    """

    name: str
    members: object
    losses: dict[str, float]

    def predict_members(self, x):
        return self.members.predict_members(x)


def draw_folds(n: int, groups, count: int, seed) -> np.ndarray:
    """(n,) folds of nearly equal size, in which groups stay together."""
    rng = np.random.default_rng(seed)
    if groups is None:
        return rng.permutation(np.arange(n) % count)
    return (rng.permutation(groups.max() + 1) % count)[groups]


def fold_count(cv, n: int) -> int:
    """The number of folds for n selected rows; cv : a number, or "auto"."""
    if cv != "auto":
        return cv
    return 10 if n < FEW else 5 if n < MANY else 3


def fit_outcome(learner, rows: FoldedRows, y, *, seed: int, n_jobs=None):
    """`OutcomeFit` and the out-of-fold predictions (n,).

    learner : "auto", "linear", "splines", "boosting", or an estimator with fit and predict
    """
    names: tuple = ("linear", "splines", "boosting") if learner == "auto" else (learner,)
    if learner == "auto" and len(y) < FEWEST_FOR_BOOSTING:
        names = names[:2]
    weight = rows.weight
    spread = np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)
    losses: dict[str, float] = {}
    best: Any = None
    splines = None
    for each in names:
        name = each if isinstance(each, str) else type(each).__name__
        held_out, members = cross_fit(each, rows, y, splines, seed=seed, n_jobs=n_jobs)
        splines = members if name == "splines" else splines
        losses[name] = float(np.average((y - held_out) ** 2, weights=weight) / max(spread, 1e-300))
        if best is None or losses[name] < losses[best[0]]:
            best = name, held_out, members
    return OutcomeFit(best[0], best[2], losses), best[1]


def cross_fit(learner, rows: FoldedRows, y, splines=None, *, seed: int, n_jobs=None):
    """Out-of-fold predictions (n,) and the members.

    splines : members of the learner of this name if they are known. Boosting starts from them: it
        needs many trees for a smooth curve, and none for what a curve explains.
    """
    if learner in ("linear", "splines"):
        return rows.fit_ridge(y, curved=learner == "splines")
    x, weight, folds = rows.x, rows.weight, rows.folds
    if isinstance(learner, Networks) and learner.folds is not None and len(y) >= LEAST_FOR_FOLDS:
        return cross_fit_networks(learner, x, y, weight, folds)
    count = folds.max() + 1
    start = np.zeros((count, 1))
    if learner == "boosting":
        splines = rows.fit_ridge(y, curved=True)[1] if splines is None else splines
        start = splines.predict_members(x)
    found = Parallel(n_jobs=n_jobs)(
        delayed(_fit_without)(learner, x, y - start[k], weight, folds == k, seed + k)
        for k in range(count)
    )
    held_out = np.empty(len(y))
    for k, (model, predicted) in enumerate(found):
        if predicted.shape != (np.count_nonzero(folds == k),) or not np.isfinite(predicted).all():
            raise DataError(
                f"the learner {_last_of(model)[1]} predicted values that are missing, infinite or "
                "not one per row; choose another learner or prepare the columns in a pipeline"
            )
        held_out[folds == k] = predicted
    if learner != "boosting":
        return held_out, ModelMembers(tuple(model for model, _ in found))
    held_out += start[folds, np.arange(len(y))]
    return held_out, ModelMembers(tuple(model for model, _ in found), splines)


def _fit_without(learner, x, y, weight, out, seed: int):
    """The model of all rows but those of a fold, `out`, and its predictions of them. The arrays are
    arguments, which workers of joblib share rather than copy."""
    inside = ~out
    if learner == "boosting":
        model = _boosting(x, y, weight, inside, out, seed)
    else:
        model = _own(learner, x[inside], y[inside], weight[inside])
    with _naming(learner):
        return model, np.asarray(model.predict(x[out]), dtype=float)


def _boosting(x, y, weight, inside, out, seed: int):
    from sklearn.ensemble import HistGradientBoostingRegressor

    n = np.count_nonzero(inside)
    # with weights scikit-learn finds its bins by one weighted percentile after the other, which
    # takes longer than the trees
    some = {} if (weight == 1).all() else {"sample_weight_val": weight[out]}
    model = HistGradientBoostingRegressor(
        max_iter=ROUNDS,
        learning_rate=0.1,
        max_leaf_nodes=8 if n < 2_000 else 15 if n < 20_000 else 31,
        min_samples_leaf=20,
        l2_regularization=1.0,
        early_stopping=True,
        n_iter_no_change=PATIENCE,
        random_state=seed,
    )
    return model.fit(
        x[inside],
        y[inside],
        weight[inside] if some else None,
        X_val=x[out],
        y_val=y[out],
        **some,
    )


def _own(learner, x, y, weight):
    model = clone(learner)
    last, name = _last_of(model)
    options = {}
    if np.ptp(weight) > 0:
        if not has_fit_parameter(last, "sample_weight"):
            raise DataError(
                f"the learner {name} does not take sample_weight; fit without weights or choose "
                "another learner"
            )
        step = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
        options = {f"{step}sample_weight": weight}
    with _naming(learner):
        return model.fit(x, y, **options)


def _last_of(model):
    """The last step of a pipeline, or the model itself, and its name."""
    while hasattr(model, "steps"):
        model = model.steps[-1][1]
    return model, model if isinstance(model, str) else type(model).__name__


@contextmanager
def _naming(learner):
    """What a learner raises can be anything, and should say which learner it was."""
    try:
        yield
    except Exception as error:
        name, reason = _last_of(learner)[1], str(error).strip() or type(error).__name__
        raise DataError(f"the learner {name} failed: {reason}") from error
