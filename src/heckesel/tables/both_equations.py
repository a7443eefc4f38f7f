"""The columns of outcome and selection equation, from formulas and a frame or from arrays."""

from dataclasses import replace

import numpy as np
import pandas as pd

from heckesel.data import SelectionData, selected_rows, selection_data, term_names
from heckesel.errors import DataError
from heckesel.tables.array_design import ArrayDesign, array_design, with_intercept
from heckesel.tables.fit_input import known_values
from heckesel.tables.fit_options import side_column
from heckesel.tables.formula import (
    FormulaDesign,
    build_equation,
    check_not_explained_by_itself,
    evaluate_column,
    outcome_variables,
    scale_columns,
    split_formula,
)
from heckesel.tables.frames import as_pandas, check_same_order


def columns_from_formulas(
    outcome, select, data, *, weights, selected, scale, unobserved=None
) -> tuple[SelectionData, FormulaDesign]:
    """The checked columns, and how to make them from another frame."""
    if data is None:
        raise DataError("formulas need data=, a frame or a dict of columns")
    if select is None:
        raise DataError("the selection formula is missing: select='~ a + b'")
    check_same_order(data, of="data", selected=selected, weights=weights)
    frame = as_pandas(data)
    left, right = split_outcome(outcome)
    indicator, select_right = split_formula(select, "selection")
    known = frame if unobserved is None else outcome_known(frame, left, unobserved)
    y = evaluate_column(left, known, "outcome")
    if indicator is not None and selected is not None:
        raise DataError(f"select= names the indicator {indicator!r}; omit selected=")
    if indicator is not None:
        selected = evaluate_column(indicator, frame, "selection indicator")
    needed = selected_rows(y, selected, left)
    outcome_equation, x = build_equation(right, frame, needed, "outcome")
    select_equation, w = build_equation(select_right, frame, np.ones(len(frame), bool), "selection")
    scale_equation, z = scale_columns(scale, frame, needed) if scale is not None else (None, None)
    used = {*outcome_equation.variables, *select_equation.variables}
    used |= set() if scale_equation is None else set(scale_equation.variables)
    check_not_explained_by_itself(left, used)
    checked = selection_data(
        x,
        w,
        y,
        selected=selected,
        weight=side_column(weights, frame),
        x_names=outcome_equation.names,
        w_names=select_equation.names,
        y_name=left,
        excluded=select_equation.columns_beyond(outcome_equation.variables),
    )
    if scale_equation is not None:
        checked = replace(checked, scale=z, scale_names=scale_equation.names[1:])
    # A copy, because the user may change the frame later.
    held = frame[sorted(used)].copy()
    return checked, FormulaDesign(outcome_equation, select_equation, held, scale_equation)


def outcome_known(frame: pd.DataFrame, left: str, unobserved) -> pd.DataFrame:
    """The frame in which the values `unobserved` of the outcome are missing, before a function such
    as log is applied to it."""
    names = [left] if left in frame.columns else outcome_variables(left)
    if len(names) != 1 or names[0] not in frame.columns:
        raise DataError(
            f"unobserved= needs one column as the outcome, but {left!r} has "
            f"{', '.join(names) or 'none'}; set its values to missing before the fit"
        )
    return frame.assign(**{names[0]: known_values(frame[names[0]], unobserved)})


def split_outcome(outcome) -> tuple[str, str]:
    """Both sides of the outcome formula, which needs a left one."""
    left, right = split_formula(outcome, "outcome")
    if left is None:
        raise DataError(f"the outcome formula {outcome!r} needs a left-hand side: 'y ~ a + b'")
    return left, right


def columns_from_arrays(
    y, x, w, *, selected, weights, scale, unobserved=None
) -> tuple[SelectionData, ArrayDesign]:
    """The checked columns with a constant first, and the design without constants."""
    if unobserved is not None:
        y = known_values(y if isinstance(y, pd.Series) else pd.Series(np.asarray(y)), unobserved)
    check_same_order(x, of="x", w=w, y=y, selected=selected, weights=weights)
    design = array_design(x, w, scale)
    w_matrix = with_intercept(design.w)
    size = design.x.shape[1] + 1
    checked = selection_data(
        w_matrix[:, :size] if design.x_starts_w else with_intercept(design.x),
        w_matrix,
        y,
        selected=selected,
        weight=weights,
        x_names=("Intercept", *term_names(design.x_names)),
        w_names=("Intercept", *term_names(design.w_names)),
        y_name=str(getattr(y, "name", None) or "y"),
    )
    if scale is not None:
        z = design.scale_matrix((design.x, None))
        checked = replace(checked, scale=z, scale_names=design.scale_names)
    return checked, design


def with_constants(data: SelectionData, scale=()) -> tuple[SelectionData, ArrayDesign]:
    """The same of data that were checked without constants; scale : names in x."""
    design = ArrayDesign(data.x, data.w, data.x_names, data.w_names, scale)
    checked = replace(
        data,
        x=with_intercept(data.x),
        w=with_intercept(data.w),
        x_names=("Intercept", *data.x_names),
        w_names=("Intercept", *data.w_names),
        scale=design.scale_matrix((data.x, None)),
        scale_names=scale,
    )
    return checked, design
