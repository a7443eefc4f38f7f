"""What the regressors share around their fits: plain functions of the estimator.

Each has the options `instruments`, `missing` and `target_transform`; after `read_table` it has
`columns_` and `transform_`, and after its fit `identification_` and `fitted_`, which offers
`.predict(x, w, target)` and, where something was selected, `.index(w)`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import log_ndtr

from heckesel.data import SelectionData, check_weights, marked_rows, selected_rows, selection_data
from heckesel.diagnostics.evidence import identify as identify_data
from heckesel.diagnostics.verdict import NO_SELECTION, Identification, nothing_selected
from heckesel.errors import DataError, IdentificationWarning
from heckesel.numeric_input import numeric
from heckesel.predictive.distribution import Predictive, check_target
from heckesel.predictive.transformed import (
    target_transform,
    transform_outcome,
    transformed,
    transformed_distribution,
)
from heckesel.tables.columns import Columns, learn_columns
from heckesel.tables.frames import check_same_order, like_input, numbers_of
from heckesel.tables.weights import kind_of_weights, scaled_weight


def read_table(model, X, y, *, selected, sample_weight, linear: bool = False) -> SelectionData:
    """The checked data, y on the scale of the fit; columns and transformation stay on `model`.

    linear : whether x enters linearly and so goes without the first level of each category;
        weights are then as given, since `hk.heckman` is told what they mean
    """
    transform = target_transform(model.target_transform)
    check_same_order(X, y=y)
    name = str(getattr(y, "name", None) or "y")
    data = read_columns(
        model, X, lambda: outcome_column(y), name, selected, sample_weight, linear=linear
    )
    if not linear:
        kind = kind_of_weights(None, data.weight)
        data = replace(data, weight=scaled_weight(data.weight, kind))
    if transform is not None:
        z, transform = transform_outcome(data.y, transform, data.y_name)
        data = replace(data, y=z)
    model.transform_ = transform
    return data


def read_columns(
    model, X, outcome: Callable, name: str, selected, sample_weight, *, linear: bool
) -> SelectionData:
    """The checked data of X and of `outcome()`, (n,) numbers; the columns stay on `model`."""
    check_same_order(X, selected=selected, sample_weight=sample_weight)
    columns = learn_columns(X, model.instruments, missing=model.missing, linear=linear)
    values = outcome()
    if len(values) == 1:
        raise DataError("one sample (n_samples=1) is no data to learn from; give more rows")
    data = selection_data(
        columns.x(X),
        columns.w(X),
        values,
        selected=selected,
        weight=sample_weight,
        x_names=columns.x_names,
        w_names=columns.w_names,
        y_name=name,
    )
    keep_columns(model, columns, data.y_name)
    return data


def keep_columns(model, columns: Columns, y_name: str) -> None:
    """What scikit-learn expects of a fitted model, and what predictions need."""
    model.columns_, model.outcome_name_ = columns, y_name
    model.n_features_in_ = len(columns.names)
    if columns.from_frame:
        model.feature_names_in_ = np.array(columns.names, dtype=object)
    elif hasattr(model, "feature_names_in_"):  # of an earlier fit, to a frame
        del model.feature_names_in_


def outcome_column(y) -> np.ndarray:
    """y as (n,) float64; a table of one column is taken as that column, with a warning."""
    if y is None:
        raise DataError("this estimator requires y to be passed, but the target y is None")
    name = str(getattr(y, "name", None) or "y")
    values = numbers_of(y, name) if isinstance(y, pd.Series) else numeric(y, name)
    if values.ndim == 2 and values.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; use y.ravel()",
            DataConversionWarning,
            stacklevel=4,
        )
        return values[:, 0]
    if values.ndim != 1:
        raise DataError(f"{name!r} must be one column but has shape {values.shape}")
    return values


def identify(data: SelectionData) -> Identification:
    """The verdict, with a warning where there is no instrument, or no selection."""
    if data.s.all():
        message = (
            f"all {data.n} rows have an outcome, so every unit was selected and there is nothing "
            "to correct: this is a plain ensemble"
        )
        warnings.warn(message, IdentificationWarning, stacklevel=3)
        return nothing_selected()
    verdict = identify_data(data)
    if not data.instruments:
        warnings.warn(str(verdict), IdentificationWarning, stacklevel=3)
    return verdict


def check_fitted(model) -> None:
    """scikit-learn's own check, and its import, which `hk.identify` does without: half a second."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)


