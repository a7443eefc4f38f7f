"""Refits of the corrected and the naive model, each without the same part of the rows.

They give the held-out predictions of the check, and the uncertainty of the change from naive to
corrected predictions.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit
from sklearn.base import clone

from heckesel.errors import DataError, HeckeselError, IdentificationWarning
from heckesel.estimators.heckman_regressor import HeckmanRegressor
from heckesel.estimators.network_options import AUTO, network_config
from heckesel.plots.predictions_of import has_t_errors
from heckesel.report.naive_model import Naive
from heckesel.report.report_data import ReportData

LINEAR_FOLDS, NETWORK_FOLDS = 10, 5
MEMBERS = 2  # of a refitted ensemble without folds: the smallest with epistemic variance
MOST_ROWS = 50_000  # with more rows, refits take minutes
SEED = 1307  # of the folds: the same data give the same page


@dataclass(frozen=True)
class Refits:
    """how : a description of the refits, in words
    rows : (m,) row numbers of the units that were used
    change : (g, m) corrected minus naive mean of these units, from the g refits; None without a
        naive fit
    held_out : (k,) row numbers with an observed outcome, in the order of `predicted`
    predicted : (k,) F(y | x, w, s = 1) of their outcomes by fits without them; for
        classes P(second class | x, w, s = 1); None if the model predicts the population only
    share : of the rows that were used
    """

    how: str
    rows: np.ndarray
    change: np.ndarray | None
    held_out: np.ndarray
    predicted: np.ndarray | None
    share: float = 1.0

    def uncertainty(self, rows: np.ndarray, level: float) -> float:
        r"""Half an interval of the mean change over `rows`, by the delete-a-group jackknife:

        .. math:: t_{g-1}\sqrt{\tfrac{g-1}{g}\sum_j(\hat d_{(j)} - \bar d)^2}

        Both models lose the same rows, so common errors cancel in the change.
        """
        among = np.isin(self.rows, rows)
        if self.change is None or not among.any():
            return float("nan")
        d = self.change[:, among].mean(axis=1)
        g = len(d)
        sd = np.sqrt(self.share * (g - 1) / g * np.sum((d - d.mean()) ** 2))
        return float(stdtrit(g - 1, (1 + level) / 2) * sd)


@dataclass(frozen=True)
class NotChecked:
    """Why a part of the report could not be computed."""

    reason: str


def refit_on_folds(model, data: ReportData, naive: Naive | None = None) -> Refits | NotChecked:
    """Refit `model` and the naive fit without each fold in turn."""
    linear = hasattr(model, "result_")
    twin = smaller(model, int(data.s.sum()))
    rows, folds = np.arange(data.n), LINEAR_FOLDS if linear else NETWORK_FOLDS
    if data.n > MOST_ROWS:
        rows = np.sort(np.random.default_rng(SEED).permutation(data.n)[:MOST_ROWS])
    groups = None if data.groups is None else data.groups[rows]
    if groups is not None:
        observed = len(np.unique(groups[data.s[rows]]))
        if observed < folds:
            return NotChecked(f"{observed} groups with outcomes cannot be split into {folds} folds")
    fold = assign_folds(data.s[rows], folds, groups)
    changes, held_out, predicted = [], [], []
    try:
        for number in range(folds):
            kept, out = rows[fold != number], rows[fold == number]
            out = out[data.s[out]]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IdentificationWarning)  # the page has the verdict
                fitted = _refit(model, twin, data, kept)
                if naive is not None:
                    plain = naive.mean[rows] if naive.refit is None else naive.refit(kept, rows)
                    changes.append(data.mean_of(fitted, rows) - plain)
                if not has_t_errors(fitted):
                    predicted.append(_held_out(fitted, data, out))
            held_out.append(out)
    except HeckeselError as error:
        return NotChecked(f"the model could not be refitted without some of the cases: {error}")
    return Refits(
        how=_in_words(linear, twin, folds, len(rows), data.n),
        rows=rows,
        change=np.array(changes) if changes else None,
        held_out=np.concatenate(held_out),
        predicted=np.concatenate(predicted) if predicted else None,
        share=len(rows) / data.n,
    )


def _refit(model, twin, data: ReportData, rows: np.ndarray):
    if isinstance(model, HeckmanRegressor):
        return data.refitted(model, rows)
    return data.fitted(clone(twin), rows)


def smaller(model, selected: int):
    """An unfitted copy; networks have one member per fold, or MEMBERS without folds.

    Every method can be fitted this way, and each member sees the same share of the rows as the
    members of `model`.

    selected : rows with an outcome that `model` was fitted to
    """
    if hasattr(model, "classes_"):  # which are given as 0 and 1
        members = min(model.n_members, model.folds)
        return clone(model).set_params(unobserved=None, progress=False, n_members=members)
    if hasattr(model, "result_"):
        return clone(model)
    options = network_config(model, selected)
    most = MEMBERS if options.folds is None else options.folds
    twin = clone(model).set_params(
        progress=False, folds=options.folds, n_members=min(options.n_members, most)
    )
    if model.errors == AUTO:
        twin.set_params(errors="t" if has_t_errors(model) else "normal")
    return twin


def assign_folds(s: np.ndarray, folds: int, groups: np.ndarray | None = None) -> np.ndarray:
    """(n,) the fold of each case; observed and unobserved cases are split separately, or groups of
    dependent cases."""
    rng = np.random.default_rng(SEED)
    if groups is not None:
        unobserved = np.bincount(groups, s) == 0
        order = np.lexsort((rng.random(len(unobserved)), unobserved))
        return (np.argsort(order) % folds)[groups]
    fold = np.empty(len(s), dtype=int)
    for rows in (np.flatnonzero(s), np.flatnonzero(~s)):
        fold[rng.permutation(rows)] = np.arange(len(rows)) % folds
    return fold


def _held_out(fitted, data: ReportData, rows: np.ndarray) -> np.ndarray:
    if not len(rows):
        raise DataError("a fold has no observed outcome; use more rows")
    target, frame = "population" if data.s.all() else "selected", data.frame.iloc[rows]
    if data.classes is not None:
        return fitted.predict_proba(frame, target)[:, 1]
    return fitted.predict_distribution(frame, target).cdf(data.y[rows])


def _in_words(linear: bool, twin, folds: int, used: int, n: int) -> str:
    part = {LINEAR_FOLDS: "a tenth", NETWORK_FOLDS: "a fifth"}[folds]
    size = "" if linear else f", as an ensemble of {twin.n_members}"
    some = "" if used == n else f" on {used:,} of the rows"
    return (
        f"the model was refitted {folds} times{some}{size}, each time without {part} of the cases"
    )
