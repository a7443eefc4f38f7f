"""The data a report is about: X as a frame, which outcomes are observed, a summary per column."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from heckesel.data import selected_rows
from heckesel.errors import DataError
from heckesel.estimators.heckman_regressor import HeckmanRegressor, refit_alike
from heckesel.tables.fit_input import outcome_column
from heckesel.tables.frames import as_pandas
from heckesel.tables.groups import split_groups
from heckesel.tables.labels import class_codes, label_column
from heckesel.tables.outcome.unobserved import without_unobserved


@dataclass(frozen=True)
class ReportData:
    """frame : n rows with the columns of the fit; y : (n,); s : (n,) bool, whether y is observed

    classes : the two classes, with y 1 for the second and 0 for the first; None for a number
    groups : (n,) codes of the groups of dependent rows, if there are any
    """

    frame: pd.DataFrame
    y: np.ndarray
    s: np.ndarray
    weight: np.ndarray | None = None
    classes: np.ndarray | None = None
    groups: np.ndarray | None = None

    @property
    def n(self) -> int:
        return len(self.y)

    def fitted(self, model, rows: np.ndarray | None = None):
        """`model` fitted to these rows, or to some of them."""
        frame, y, sides = self._rows(np.arange(self.n) if rows is None else rows)
        return model.fit(frame, y, **sides)

    def refitted(self, model: HeckmanRegressor, rows: np.ndarray) -> HeckmanRegressor:
        """A copy of a linear model that is fitted to some of the rows."""
        frame, y, sides = self._rows(rows)
        return refit_alike(model, frame, y, **sides)

    def mean_of(self, model, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """(m,) mean predictions: of the outcome or, for classes, the probability of the second."""
        frame = self.frame.iloc[rows]
        if self.classes is not None:
            return np.asarray(model.predict_proba(frame))[:, 1]
        return model.predict_distribution(frame).mean

    def _rows(self, rows: np.ndarray) -> tuple:
        sides = {"sample_weight": self.weight, "groups": self.groups}
        chosen = {name: None if each is None else each[rows] for name, each in sides.items()}
        return self.frame.iloc[rows], np.where(self.s, self.y, np.nan)[rows], chosen


def read_report_data(model, X, y, *, selected=None, sample_weight=None, groups=None) -> ReportData:
    """The data, checked against the columns and rows of the fit; a missing y is not observed."""
    X, found = split_groups(X, groups, model)
    if found is None:
        _check_without_groups(model)
    names = [*model.columns_.given_names]
    if hasattr(X, "columns") or isinstance(X, dict):
        frame = as_pandas(X, "X")
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
        lacking = [name for name in names if name not in frame.columns]
        if lacking:
            raise DataError(
                f"X has no column {lacking[0]!r}; the report needs every column of the fit"
            )
        frame = frame[names]
    else:
        values = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        if values.ndim != 2 or values.shape[1] != len(names):
            raise DataError(f"X has shape {values.shape} but the fit had {len(names)} columns")
        frame = pd.DataFrame(values, columns=names)
    classes = getattr(model, "classes_", None)
    values = _outcome(model, y, selected, classes)
    if len(values) != len(frame):
        raise DataError(f"X has {len(frame)} rows but y has {len(values)}")
    fitted = _rows_of_fit(model, weighted=sample_weight is not None)
    if fitted is not None and fitted != len(frame):  # every count on the page would be wrong
        raise DataError(
            f"X has {len(frame):,} rows but the model was fitted to {fitted:,}; give the report "
            "the rows of the fit, or fit the model to these rows"
        )
    s = selected_rows(values, selected, model.outcome_name_)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    codes = None if found is None else found.codes
    return ReportData(frame.reset_index(drop=True), values, s, weight, classes, codes)


def _check_without_groups(model) -> None:
    """Refuse a model that was fitted with groups, which folds must not split."""
    name = getattr(model, "groups_name_", None)
    result = getattr(model, "result_", None)
    if name is not None or getattr(result, "covariance", None) == "cluster":
        said = "groups" if name is None else f"groups={name!r}"
        raise DataError(f"the model was fitted with {said}, so give the report these groups")


def _outcome(model, y, selected, classes) -> np.ndarray:
    if classes is None:
        return outcome_column(y, model.unobserved)
    labels = without_unobserved(label_column(y), model.unobserved)
    return class_codes(labels, classes, selected, model.outcome_name_)


def _rows_of_fit(model, *, weighted: bool) -> int | None:
    """None if unknown: a saved model keeps the sum of frequency weights, not the rows."""
    result = getattr(model, "result_", None)
    if result is None:
        return model.identification_.evidence.get("rows")
    if hasattr(result.data, "n"):
        return result.data.n
    return None if weighted else result.n


@dataclass(frozen=True)
class ColumnSummary:
    """mean_observed, mean_unobserved : by whether y is observed; None for a category"""

    name: str
    role: str
    kind: str
    missing: int
    mean_observed: float | None = None
    mean_unobserved: float | None = None


def summarise_columns(model, data: ReportData) -> tuple[ColumnSummary, ...]:
    """One summary per column of X, in its order."""
    roles = ("in both equations", "instrument")
    if data.s.all():  # there is no selection equation
        roles = ("in the equation", "not used")
    found = []
    frame, plan = data.frame, model.columns_.plan
    if plan is not None:  # means are those of the columns that the model sees
        frame = plan.apply(frame, model.columns_.names)
    for name in model.columns_.names:
        column, levels = frame[name], model.columns_.levels.get(name)
        kind, means = "number", {}
        if levels is not None:
            kind = f"category, {len(levels)} levels"
        else:
            values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
            means["mean_observed"] = _mean(values[data.s])
            means["mean_unobserved"] = _mean(values[~data.s])
        role = roles[name in model.columns_.instruments]
        found.append(ColumnSummary(name, role, kind, int(column.isna().sum()), **means))
    return tuple(found)


def _mean(values: np.ndarray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
