"""From the X and y of a fit to checked data; what predictions need later stays on the model.

A model has the options `instruments`, `missing`, `on_problem`, `target_transform` and `unobserved`;
`read_table` leaves `columns_`, `transform_`, `outcome_name_`, `groups_name_` and `n_features_in_`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
import pandas as pd

from heckesel.data import (
    SelectionData,
    check_scalars,
    check_weights,
    kind_of_weights,
    numeric,
    scaled_weight,
    selected_rows,
    selection_data,
    unmasked,
)
from heckesel.errors import DataError, as_list, did_you_mean, is_one_of, warn_user
from heckesel.scales import TargetTransform, chosen_transform, target_transform, transform_outcome
from heckesel.tables.columns import Columns, chosen_names, learn_columns, named_columns
from heckesel.tables.frames import as_pandas, check_same_order, numbers_of
from heckesel.tables.problems import check_usable, learn_fixes, repeated_units

# Values that surveys and forms write where there is no answer.
SUSPECTS = (0.0, -1.0, -9.0, -99.0, -999.0, 9.0, 99.0, 999.0, 9999.0)
# A spike is a value of at least this share of the outcomes that is this many times as frequent as
# every other value. Counts and grades have frequent values, too, but not one so far above the next.
SPIKE_SHARE, SPIKE_RATIO = 0.05, 5
# Of gifts and prices, round numbers are frequent, too: a third of the outcomes need not be so far
# above them.
LARGE_SHARE, LARGE_RATIO = 1 / 3, 2
FEWEST_VALUES = 12  # with at most so many values, a frequent one is no surprise
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
    if model.on_problem == "fix":
        values = outcome()
        columns, error = fixed_columns(model, X, values, sides, check=check, linear=linear)
        check_usable(columns)
        if error is not None:
            raise error
        if columns.actions:
            warn_user(f"on_problem='fix': {'. '.join(columns.actions)}", UserWarning)
    else:
        columns = learn_columns(X, model.instruments, missing=model.missing, linear=linear)
        values = outcome()
    _check_several(values)
    x, w = columns.learned(X)
    names = {"x_names": columns.x_names, "w_names": columns.w_names}
    data = selection_data(x, w, values, **names, **sides)
    if found is not None:
        if len(found.codes) != data.n:
            raise DataError(
                f"X has {data.n} rows but there are {len(found.codes)} groups, one per row"
            )
        data = replace(data, groups=found.codes)
    keep_columns(model, columns, data.y_name)
    model.groups_name_ = None if found is None else found.name
    return data


def _check_several(values) -> None:
    if len(values) == 1:
        raise DataError("one sample (n_samples=1) is too few to fit a model; give more rows")


def fixed_columns(
    model, X, values, sides: dict, *, check: Check, linear: bool = False
) -> tuple[Columns, DataError | None]:
    """Columns that fix every problem of X, and why they still cannot be used.

    values : (n,) the outcome; sides : the other arguments of `selection_data`
    """
    frame, from_frame = named_columns(X)
    instruments = chosen_names(model.instruments, tuple(frame.columns), from_frame)
    _check_several(values)
    if len(values) != len(frame):
        raise DataError(f"X has {len(frame)} rows but y has {len(values)}")
    s = selected_rows(values, sides["selected"], sides["y_name"])
    return learn_fixes(
        frame,
        instruments,
        np.where(s, values, np.nan),
        s,
        check_weights(sides["weight"], len(s), s),
        sides["y_name"],
        check=check,
        from_frame=from_frame,
        linear=linear,
    )


def keep_columns(model, columns: Columns, y_name: str) -> None:
    """Store what scikit-learn expects of a fitted model, and what predictions need."""
    model.columns_, model.outcome_name_ = columns, y_name
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


def unobserved_values(given) -> list:
    """The option `unobserved` as a list of numbers and strings."""
    if given is None:
        return []
    values = list(given) if isinstance(given, list | tuple | set | frozenset) else [given]
    if not all(isinstance(value, str | Real | np.bool_) for value in values):
        raise DataError(
            f"unobserved must be a value of the outcome or a list of values, got {given!r}"
        )
    return values


def without_unobserved(values: np.ndarray, given) -> np.ndarray:
    """(n,) outcomes with the values of `given` set to missing: NaN, or None for objects."""
    codes = unobserved_values(given)
    if not codes:
        return values
    if values.dtype == object:
        labels = pd.Series(values, dtype=object)  # compared as in Python, whatever their type
        return labels.mask(labels.isin(codes), None).to_numpy()
    numbers = [float(code) for code in codes if not isinstance(code, str)]
    return np.where(np.isin(values, numbers), np.nan, values)


def known_values(column: pd.Series, given) -> pd.Series:
    """A column of any type in which the values of `given` are missing."""
    known = column.mask(column.isin(unobserved_values(given)))
    return pd.to_numeric(known) if known.dtype == object else known


def disguised(values: np.ndarray) -> float | None:
    """The value that may stand for a missing outcome: a spike at one of SUSPECTS.

    values : (n,) numbers, NaN where missing
    """
    found, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(found) <= FEWEST_VALUES:
        return None
    most, second = np.argsort(counts)[:-3:-1]
    rules = (SPIKE_SHARE, SPIKE_RATIO), (LARGE_SHARE, LARGE_RATIO)
    least = min(max(share * counts.sum(), ratio * counts[second]) for share, ratio in rules)
    spike = counts[most] >= least
    return float(found[most]) if spike and found[most] in SUSPECTS else None


def question(data) -> str:
    """The sentence that points to a spike of the outcome; empty if there is none, and for rows
    that are read from files one part at a time."""
    value = disguised(data.y) if isinstance(data, SelectionData) else None
    if value is None:
        return ""
    values, name = data.y, data.y_name
    rows, n = np.count_nonzero(values == value), np.count_nonzero(~np.isnan(values))
    return (
        f"the outcome {name!r} is {value:g} in {rows:,} of {n:,} rows; if this value stands for a "
        f"missing outcome, pass unobserved={value:g} (--unobserved {value:g} in the shell)"
    )


def label_column(y) -> np.ndarray:
    """y as (n,) objects, missing ones None; a table of one column is that column."""
    if y is None:
        raise DataError("this estimator requires y to be passed, but the target y is None")
    values = unmasked(y, "y")
    if values.dtype.kind in "cV":
        raise DataError(f"y must hold class labels but row 0 holds {values.flat[0]!r}")
    values = one_column(values.astype(object), "y must be one column of labels")
    values[pd.isna(values)] = None
    return values


def learn_classes(values, selected, name: str) -> np.ndarray:
    """The two labels of the observed rows, in order; anything else is a `DataError`."""
    seen = ~pd.isna(values)
    if selected is not None:
        mask = numeric(selected, "selected")
        if mask.shape != values.shape:
            raise DataError(f"selected has shape {mask.shape} but y has {values.shape}")
        seen &= mask == 1.0
    labels = values[seen]
    check_scalars(labels, name)
    if not len(labels):
        raise DataError(f"the outcome {name!r} is missing in all {len(values)} rows")
    if len({isinstance(label, str) for label in labels}) > 1:
        raise DataError(
            f"the outcome {name!r} mixes strings with other labels; use one kind of label"
        )
    present = np.array(labels.tolist())
    if present.dtype.kind == "f" and not np.isfinite(present).all():
        raise DataError(
            f"the outcome {name!r} holds infinite values; set unobserved outcomes to missing"
        )
    from sklearn.utils.multiclass import type_of_target  # slow to import

    kind = type_of_target(present)
    if kind.startswith("continuous"):
        raise DataError(
            f"Unknown label type: {kind}. The outcome {name!r} holds numbers that are not class "
            f"labels (first: {present[0]!r}); use HeckmanRegressor"
        )
    classes = np.unique(present)
    if len(classes) == 1:
        raise DataError(
            f"the outcome {name!r} has one class only, {classes.tolist()[0]!r}, among the "
            f"{len(labels)} observed rows, so there is nothing to distinguish; "
            "two classes are needed"
        )
    if len(classes) > 2:
        raise DataError(
            f"Only binary classification is supported. The type of the target is {kind}. "
            f"The outcome {name!r} has {len(classes)} classes; merge them into two, or pass as "
            "unobserved= the one that stands for a missing outcome"
        )
    return classes


def class_codes(values, classes, selected, name: str) -> np.ndarray:
    """(n,) 1 for the second class, 0 for the first, NaN where missing or not selected."""
    codes = np.full(len(values), np.nan)
    for code, label in enumerate(classes):
        codes[values == label] = code
    odd = np.isnan(codes) & ~pd.isna(values)
    if selected is not None:
        odd &= numeric(selected, "selected") == 1.0
    if odd.any():
        row = int(np.flatnonzero(odd)[0])
        raise DataError(
            f"the outcome {name!r} is {values[row]!r} in row {row}, but the classes of the fit "
            f"are {classes[0]!r} and {classes[1]!r}"
        )
    return codes


def observed_values(model, y, selected=None, *, rows=None) -> tuple[np.ndarray, np.ndarray]:
    """The outcome as numbers (n,), of classes 0 and 1, and whether each unit was selected.

    y : None if only the second is asked for; rows : of X, which y must have, too
    """
    if y is None:
        values = np.where(np.asarray(selected) == 1, 0.0, np.nan)
    elif hasattr(model, "classes_"):
        labels = without_unobserved(label_column(y), model.unobserved)
        values = class_codes(labels, model.classes_, selected, model.outcome_name_)
    else:
        values = outcome_column(y, model.unobserved)
    if rows is not None and len(values) != rows:
        raise DataError(f"X has {rows} rows but y has {len(values)}")
    return values, selected_rows(values, selected, model.outcome_name_)


@dataclass(frozen=True)
class Groups:
    """name : of the column, None if it has none; codes : (n,) integers from 0"""

    name: str | None
    codes: np.ndarray


def group_codes(values, n: int | None = None) -> np.ndarray:
    """(n,) integer codes of labels, from 0 in the order of their first rows."""
    values = unmasked(values, "groups")
    n = len(values) if n is None and values.ndim else n
    if values.shape != (n,):
        raise DataError(f"groups have shape {values.shape} but there are {n} rows")
    if pd.isna(values).any():
        raise DataError("groups have missing values; every row needs a group")
    if values.dtype == object:
        values = np.array([str(value) for value in values])
    codes, labels = pd.factorize(values)
    if len(labels) < 2:
        raise DataError("all rows are in one group; standard errors and folds need at least two")
    return codes


def split_groups(X, groups, model):
    """X without the column that `groups` names, and the `Groups`, or None.

    model : has `instruments` and perhaps `scale`, which must not name that column
    """
    if groups is None:
        return X, None
    columns = list(getattr(X, "columns", ()))
    if isinstance(groups, list | tuple) and all(
        isinstance(each, str) and each in columns for each in groups
    ):
        raise DataError(
            f"groups must be one column, got {groups!r}; give one label per row, such as those of "
            "two columns joined as text"
        )
    if not isinstance(groups, str):
        check_same_order(X, groups=groups)
        name = getattr(groups, "name", None)
        return X, Groups(None if name is None else str(name), group_codes(groups))
    if not (hasattr(X, "columns") or isinstance(X, dict)):
        raise DataError(f"groups={groups!r} is a name but X has none; pass one value per row")
    frame = as_pandas(X, "X")
    names = [str(name) for name in frame.columns]
    if groups not in names:
        hint = did_you_mean(groups, names)
        raise DataError(f"X has no column {groups!r}, given as groups{hint}")
    _check_roles(groups, model)
    position = names.index(groups)
    codes = group_codes(frame.iloc[:, position])
    return frame.drop(columns=frame.columns[position]), Groups(groups, codes)


def _check_roles(name: str, model) -> None:
    """Refuse an instrument or a column of sigma that is the group, or that is given by position."""
    for option in ("instruments", "scale"):
        given = getattr(model, option, None)
        for item in [] if given is None else as_list(option, given):
            if item == name:
                raise DataError(f"{name!r} is given both as {option} and as groups")
            if not isinstance(item, str):
                raise DataError(
                    f"groups={name!r} is not used as a regressor, which shifts the positions of "
                    f"columns; give names in {option} instead of positions"
                )
