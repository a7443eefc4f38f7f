"""From the X and y of a fit to checked data; what predictions need later stays on the model.

A model has the options `instruments`, `missing` and `target_transform`; `read_table` leaves
`columns_`, `transform_`, `outcome_name_` and `n_features_in_` on it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from heckesel.data import SelectionData, kind_of_weights, scaled_weight, selection_data
from heckesel.errors import DataError
from heckesel.numeric_input import numeric
from heckesel.predictive.transformed import target_transform, transform_outcome
from heckesel.tables.columns import Columns, learn_columns
from heckesel.tables.frames import check_same_order, numbers_of


def read_table(model, X, y, *, selected, sample_weight, linear: bool = False) -> SelectionData:
    """The checked data, with y on the scale of the fit.

    linear : whether x enters linearly, so that the first level of each category is dropped;
        weights are then as given, since `hk.heckman` scales them by their kind
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
    """The checked data of X and of `outcome()`, which returns (n,) numbers."""
    check_same_order(X, selected=selected, sample_weight=sample_weight)
    columns = learn_columns(X, model.instruments, missing=model.missing, linear=linear)
    values = outcome()
    if len(values) == 1:
        raise DataError("one sample (n_samples=1) is too few to fit a model; give more rows")
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
    """Store what scikit-learn expects of a fitted model, and what predictions need."""
    model.columns_, model.outcome_name_ = columns, y_name
    model.n_features_in_ = len(columns.names)
    if columns.from_frame:
        model.feature_names_in_ = np.array(columns.names, dtype=object)
    elif hasattr(model, "feature_names_in_"):  # of an earlier fit, to a frame
        del model.feature_names_in_


def outcome_column(y) -> np.ndarray:
    """y as (n,) float64; a table with one column is accepted with a warning."""
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
