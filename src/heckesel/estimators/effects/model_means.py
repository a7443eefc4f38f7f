"""The expected outcome of rows under a fitted estimator, with inference."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr
from sklearn.utils.validation import check_is_fitted

from heckesel.diagnostics.verdict import NO_SELECTION
from heckesel.errors import DataError, is_one_of, warn_user
from heckesel.linear.results.averages import SELECTION
from heckesel.linear.results.inference import check_level
from heckesel.predictive.distribution import check_target
from heckesel.predictive.mean_estimates import (
    Estimates,
    Quantity,
    estimate_mixture,
    without_uncertainty,
)
from heckesel.predictive.transformed import transformed


@dataclass(frozen=True)
class ModelMeans:
    """model : a fitted regressor or classifier; target : one of the three, or SELECTION"""

    model: Any
    target: str
    level: float

    def estimate(self, frames: Sequence[pd.DataFrame], quantity: Quantity) -> Estimates:
        """A quantity of several versions of X."""
        rows = [self._columns(frame) for frame in frames]
        fitted = self.model.fitted_
        transform = getattr(self.model, "transform_", None)
        if hasattr(fitted, "means"):  # linear
            means = fitted.means(self.target, transform)
            versions = [fitted.matrices(*each, self.target) for each in rows]
            return means.estimate(versions, quantity, self.level)
        if self.target == SELECTION:
            warn_user(
                "the networks have no standard errors of the selection equation; hk.probit has "
                "those of a probit"
            )
            parts = [iter([without_uncertainty(ndtr(fitted.index(w)))]) for _, w in rows]
            return estimate_mixture(parts, quantity, self.level)
        options = {"folds": folds_of(self.model), "transform": transform}
        is_binary = hasattr(self.model, "classes_")
        parts = [fitted.component_means(*each, self.target, **options) for each in rows]
        predicted = [self._predicted(*each) for each in rows]
        centre, _ = quantity.of(predicted, [None] * len(rows))
        found = estimate_mixture(
            parts, quantity, self.level, centre=centre, is_probability=is_binary
        )
        if np.isnan(found.se).any():
            warn_user(
                "all networks were trained on the same rows, so they show no standard error of an "
                "average; refit with folds=5"
            )
        return found

    def check(self, frame: pd.DataFrame) -> None:
        """Refuse a frame that lacks a column, or has a value that the fit cannot use."""
        self._columns(frame)

    def _columns(self, frame: pd.DataFrame) -> tuple:
        """x and w; None for what the target does not need."""
        columns = self.model.columns_
        w = None if self.target == "population" else columns.w(frame)
        return None if self.target == SELECTION else columns.x(frame), w

    def _predicted(self, x, w) -> np.ndarray:
        fitted = self.model.fitted_
        if hasattr(self.model, "classes_"):
            return fitted.probabilities(x, w, self.target)[:, 1]
        return transformed(fitted.predict(x, w, self.target), self.model.transform_).mean


def model_means(model, target: str, level: float) -> ModelMeans:
    """Checks the options and warns of the caveat of the fit."""
    check_level(level)
    if not is_one_of(target, (SELECTION,)):
        return ModelMeans(model, target_of(model, target), level)
    check_is_fitted(model)
    if model.identification_.verdict == NO_SELECTION:
        raise DataError(f"the fit had no unselected unit, so target={target!r} has no meaning")
    return ModelMeans(model, target, level)


def target_of(model, target: str) -> str:
    """The target of a prediction, the population if every unit of the fit was selected; warns of
    the caveat of the fit."""
    check_is_fitted(model)
    check_target(target)
    if model.identification_.caveat is not None:
        warn_user(model.identification_.caveat)
    if model.identification_.verdict != NO_SELECTION:
        return target
    if target == "unselected":
        raise DataError("the fit had no unselected unit, so target='unselected' has no meaning")
    return "population"


def folds_of(model) -> int | None:
    """How many folds the members held out; fits that had none say so themselves."""
    from heckesel.estimators.network_options import folds_for

    return folds_for(model.n_members) if model.folds == "auto" else model.folds
