"""Columns, mean predictions and bands of a fitted model, for the plots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtr

from heckesel.diagnostics.verdict import NO_SELECTION
from heckesel.errors import DataError
from heckesel.linear.results.inference import critical_value


@dataclass(frozen=True)
class Means:
    """mean : (m,); interval : (m, 2) of each mean, None if unknown"""

    mean: np.ndarray
    interval: np.ndarray | None = None

    def over(self, groups) -> Means:
        """Averages over groups of rows; groups : row numbers of each."""
        mean = np.array([self.mean[rows].mean() for rows in groups])
        if self.interval is None:
            return Means(mean)
        return Means(mean, np.array([self.interval[rows].mean(axis=0) for rows in groups]))


def outcome_of(model) -> str:
    """The predicted quantity in words: the outcome, or the probability of its second class."""
    if hasattr(model, "classes_"):
        return f"probability of {second_class(model)}"
    return f"predicted {model.outcome_name_}"


def second_class(model) -> str:
    """The event whose probability a classifier predicts, such as "default = 1"."""
    label = model.classes_[1]
    if isinstance(label, float | np.floating) and label == int(label):
        label = int(label)
    return f"{model.outcome_name_} = {label}"


def means_of(model, frame, level: float) -> Means:
    """Mean predictions of the population, with bands from the uncertainty of estimation: by
    t(G - 1) if a linear fit has G groups."""
    if hasattr(model, "predict_distribution"):
        found = model.predict_distribution(frame)
        freedom = getattr(getattr(model, "result_", None), "freedom", np.inf)
        half = critical_value(level, freedom) * np.sqrt(found.epistemic)
        return Means(found.mean, np.column_stack([found.mean - half, found.mean + half]))
    if hasattr(model, "predict_proba_interval"):
        interval = model.predict_proba_interval(frame, level)
        return Means(model.predict_proba(frame)[:, 1], interval)
    if hasattr(model, "predict_proba"):
        return Means(np.asarray(model.predict_proba(frame))[:, 1])
    return Means(np.asarray(model.predict(frame), dtype=float))


def check_selection_model(model, what: str) -> None:
    """Refuse a model without a selection equation."""
    if not hasattr(model, "columns_") or not hasattr(model, "fitted_"):
        raise DataError(
            f"{what} needs a fitted estimator, such as HeckmanRegressor, not a "
            f"{type(model).__name__}"
        )
    if model.identification_.verdict == NO_SELECTION:
        raise DataError("every unit was selected, so there is no probability of selection")


def selection_probability(model, frame) -> np.ndarray:
    r"""(m,) P(s = 1 | x, w) = \Phi(w'\gamma), or the t distribution function with t errors."""
    index = model.fitted_.index(model.columns_.w(frame))
    if has_t_errors(model):
        return stdtr(float(np.mean(model.fitted_.df)), index)
    return ndtr(index)


def has_t_errors(model) -> bool:
    """Whether the networks have t errors; if so, they predict the population only."""
    return getattr(model.fitted_, "df", None) is not None
