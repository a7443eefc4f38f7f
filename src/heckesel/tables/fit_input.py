"""From the X and y of a fit to checked data; what predictions need later stays on the model.

A model has the options `instruments`, `missing`, `on_problem`, `target_transform` and `unobserved`;
`read_table` leaves `columns_`, `plan_`, `transform_`, `outcome_name_`, `groups_name_` and
`n_features_in_` on it.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from heckesel.data import (
    SelectionData,
    kind_of_weights,
    scaled_weight,
    selected_rows,
    selection_data,
)
from heckesel.errors import ColumnError, DataError, is_one_of, warn_user
from heckesel.numeric_input import numeric
from heckesel.scales import TargetTransform, target_transform, transform_outcome
from heckesel.tables.columns import Columns, chosen_names, learn_columns, named_columns
from heckesel.tables.frames import as_pandas, check_same_order, numbers_of
from heckesel.tables.groups import repeated_units, split_groups
from heckesel.tables.outcome.scale_choice import chosen_transform
from heckesel.tables.outcome.unobserved import (
    question,
    unobserved_values,
    without_unobserved,
)
from heckesel.tables.preparation.column_plan import reduced, without_term
from heckesel.tables.preparation.learn_plan import check_plan, learn_plan

ON_PROBLEM = ("error", "fix")
Check = Callable[[SelectionData], None]


def read_table(
    model,
    X,
    y,
    *,
    selected,
    sample_weight,
    groups=None,
    check: Check,
    linear: bool = False,
    ask: bool = True,
) -> SelectionData:
    """The checked data, with y on the scale of the fit.

    check : raises a `ColumnError` for data that no model can be fitted to; on_problem="fix" then
        omits the column
    ask : whether to warn of a spike of the outcome that may stand for missing ones
    linear : whether x enters linearly, so that the first level of each category is dropped;
        weights are then as given, since `hk.heckman` scales them by their kind
    """
    target_transform(model.target_transform)  # refused before anything is read
    check_same_order(X, y=y)
    name = str(getattr(y, "name", None) or "y")
    data = read_columns(
        model,
        X,
        lambda: outcome_column(y, model.unobserved),
        name,
        selected,
        sample_weight,
        groups,
        check=check,
        linear=linear,
    )
    asked = question(data)
    if ask and asked:
        warn_user(asked)
    if not linear:
        kind = kind_of_weights(None, data.weight)
        data = replace(data, weight=scaled_weight(data.weight, kind))
    data, model.transform_ = on_scale(data, model.target_transform, linear=linear)
    return data


def on_scale(
    data: SelectionData, given, *, linear: bool
) -> tuple[SelectionData, TargetTransform | None]:
    """The data with y on the scale of the option `target_transform`, and that scale."""
    transform = chosen_transform(given, data, linear=linear)
    if transform is None:
        return data, None
    z, transform = transform_outcome(data.y, transform, data.y_name)
    return replace(data, y=z, y_name=transform.label(data.y_name)), transform


def read_columns(
    model,
    X,
    outcome: Callable,
    name: str,
    selected,
    sample_weight,
    groups,
    *,
    check: Check,
    linear: bool,
) -> SelectionData:
    """The checked data of X and of `outcome()`, which returns (n,) numbers."""
    X, found = split_groups(X, groups, model)
    if found is None and hasattr(X, "columns"):
        asked = repeated_units(as_pandas(X, "X"))
        if asked:
            warn_user(asked, UserWarning)
    check_same_order(X, selected=selected, sample_weight=sample_weight)
    if not is_one_of(model.on_problem, ON_PROBLEM):
        raise DataError(f"on_problem must be 'error' or 'fix', got {model.on_problem!r}")
    sides = {"selected": selected, "weight": sample_weight, "y_name": name}
    codes = None if found is None else found.codes
    if model.on_problem == "fix":
        columns, data = fixed_columns(
            model, X, outcome(), sides, groups=codes, check=check, linear=linear
        )
        assert columns.plan is not None
        if columns.plan.actions:
            warn_user(f"on_problem='fix': {'. '.join(columns.plan.actions)}", UserWarning)
    else:
        columns = learn_columns(X, model.instruments, missing=model.missing, linear=linear)
        data = _data_of(columns, X, outcome(), sides, codes)
    keep_columns(model, columns, data.y_name)
    model.groups_name_ = None if found is None else found.name
    return data


def _data_of(columns: Columns, X, values, sides: dict, groups) -> SelectionData:
    _check_size(values)
    names = {"x_names": columns.x_names, "w_names": columns.w_names}
    data = selection_data(columns.x(X), columns.w(X), values, **sides, **names)
    if groups is None:
        return data
    if len(groups) != data.n:
        raise DataError(f"X has {data.n} rows but there are {len(groups)} groups, one per row")
    return replace(data, groups=groups)


def _check_size(values) -> None:
    if len(values) == 1:
        raise DataError("one sample (n_samples=1) is too few to fit a model; give more rows")


def fixed_columns(
    model,
    X,
    values,
    sides: dict,
    *,
    groups=None,
    check: Check,
    linear: bool = False,
    strict: bool = True,
) -> tuple[Columns, SelectionData]:
    """The columns with a plan that fixes every problem of X, and the data of the fit.

    values : (n,) the outcome; sides : the other arguments of `selection_data`; groups : (n,) codes
    strict : whether it is an error if no instrument can be used
    """
    frame, from_frame = named_columns(X)
    _check_size(values)
    instruments = chosen_names(model.instruments, tuple(frame.columns), from_frame)
    if len(values) != len(frame):
        raise DataError(f"X has {len(frame)} rows but y has {len(values)}")
    s = selected_rows(values, sides["selected"], sides["y_name"])
    if groups is not None and len(groups) != len(frame):
        raise DataError(f"X has {len(frame)} rows but there are {len(groups)} groups, one per row")
    plan, clean = learn_plan(frame, np.where(s, values, np.nan), s, instruments, groups)
    while True:
        if strict or not plan.steps:
            check_plan(plan)
        columns = learn_columns(clean, plan.clean_instruments, linear=linear)
        data = _data_of(columns, clean, values, sides, groups)
        try:
            check(data)
        except ColumnError as error:
            others = [term for term in error.terms if term not in data.instruments]
            plan = without_term(plan, (others or error.terms)[-1], error.reason)
            clean = reduced(clean, plan)
        else:
            return replace(columns, from_frame=from_frame, plan=plan), data


def keep_columns(model, columns: Columns, y_name: str) -> None:
    """Store what scikit-learn expects of a fitted model, and what predictions need."""
    model.columns_, model.plan_, model.outcome_name_ = columns, columns.plan, y_name
    model.n_features_in_ = len(columns.given_names)
    if columns.from_frame:
        model.feature_names_in_ = np.array(columns.given_names, dtype=object)
    elif hasattr(model, "feature_names_in_"):  # of an earlier fit, to a frame
        del model.feature_names_in_


def outcome_column(y, unobserved=None) -> np.ndarray:
    """y as (n,) float64; a table with one column is accepted with a warning.

    unobserved : value or values of y that stand for a missing outcome
    """
    if y is None:
        raise DataError("this estimator requires y to be passed, but the target y is None")
    name = str(getattr(y, "name", None) or "y")
    if any(isinstance(value, str) for value in unobserved_values(unobserved)):
        y = without_unobserved(np.asarray(y, dtype=object), unobserved)
    values = numbers_of(y, name) if isinstance(y, pd.Series) else numeric(y, name)
    return without_unobserved(one_column(values, f"{name!r} must be one column"), unobserved)


def one_column(values: np.ndarray, expected: str) -> np.ndarray:
    """(n,) values; a table with one column is accepted with a warning."""
    if values.ndim == 2 and values.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        advice = "A column-vector y was passed when a 1d array was expected; use y.ravel()"
        warn_user(advice, DataConversionWarning)
        return values[:, 0]
    if values.ndim != 1:
        raise DataError(f"{expected} but has shape {values.shape}")
    return values
