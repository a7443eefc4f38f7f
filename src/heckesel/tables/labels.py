"""Two class labels, missing where the outcome was not observed, as 0, 1 and NaN."""

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import type_of_target

from heckesel.errors import DataError
from heckesel.numeric_input import check_scalars, numeric, unmasked
from heckesel.tables.fit_input import one_column


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
    kind = type_of_target(present)
    if kind.startswith("continuous"):
        raise DataError(
            f"Unknown label type: {kind}. The outcome {name!r} holds numbers that are not class "
            f"labels (first: {present[0]!r}); use HeckmanRegressor"
        )
    classes = np.unique(present)
    if len(classes) == 1:
        raise DataError(
            f"the outcome {name!r} has one class only, {classes[0]!r}, among the {len(labels)} "
            "observed rows, so there is nothing to distinguish; two classes are needed"
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
