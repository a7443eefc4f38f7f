"""`average` and `margins` of fitted estimators: the expected outcome of rows, with inference."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from scipy.special import ndtr
from sklearn.utils.validation import check_is_fitted

from heckesel.classical.prediction import SELECTION, averages_table, effects_table
from heckesel.data import check_level
from heckesel.errors import DataError, is_one_of, warn_user
from heckesel.margins import (
    MeanEstimates,
    Question,
    estimate_mixture,
    frame_of_rows,
    groups_of,
    without_uncertainty,
)
from heckesel.predictive import check_target
from heckesel.verdict.identify import NOTHING_TO_CORRECT

_TOLD: WeakKeyDictionary = WeakKeyDictionary()  # models whose users know their verdict
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


def target_of(model, target: str, *, tell: bool = True) -> str:
    """The target of a prediction, the population if every unit of the fit was selected.

    tell : whether to warn of a doubtful verdict, once for each fit
    """
    check_is_fitted(model)
    check_target(target)
    found = model.identification_
    if tell and found.is_doubtful and _TOLD.get(model) is not found:
        _TOLD[model] = found
        warn_user(
            f"the verdict on this {type(model).__name__} is {found.verdict!r}; see identification_"
        )
    if model.identification_.verdict != NOTHING_TO_CORRECT:
        return target
    if target == "unselected":
        raise DataError("the fit had no unselected unit, so target='unselected' has no meaning")
    return "population"


class GroupAverages:
    """Methods that regressors and classifiers share.

    A subclass has `columns_`, `identification_` and `fitted_`. A linear `fitted_` has `.means` and
    `.matrices`, any other `.component_means`.
    """

    def average(
        self, X, target: str = "population", *, by: str | None = None, level: float = 0.9
    ) -> pd.DataFrame:
        """Average the expected outcome over rows, with an interval of the average.

        Parameters
        ----------
        X : array-like or frame of shape (m, columns)
            The units to average over, as in `predict`. For the average outcome of rejected units,
            pass these rows with ``target="unselected"``.
        target : {"population", "selected", "unselected", "selection"}, default="population"
            The mean outcome, as in `predict`, or the probability of selection itself. For a
            classifier the outcome is the probability of `classes_[1]`.
        by : str, optional
            Column of X with groups. It need not be a column of the fit.
        level : float, default=0.9
            Confidence level, between 0 and 1.

        Returns
        -------
        DataFrame
            One row per group, or one row ``"all"``: ``n`` rows, ``mean``, ``se``, ``low`` and
            ``high``.

        Raises
        ------
        DataError
            If X or an option cannot be used.

        Warns
        -----
        UserWarning
            If all networks were trained on the same rows, or if the target is "selection" and the
            selection equation has no standard errors: ``se``, ``low`` and ``high`` are then NaN.

        Notes
        -----
        The interval is for the expected mean of these rows. The mean of the outcomes themselves
        also varies with the noise, whose variance is the mean of ``std**2 - epistemic``, divided by
        n. The errors of two predictions are correlated, because both come from the same estimates.
        The interval is therefore not an average of those of `predict_interval`. It comes from:

        - linear fits: the delta method or, if the instruments are weak, all values of rho that the
          data allow (`result_.inference`);
        - splines and the method "profile": the delta method within each point of the mixture, and
          the variation of the mean between points;
        - networks on folds: the jackknife over the members that held out each fold.

        Intervals of probabilities are computed on the probit scale. With a linear fit and a
        `target_transform`, the mean is evaluated at the estimates, while `predict` also averages
        over their uncertainty.

        Examples
        --------
        >>> import heckesel as hk
        >>> frame = hk.datasets.make_controlled(1000, rho=0.5, alpha=1.0, seed=0).frame
        >>> model = hk.HeckmanRegressor(instruments=["z"]).fit(frame[["x", "z"]], frame["y"])
        >>> rejected = frame[frame["y"].isna()]
        >>> found = model.average(rejected, target="unselected")
        >>> list(found.columns), int(found.loc["all", "n"]) == len(rejected)
        (['n', 'mean', 'se', 'low', 'high'], True)
        """
        means = model_means(self, target, level)
        frame = frame_of_rows(X, self.columns_.given_names)  # type: ignore[attr-defined]
        return averages_table(means.estimate, frame, groups_of(frame, by))

    def margins(
        self,
        X,
        target: str = "population",
        *,
        at=None,
        by: str | None = None,
        kind: str = "effect",
        level: float = 0.95,
    ) -> pd.DataFrame:
        """Average marginal effects of the columns of X over its rows.

        Parameters
        ----------
        X : array-like or frame of shape (m, columns)
            The units to average over, as in `predict`.
        target : {"population", "selected", "unselected", "selection"}, default="population"
            The mean outcome that changes, as in `average`.
        at : dict, optional
            Values to which columns are set in all rows, such as ``{"age": 40}``. With lists,
            ``{"age": [30, 40]}``, there is one set of effects for each combination.
        by : str, optional
            Column of X with groups.
        kind : {"effect", "elasticity"}, default="effect"
            ``"effect"`` is the derivative of the prediction with respect to a numeric column. For a
            category, or a column with the values 0 and 1 only, it is the difference between each
            level and the first. ``"elasticity"`` is the mean of (dy/dx)(x/y), for numeric columns
            only.
        level : float, default=0.95
            Confidence level, between 0 and 1.

        Returns
        -------
        DataFrame
            ``effect``, ``se``, ``z``, ``p``, ``low`` and ``high``, one row per variable or, with
            `at` and `by`, per set of values, group and variable.

        Raises
        ------
        DataError
            If X or an option cannot be used.

        Warns
        -----
        UserWarning
            As `average`.

        Notes
        -----
        Effects are differences of predictions, and their uncertainty is that of `average`. A
        derivative is a central difference with a step of 1e-4 standard deviations of the column.
        Dates, and columns that ``on_problem="fix"`` omits, have no effects.

        Examples
        --------
        >>> import heckesel as hk
        >>> frame = hk.datasets.make_controlled(1000, rho=0.5, alpha=1.0, seed=0).frame
        >>> model = hk.HeckmanRegressor(instruments=["z"]).fit(frame[["x", "z"]], frame["y"])
        >>> list(model.margins(frame[["x", "z"]], "selection").index)
        ['x', 'z']
        """
        means = model_means(self, target, level)
        columns = self.columns_  # type: ignore[attr-defined]
        frame = frame_of_rows(X, columns.given_names)
        names = [
            name
            for name in columns.given_names
            if means.target != "population" or name not in columns.instruments
        ]
        means.check(frame)
        names = [name for name in names if name in columns.varied]
        frame = columns.with_numbers(frame)
        return effects_table(
            frame,
            names,
            means.estimate,
            at=at,
            by=by,
            kind=kind,
            contrast_indicators=True,
        )