def predict_mean(model, X, return_std: bool, target: str = "population"):
    """The target's mean, in the library X comes from; with `return_std` the total sd as well."""
    if not isinstance(return_std, bool | np.bool_):
        raise DataError(f"return_std must be True or False, got {return_std!r}")
    predictive = predict_target(model, X, target)
    mean = like_input(predictive.mean, X, model.outcome_name_)
    return (mean, like_input(predictive.std, X, "std")) if return_std else mean


def known_target(model, target: str) -> str:
    """The target, checked: where every unit was selected, the selected are the population."""
    check_target(target)
    if model.identification_.verdict != NO_SELECTION:
        return target
    if target == "unselected":
        raise DataError("the fit saw no unselected unit, so target='unselected' has no meaning")
    return "population"


def predict_target(model, X, target: str) -> Predictive:
    """The `Predictive` of y on its own scale."""
    check_fitted(model)
    target = known_target(model, target)
    w = None if target == "population" else model.columns_.w(X)
    return transformed(model.fitted_.predict(model.columns_.x(X), w, target), model.transform_)


def r2_given_selection(model, X, y, selected, sample_weight) -> float:
    """R2 of E[y | x, w, selected] on the rows with an outcome.

    Only these rows can be scored, and on them the naive model would win against the population
    mean; given selection is the fair comparison.
    """
    from sklearn.metrics import r2_score

    check_fitted(model)
    check_same_order(X, y=y, selected=selected, sample_weight=sample_weight)
    y = outcome_column(y)
    rows = marked_rows(y, selected, model.outcome_name_)
    if not rows.any():
        raise DataError(
            f"none of the {len(y)} rows has an outcome to score; folds cut from sorted rows need "
            "shuffling: cv=KFold(5, shuffle=True)"
        )
    mean = predict_target(model, X, "selected").mean
    if len(mean) != len(y):
        raise DataError(f"X has {len(mean)} rows but y has {len(y)}")
    weight = None if sample_weight is None else check_weights(sample_weight, len(y), rows)[rows]
    return float(r2_score(y[rows], mean[rows], sample_weight=weight))


def mean_log_likelihood(model, X, y, selected, sample_weight) -> float:
    r"""The joint log-likelihood of selection and outcome, a mean over units:

    .. math:: \log p(y \mid x, w, s=1) + \log P(s=1 \mid w) \text{ where y was observed},
              \quad \log P(s=0 \mid w) \text{ where not.}

    Densities are those of y itself, whatever the scale of the fit, so that fits with different
    transformations can be compared. A fit that saw no unselected unit gives them probability 0.
    """
    check_fitted(model)
    check_same_order(X, y=y, selected=selected, sample_weight=sample_weight)
    y = outcome_column(y)
    s = ~np.isnan(y) if selected is None else selected_rows(y, selected, model.outcome_name_)
    x, w = model.columns_.x(X), model.columns_.w(X)
    if len(x) != len(y):
        raise DataError(f"X has {len(x)} rows but y has {len(y)}")
    no_selection = model.identification_.verdict == NO_SELECTION
    unit = np.full(len(y), -np.inf)  # (n,)
    if not no_selection:
        index = model.fitted_.index(w)
        unit = log_ndtr(np.where(s, index, -index))
    if s.any():
        target = "population" if no_selection else "selected"
        predictive = model.fitted_.predict(x[s], w[s], target)
        density = transformed_distribution(predictive, model.transform_).log_density(y[s])
        unit[s] = density + (0.0 if no_selection else unit[s])
    weight = np.ones(len(y))
    if sample_weight is not None:
        weight = check_weights(sample_weight, len(y), np.ones(len(y), dtype=bool))
    used = weight > 0
    return float(np.average(unit[used], weights=weight[used]))
