"""Methods of all fitted estimators: predictions, averages, scores, summaries and saving."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from scipy.special import log_ndtr, ndtr
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from heckesel import display, margins
from heckesel.classical.prediction import SELECTION, averages_table, effects_table
from heckesel.data import check_level, check_weights, marked_rows
from heckesel.errors import DataError, HeckeselError, is_one_of, warn_user
from heckesel.predictive import (
    TARGETS,
    Predictive,
    check_target,
    in_row_blocks,
    transformed,
    transformed_distribution,
)
from heckesel.saving import Savable
from heckesel.tables.fit_input import outcome_column
from heckesel.tables.frames import check_same_order, library_of, row_labels
from heckesel.verdict.identify import (
    NOTHING_TO_CORRECT,
    Identification,
)

_TOLD: WeakKeyDictionary = WeakKeyDictionary()  # models whose users know their verdict
ROWS = 20_000  # that are computed together, unless one question needs more
SMOOTH_LEARNERS = ("linear", "splines", "Networks")  # whose predictions have a derivative
WITHOUT_FOLDS = (
    "all networks were trained on the same rows, so their disagreement is not a standard error; "
    "refit with networks=hk.Networks(folds=5)"
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

    def estimate(self, questions: Sequence[tuple]) -> list[margins.MeanEstimates]:
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

    def _estimate_mixture(self, questions: Sequence[tuple]) -> list[margins.MeanEstimates]:
        parts = [self._columns(frame) for frames, _ in questions for frame in frames]
        x, w = (
            None if columns[0] is None else np.concatenate(columns)
            for columns in zip(*parts, strict=True)
        )
        fitted, is_binary = self.model.fitted_, hasattr(self.model, "classes_")
        if self.target == SELECTION:
            components = [margins.without_uncertainty(ndtr(fitted.index(w)))]
        else:
            components = fitted.component_means(
                x,
                w,
                self.target,
                transform=getattr(self.model, "transform_", None),
            )
        asked = [margins.Question(quantity, len(frames)) for frames, quantity in questions]
        is_probability = is_binary or self.target == SELECTION
        return margins.estimate_mixture(
            components, asked, self.level, is_probability=is_probability
        )

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


class FittedModel(Savable, BaseEstimator):
    """Methods that regressors and classifiers share.

    A subclass has the options `instruments`, `missing` and `unobserved`. Its `fit` sets `columns_`,
    `outcome_name_`, `identification_` and `fitted_`, which has `.index(w)` if some units were
    unselected. A linear `fitted_` has `.means` and `.matrices`, any other `.component_means`. A
    linear fit is also in `result_`.
    """

    columns_: Any
    fitted_: Any
    outcome_name_: str
    identification_: Identification
    missing: str
    unobserved: Any
    takes_categories = True  # whether scikit-learn may pass category codes

    def average(
        self, X, target: str = "population", *, at=None, by: str | None = None, level: float = 0.9
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
        at : dict, optional
            Values to which columns are set in all rows, such as ``{"age": 40}``; with lists, one
            average for each combination.
        by : str, optional
            Column of X with groups. It need not be a column of the fit.
        level : float, default=0.9
            Confidence level, between 0 and 1.

        Returns
        -------
        DataFrame
            One row per set of values and group, or one row ``"all"``: ``n`` rows, ``mean``, ``se``,
            ``low`` and ``high``.

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
        means = self._means(target, level)
        frame = margins.frame_of_rows(X, self.columns_.given_names)
        return averages_table(means.estimate, frame, margins.groups_of(frame, by), at)

    def margins(
        self,
        X,
        target: str = "population",
        *,
        at=None,
        by: str | None = None,
        contrast=None,
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
        contrast : dict, optional
            Values or levels to compare, such as ``{"age": [30, 60]}``: the mean outcome at each one
            minus that at the first, instead of the effects of all columns.
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
        means = self._means(target, level)
        columns = self.columns_
        frame = margins.frame_of_rows(X, columns.given_names)
        names = [
            name
            for name in columns.given_names
            if means.target != "population" or name not in columns.instruments
        ]
        means.check(frame)
        names = [name for name in names if name in columns.varied]
        frame = columns.with_numbers(frame)
        # the probability of selection is smooth, whatever the learner of the outcome
        smooth = target == SELECTION or getattr(self, "learner_", "linear") in SMOOTH_LEARNERS
        return effects_table(
            frame,
            names,
            means.estimate,
            margins.groups_of(frame, by),
            at=at,
            contrast=contrast,
            kind=kind,
            levels={},
            contrast_indicators=True,
            step=margins.STEP if smooth else margins.STEP_OF_TREES,
        )

    def _means(self, target: str, level: float) -> ModelMeans:
        """Check the options, and issue the caveat of the fit as a warning."""
        check_level(level)
        if not is_one_of(target, (SELECTION,)):
            return ModelMeans(self, target_of(self, target), level)
        check_is_fitted(self)
        if self.identification_.verdict == NOTHING_TO_CORRECT:
            raise DataError(f"the fit had no unselected unit, so target={target!r} has no meaning")
        return ModelMeans(self, target, level)

    def log_likelihood(self, X, y, *, selected=None, sample_weight=None) -> float:
        r"""Compute the joint log-likelihood of selection and outcome, as a mean over units.

        Parameters
        ----------
        X : array-like or frame of shape (m, columns)
            Rows to evaluate, instrument columns included.
        y : array-like of shape (m,)
            Outcomes, missing where they were not observed.
        selected : array-like of bool of shape (m,), optional
            Which rows were selected; by default those with an outcome.
        sample_weight : array-like of shape (m,), optional
            Weight of each row. One of weight zero may have likelihood 0.

        Returns
        -------
        float
            Larger is better.

        Raises
        ------
        DataError
            If X or y cannot be used, or no probit of selection could be fitted.

        Notes
        -----
        The contribution of a unit is

        .. math:: \log p(y \mid x, w, s=1) + \log P(s=1 \mid w)
                  \text{ if selected, else } \log P(s=0 \mid w).

        Here p is the density of y itself, so that fits with different `target_transform` can be
        compared, or the probability of a class. A fit without unselected units gives them
        probability 0.
        """
        check_is_fitted(self)
        check_same_order(X, y=y, selected=selected, sample_weight=sample_weight)
        y = self._outcomes(y, selected)
        x, w, s = self.columns_.x(X), self.columns_.w(X), ~np.isnan(y)
        check_same_length(x, y)
        plain = self.identification_.verdict == NOTHING_TO_CORRECT
        unit = np.full(len(y), -np.inf)
        if s.any():
            target = "population" if plain else "selected"
            unit[s] = self._log_density(x[s], w[s], target, y[s])
        if not plain:
            index = self.fitted_.index(w)
            unit = np.where(s, unit + log_ndtr(index), log_ndtr(-index))
        weight = check_weights(sample_weight, len(unit), np.ones(len(unit), dtype=bool))
        used = weight > 0
        return float(np.average(unit[used], weights=weight[used]))

    def _outcomes(self, y, selected) -> np.ndarray:
        """(n,) outcomes as numbers, NaN for units that were not selected."""
        raise NotImplementedError

    def _log_density(self, x, w, target: str, y) -> np.ndarray:
        """(n,) log-likelihood of the outcomes of selected units."""
        raise NotImplementedError

    def _to_score(self, X, y, selected, sample_weight):
        """(n,) outcomes, which of them count, and their weights or None."""
        check_is_fitted(self)
        check_same_order(X, y=y, selected=selected, sample_weight=sample_weight)
        y = self._outcomes(y, selected)
        rows = ~np.isnan(y)
        if not rows.any():
            raise DataError(
                f"none of the {len(y)} rows has an outcome to score; if the rows are sorted, "
                "shuffle them before they are split into folds: cv=KFold(5, shuffle=True)"
            )
        if sample_weight is None:
            return y, rows, None
        return y, rows, check_weights(sample_weight, len(y), rows)[rows]

    def summary(self) -> display.Summary:
        """Summarise the fit: the verdict, its evidence, and what was fitted.

        Returns
        -------
        Summary
            A string that a notebook shows as HTML. For a linear fit, the table of coefficients.
        """
        check_is_fitted(self)
        if hasattr(self, "result_"):
            return self.result_.summary()
        title = f"{type(self).__name__} of {self.outcome_name_}"
        facts = self._facts()
        lines = [title, f"{self.identification_}", *(f"{name}: {text}" for name, text in facts)]
        html = (display.heading(title), display.facts(facts), self.identification_.as_box())
        text = "\n".join([*lines, *self.identification_.evidence_lines()])
        return display.Summary(text, display.block(*html))

    def _facts(self) -> list[tuple[str, str]]:
        """What `summary` says beside the verdict: names and values."""
        return []

    def _html_repr(self) -> str:
        """A notebook shows the diagram of scikit-learn and, once fitted, the summary."""
        fitted = self.summary()._repr_html_() if hasattr(self, "fitted_") else ""
        return estimator_html_repr(self) + fitted

    def check_loaded(self) -> None:
        """Predict two rows, which fails if parts of the file contradict each other."""
        self.identification_.evidence_lines()
        if not isinstance(self.outcome_name_, str):
            raise ValueError("an outcome without a name")
        self.summary()
        columns = self.columns_
        x, w = (np.zeros((2, len(names))) for names in (columns.x_names, columns.w_names))
        for target in TARGETS:
            try:
                found = self._numbers(x, w, target_of(self, target, tell=False))
            except HeckeselError:
                if target == "population":
                    raise
                continue  # a model that does not predict this target
            if np.isnan(found).any():
                raise ValueError("predictions are NaN")

    def _numbers(self, x, w, target: str):
        """Arrays that are not NaN if the model is whole."""
        raise NotImplementedError

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = self.takes_categories
        tags.input_tags.allow_nan = self.missing == "indicator"
        return tags


class SelectionRegressor(RegressorMixin, FittedModel):
    """Methods that all regressors share; their `fit` sets `transform_`, too, and their `fitted_`
    has `.predict(x, w, target)`."""

    transform_: Any

    @property
    def scale_(self) -> str:
        """The outcome on the scale of the fit, such as "log(wage)"."""
        check_is_fitted(self)
        name = self.outcome_name_
        return name if self.transform_ is None else self.transform_.label(name)

    def predict(self, X, return_std: bool = False, *, target: str = "population"):
        """Predict the mean outcome.

        Parameters
        ----------
        X : array-like or frame of shape (m, columns)
            Units to predict, with the columns of the fit. A frame needs no instrument columns
            for the population.
        return_std : bool, default=False
            Whether to return the total standard deviation as well.
        target : {"population", "selected", "unselected"}, default="population"
            Units to which the mean refers; see `predict_distribution`.

        Returns
        -------
        mean : ndarray of shape (m,)
        std : ndarray of shape (m,)
            Only with ``return_std=True``.

        Raises
        ------
        DataError
            If X lacks a column, or holds a value that the fit cannot use.
        """
        if not isinstance(return_std, bool | np.bool_):
            raise DataError(f"return_std must be True or False, got {return_std!r}")
        mean, std = predicted_numbers(self, X, target, lambda found: (found.mean, found.std))
        return (mean, std) if return_std else mean

    def predict_interval(self, X, level: float = 0.9, target: str = "population") -> np.ndarray:
        """Predict equal-tailed intervals for the outcome.

        Parameters
        ----------
        X : array-like or frame of shape (m, columns)
            Units to predict, as in `predict`.
        level : float, default=0.9
            Probability that the interval should cover, between 0 and 1.
        target : {"population", "selected", "unselected"}, default="population"
            Units to which the interval refers; see `predict_distribution`.

        Returns
        -------
        ndarray of shape (m, 2)
            Lower and upper end.

        Raises
        ------
        DataError
            If `level` is not between 0 and 1, or X cannot be used.
        """
        ends = predicted_numbers(self, X, target, lambda found: found.interval(level).T)
        return np.stack(ends, axis=1)

    def predict_distribution(self, X, target: str = "population") -> Predictive:
        """Predict the distribution of the outcome.

        Parameters
        ----------
        X : array-like or frame of shape (m, columns)
            Units to predict, as in `predict`.
        target : {"population", "selected", "unselected"}, default="population"
            "population" is y of any unit with this x. "selected" and "unselected" are y given
            that the unit was or was not selected; both need the instrument columns. A model
            that assumes that outcomes are missing at random predicts the same for all three.

        Returns
        -------
        Predictive
            With `mean`, `std`, `epistemic`, `aleatoric`, `interval`, `quantile`, `cdf` and
            `sample`, all on the scale of y.

        Raises
        ------
        DataError
            If X cannot be used, or `target` is "unselected" and the fit had no unselected unit.
        """
        x, w, target = rows_for_target(self, X, target)
        return replace(_predictive(self, x, w, target), index=row_labels(X), library=library_of(X))

    def score(self, X, y, *, selected=None, sample_weight=None) -> float:
        """Compute R² of E[y | x, w, selected] on the rows with an outcome.

        Parameters
        ----------
        X : array-like or frame of shape (m, columns)
            Rows to score, instrument columns included.
        y : array-like of shape (m,)
            Outcomes, NaN where they were not observed.
        selected : array-like of bool of shape (m,), optional
            Which rows were selected; by default those with an outcome.
        sample_weight : array-like of shape (m,), optional
            Weight of each row.

        Returns
        -------
        float
            R², at most 1.

        Raises
        ------
        DataError
            If no row has an outcome.

        Notes
        -----
        Only observed outcomes can be scored. On them a model that ignores selection beats the
        population mean of a correct model, so the prediction given selection is scored. To
        choose between models, prefer `log_likelihood`.
        """
        y, rows, weight = self._to_score(X, y, selected, sample_weight)
        mean = self.predict_distribution(X, "selected").mean
        check_same_length(mean, y)
        return float(r2_score(y[rows], mean[rows], sample_weight=weight))

    def _outcomes(self, y, selected) -> np.ndarray:
        y = outcome_column(y, self.unobserved)
        return np.where(marked_rows(y, selected, self.outcome_name_), y, np.nan)

    def _log_density(self, x, w, target: str, y) -> np.ndarray:
        predictive = self.fitted_.predict(x, w, target)
        return transformed_distribution(predictive, self.transform_).log_density(y)

    def _numbers(self, x, w, target: str):
        # on the scale of the fit, as the exponential of a row of zeros may be infinite
        found = self.fitted_.predict(x, w, target)
        return found.mean, found.std, *found.interval(0.9).T


def rows_for_target(model, X, target: str):
    """x, w (None if the target does not need it) and the target; warns of the fit's caveat.

    If every unit of the fit was selected, the selected are the population.
    """
    target = target_of(model, target)
    w = None if target == "population" else model.columns_.w(X)
    return model.columns_.x(X), w, target


def predicted_numbers(
    model, X, target: str, numbers_of: Callable[[Predictive], Any]
) -> list[np.ndarray]:
    """The arrays (m,) that `numbers_of` takes from the distributions of the rows of X, of which
    memory holds a block at a time."""
    x, w, target = rows_for_target(model, X, target)

    def numbers(rows: slice):
        return numbers_of(_predictive(model, x[rows], None if w is None else w[rows], target))

    return in_row_blocks(numbers, len(x))


def _predictive(model, x, w, target: str) -> Predictive:
    return transformed(model.fitted_.predict(x, w, target), model.transform_)


def check_same_length(x, y) -> None:
    if len(x) != len(y):
        raise DataError(f"X has {len(x)} rows but y has {len(y)}")
