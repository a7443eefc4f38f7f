"""The rows of a fit with fitted values, residuals and probabilities of selection."""

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtr

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.linear.results.prediction import mean_and_gradient
from heckesel.linear.results.probit_prediction import probit_index
from heckesel.numerics.normal import inverse_mills
from heckesel.numerics.truncated_student import mean_of_selection
from heckesel.tables.formula import FormulaDesign, evaluate_column
from heckesel.tables.frames import as_pandas

ADDED = ("selected", "fitted", "fitted_selected", "residual", "p_selected", "inverse_mills")


def augment(fit, data) -> pd.DataFrame:
    """The rows with fitted values; `data` : new rows of a fit from formulas, or None."""
    frame, x, w, scale, y, s = _rows_of_fit(fit) if data is None else _new_rows(fit, data)
    taken = [name for name in ADDED if name in frame.columns]
    if taken:
        raise DataError(f"augment() adds a column {taken[0]!r}, which the data has; rename it")
    return frame.assign(**_added(fit, x, w, scale, y, s))


def augment_probit(fit, data) -> pd.DataFrame:
    """The rows of a probit with the probability; `data` : a frame"""
    frame = as_pandas(data)
    taken = [name for name in ("fitted", "residual") if name in frame.columns]
    if taken:
        raise DataError(f"augment() adds a column {taken[0]!r}, which the data has; rename it")
    fitted = fit.predict(frame)
    return frame.assign(fitted=fitted, residual=_outcome(fit.name, frame) - fitted)


def _rows_of_fit(fit) -> tuple:
    data, design = fit.data, getattr(fit, "design", None)
    if not isinstance(data, SelectionData):
        raise DataError(
            "augment() needs rows, but this fit was loaded or read from files and has none; pass "
            "a frame: augment(frame)"
        )
    if isinstance(design, FormulaDesign) and design.frame is not None:
        frame = design.frame.assign(**{data.y_name: data.y})
    else:
        columns = dict(zip(data.x_names, data.x.T, strict=True))
        columns |= dict(zip(data.w_names, data.w.T, strict=True))  # which is complete
        columns.pop("Intercept", None)
        frame = pd.DataFrame(columns | {data.y_name: data.y})
    return frame, data.x, data.w, data.scale, data.y, data.s


def _new_rows(fit, data) -> tuple:
    design = getattr(fit, "design", None)
    if not isinstance(design, FormulaDesign):
        raise DataError(
            "augment(frame) needs a fit from formulas; omit frame to get the rows of the fit"
        )
    frame = as_pandas(data)
    if getattr(fit, "transform", None) is not None:
        raise DataError(
            f"augment() is on the scale {fit.data.y_name}, and new rows have another; use predict"
        )
    y = _outcome(fit.data.y_name, frame)
    matrices = (part(frame) for part in (design.outcome_matrix, design.selection_matrix))
    return frame, *matrices, design.scale_matrix(frame), y, ~np.isnan(y)


def _outcome(name: str, frame: pd.DataFrame) -> np.ndarray:
    """The outcome in new rows, missing if a column of its formula is missing."""
    try:
        return evaluate_column(name, frame, "outcome")
    except DataError:
        return np.full(len(frame), np.nan)


def _added(fit, x, w, scale, y, s) -> dict[str, np.ndarray]:
    """The columns of `ADDED`. NaN where x is not known, as that of unselected units may be."""
    known = np.isfinite(x).all(axis=1)
    if scale is not None:
        known &= np.isfinite(scale).all(axis=1)

    def fitted(target: str) -> np.ndarray:
        values = np.full(len(x), np.nan)
        part = None if scale is None else scale[known]
        values[known] = _mean(fit, x[known], w[known], part, target)
        return values

    everyone = fitted("population")
    chosen = fitted("selected") if fit.has_selection else everyone
    found = {"selected": s, "fitted": everyone, "fitted_selected": chosen}
    found["residual"] = np.where(s, y - chosen, np.nan)
    if fit.has_selection:
        found["p_selected"], found["inverse_mills"] = _selection(fit, w)
    return found


def _mean(fit, x, w, scale, target: str) -> np.ndarray:
    if hasattr(fit, "classes"):
        return ndtr(probit_index(fit, x, w, target)[0])
    return mean_and_gradient(fit, x, w, target, scale)[0]


def _selection(fit, w) -> tuple[np.ndarray, np.ndarray]:
    """P(s = 1) and E[u | s = 1], with normal errors the inverse Mills ratio."""
    index = w @ fit.params["select"].to_numpy()
    if np.isinf(fit.df):
        return ndtr(index), inverse_mills(index)
    mean = mean_of_selection(index, fit.df)[0] if fit.df > 1 else np.full(len(index), np.nan)
    return stdtr(fit.df, index), mean
