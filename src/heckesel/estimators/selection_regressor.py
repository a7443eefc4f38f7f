"""Methods of all fitted regressors: predictions, scores and saving."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from heckesel.data import check_weights, marked_rows, selected_rows
from heckesel.errors import DataError, HeckeselError
from heckesel.estimators.group_averages import GroupAverages, target_of
from heckesel.predictive import (
    TARGETS,
    Predictive,
    in_row_blocks,
    transformed,
    transformed_distribution,
)
from heckesel.saving import save
from heckesel.tables.fit_input import outcome_column
from heckesel.tables.frames import check_same_order, library_of, row_labels
from heckesel.verdict.identify import NOTHING_TO_CORRECT


class SelectionRegressor(GroupAverages, RegressorMixin, BaseEstimator):
    """Methods that all regressors share.

    A subclass has the options `instruments`, `missing`, `target_transform` and `unobserved`. Its
    `fit` sets `columns_`, `transform_`, `identification_` and `fitted_`, which has
    `.predict(x, w, target)` and, if some units were unselected, `.index(w)`.
    """

    @property
    def takes_categories(self) -> bool:
        """Whether scikit-learn may pass category codes."""
        return True

    @property
    def scale_(self) -> str:
        """The outcome on the scale of the fit, such as "log(wage)"."""
        check_is_fitted(self)
        name = self.outcome_name_  # type: ignore[attr-defined]
        return name if self.transform_ is None else self.transform_.label(name)  # type: ignore[attr-defined]

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
        return r2_given_selection(self, X, y, selected, sample_weight)

    def log_likelihood(self, X, y, *, selected=None, sample_weight=None) -> float:
        r"""Compute the joint log-likelihood of selection and outcome, as a mean over units.

        Parameters
        ----------
        X : array-like or frame of shape (m, columns)
            Rows to evaluate, instrument columns included.
        y : array-like of shape (m,)
            Outcomes, NaN where they were not observed.
        selected : array-like of bool of shape (m,), optional
            Which rows were selected; by default those with an outcome.
        sample_weight : array-like of shape (m,), optional
            Weight of each row.

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

        Densities are those of y itself, so that fits with different `target_transform` can be
        compared. A fit without unselected units gives them probability 0.
        """
        return mean_log_likelihood(self, X, y, selected, sample_weight)

    def save(self, path) -> None:
        """Save the fitted model to one file, which `hk.load` reads.

        Parameters
        ----------
        path : str or path
            File to write, such as "loans.heckesel". It holds weights and summaries, but no
            pickle and no rows of the data.

        Raises
        ------
        DataError
            If the file cannot be written, or the model cannot be saved.
        """
        save(self, path)

    def check_loaded(self) -> None:
        """Predict two rows, which fails if parts of the file contradict each other."""

        def numbers(x, w, target: str):
            found = _predictive(self, x, w, target)
            return found.mean, found.std, *found.interval(0.9).T

        check_predictions(self, numbers)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = self.takes_categories
        tags.input_tags.allow_nan = self.missing == "indicator"  # type: ignore[attr-defined]
        return tags


def check_predictions(model, numbers_of: Callable) -> None:
    """Use a loaded model once: its verdict, its summary, and its predictions for rows of zeros."""
    model.identification_.evidence_lines()
    if not isinstance(model.outcome_name_, str):
        raise ValueError("an outcome without a name")
    if hasattr(model, "result_"):
        model.result_.summary()
    x, w = (np.zeros((2, len(names))) for names in (model.columns_.x_names, model.columns_.w_names))
    for target in TARGETS:
        try:
            found = numbers_of(x, w, target_of(model, target, tell=False))
        except HeckeselError:
            if target == "population":
                raise
            continue  # a model that does not predict this target
        if np.isnan(found).any():
            raise ValueError("predictions are NaN")


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


def r2_given_selection(model, X, y, selected, sample_weight) -> float:
    """R² of E[y | x, w, selected] on the rows with an outcome."""
    check_is_fitted(model)
    check_same_order(X, y=y, selected=selected, sample_weight=sample_weight)
    y = outcome_column(y, model.unobserved)
    rows = marked_rows(y, selected, model.outcome_name_)
    if not rows.any():
        raise DataError(
            f"none of the {len(y)} rows has an outcome to score; if the rows are sorted, shuffle "
            "them before they are split into folds: cv=KFold(5, shuffle=True)"
        )
    mean = model.predict_distribution(X, "selected").mean
    check_same_length(mean, y)
    weight = None if sample_weight is None else check_weights(sample_weight, len(y), rows)[rows]
    return float(r2_score(y[rows], mean[rows], sample_weight=weight))


def mean_log_likelihood(model, X, y, selected, sample_weight) -> float:
    """The joint log-likelihood of selection and outcome, a mean over units."""
    check_is_fitted(model)
    check_same_order(X, y=y, selected=selected, sample_weight=sample_weight)
    y = outcome_column(y, model.unobserved)
    s = ~np.isnan(y) if selected is None else selected_rows(y, selected, model.outcome_name_)
    x, w = model.columns_.x(X), model.columns_.w(X)
    check_same_length(x, y)
    density = np.full(len(y), np.nan)  # (n,) given selection
    if s.any():
        no_selection = model.identification_.verdict == NOTHING_TO_CORRECT
        predictive = model.fitted_.predict(x[s], w[s], "population" if no_selection else "selected")
        density[s] = transformed_distribution(predictive, model.transform_).log_density(y[s])
    return joint_mean(model, s, w, density, sample_weight)


def check_same_length(x, y) -> None:
    if len(x) != len(y):
        raise DataError(f"X has {len(x)} rows but y has {len(y)}")


def joint_mean(model, s, w, given_selection: np.ndarray, sample_weight) -> float:
    """The mean log-likelihood of selection and outcome; a unit of weight zero may have -inf.

    given_selection : (n,) log-likelihoods of the outcomes of selected units
    """
    if model.identification_.verdict == NOTHING_TO_CORRECT:
        unit = np.where(s, given_selection, -np.inf)
    else:
        index = model.fitted_.index(w)
        unit = np.where(s, given_selection + log_ndtr(index), log_ndtr(-index))
    weight = check_weights(sample_weight, len(unit), np.ones(len(unit), dtype=bool))
    used = weight > 0
    return float(np.average(unit[used], weights=weight[used]))
