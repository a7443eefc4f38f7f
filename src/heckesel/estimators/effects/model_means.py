"""The expected outcome of rows under a fitted estimator, with inference."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr
from sklearn.utils.validation import check_is_fitted

from heckesel.classical.prediction import SELECTION
from heckesel.data import check_level
from heckesel.errors import DataError, is_one_of, warn_user
from heckesel.margins import (
    MeanEstimates,
    Question,
    estimate_mixture,
    without_uncertainty,
)
from heckesel.predictive import check_target
from heckesel.verdict.identify import CONTRADICTED, MOSTLY_PRIOR, NOTHING_TO_CORRECT

ROWS = 20_000  # that are computed together, unless one question needs more
WITHOUT_FOLDS = (
    "all networks were trained on the same rows, so their disagreement is not a standard error; "
    "refit with folds=5"
)
WITHOUT_SELECTION_ERRORS = (
    "networks have no standard errors for the probability of selection; hk.probit computes those "
    "of a probit"
)


@dataclass(frozen=True)
class ModelMeans:
    """model : a fitted regressor or classifier; target : one of the three, or SELECTION"""

    model: Any
    target: str
    level: float

    def estimate(self, questions: Sequence[tuple]) -> list[MeanEstimates]:
        """Answers to (versions of X, a quantity of them)."""
        fitted, transform = self.model.fitted_, getattr(self.model, "transform_", None)
        if hasattr(fitted, "means"):  # linear
            means = fitted.means(self.target, transform)
            return [
                means.estimate(
                    [fitted.matrices(*self._columns(frame)) for frame in frames],
                    quantity,
                    self.level,
                )
                for frames, quantity in questions
            ]
        found = []
        for chunk in _in_chunks(questions):
            found += self._estimate_mixture(chunk)
        if any(np.isnan(each.se).any() for each in found):
            warn_user(WITHOUT_SELECTION_ERRORS if self.target == SELECTION else WITHOUT_FOLDS)
        return found

    def _estimate_mixture(self, questions: Sequence[tuple]) -> list[MeanEstimates]:
        parts = [self._columns(frame) for frames, _ in questions for frame in frames]
        x, w = (
            None if columns[0] is None else np.concatenate(columns)
            for columns in zip(*parts, strict=True)
        )
        fitted, is_binary = self.model.fitted_, hasattr(self.model, "classes_")
        if self.target == SELECTION:
            components = [without_uncertainty(ndtr(fitted.index(w)))]
        else:
            components = fitted.component_means(
                x,
                w,
                self.target,
                folds=folds_of(self.model),
                transform=getattr(self.model, "transform_", None),
            )
        asked = [Question(quantity, len(frames)) for frames, quantity in questions]
        is_probability = is_binary or self.target == SELECTION
        return estimate_mixture(components, asked, self.level, is_probability=is_probability)

    def check(self, frame: pd.DataFrame) -> None:
        """Refuse a frame that lacks a column, or has a value that the fit cannot use."""
        self._columns(frame)

    def _columns(self, frame: pd.DataFrame) -> tuple:
        """x and w; None for the one that the target does not need."""
        columns = self.model.columns_
        w = None if self.target == "population" else columns.w(frame)
        return None if self.target == SELECTION else columns.x(frame), w


def _in_chunks(questions: Sequence[tuple]) -> list[list[tuple]]:
    """Questions whose rows are computed together: splines with shape errors take seconds, however
    few rows there are."""
    chunks: list[list[tuple]] = []
    rows = ROWS
    for frames, quantity in questions:
        more = sum(map(len, frames))
        if rows + more > ROWS:
            chunks.append([])
            rows = 0
        chunks[-1].append((frames, quantity))
        rows += more
    return chunks


def model_means(model, target: str, level: float) -> ModelMeans:
    """Check the options, and issue the caveat of the fit as a warning."""
    check_level(level)
    if not is_one_of(target, (SELECTION,)):
        return ModelMeans(model, target_of(model, target), level)
    check_is_fitted(model)
    if model.identification_.verdict == NOTHING_TO_CORRECT:
        raise DataError(f"the fit had no unselected unit, so target={target!r} has no meaning")
    return ModelMeans(model, target, level)


def target_of(model, target: str) -> str:
    """The target of a prediction, the population if every unit of the fit was selected; warns of
    the caveat of the fit."""
    check_is_fitted(model)
    check_target(target)
    if model.identification_.verdict in (MOSTLY_PRIOR, CONTRADICTED):
        warn_user(str(model.identification_))
    if model.identification_.verdict != NOTHING_TO_CORRECT:
        return target
    if target == "unselected":
        raise DataError("the fit had no unselected unit, so target='unselected' has no meaning")
    return "population"


def folds_of(model) -> int | None:
    """Number of folds that the members held out; None for fits without folds."""
    if not hasattr(model, "n_members"):
        return None
    from heckesel.estimators.network_options import folds_for

    return folds_for(model.n_members) if model.folds == "auto" else model.folds
