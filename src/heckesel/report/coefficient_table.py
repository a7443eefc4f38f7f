"""The table a page is about: X as a frame, who has an outcome, and what the columns look like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from heckesel.data import selected_rows
from heckesel.errors import DataError
from heckesel.estimators.regression import outcome_column
from heckesel.tables.frames import as_pandas


@dataclass(frozen=True)
class Table:
    """frame : n rows with the columns of the fit; y : (n,); s : (n,) bool, where y was observed"""

    frame: pd.DataFrame
    y: np.ndarray
    s: np.ndarray
    weight: np.ndarray | None = None

    @property
    def n(self) -> int:
        return len(self.y)

    def fitted(self, model, rows: np.ndarray | None = None):
        """`model` fitted to these rows, or to some of them."""
        rows = np.arange(self.n) if rows is None else rows
        weight = None if self.weight is None else self.weight[rows]
        y = np.where(self.s, self.y, np.nan)[rows]
        return model.fit(self.frame.iloc[rows], y, sample_weight=weight)


def read_rows(model, X, y, *, selected=None, sample_weight=None) -> Table:
    """Checked against the columns of the fit; a missing y means that it was not observed."""
    names = [*model.columns_.names]
    if hasattr(X, "columns") or isinstance(X, dict):
        frame = as_pandas(X, "X")
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
        lacking = [name for name in names if name not in frame.columns]
        if lacking:
            raise DataError(f"X lacks the column {lacking[0]!r} of the fit; the report needs all")
        frame = frame[names]
    else:
        values = np.asarray(X)
        if values.ndim != 2 or values.shape[1] != len(names):
            raise DataError(f"X has shape {values.shape} but the fit had {len(names)} columns")
        frame = pd.DataFrame(values, columns=names)
    values = outcome_column(y)
    if len(values) != len(frame):
        raise DataError(f"X has {len(frame)} rows but y has {len(values)}")
    _check_rows(model, len(frame), weighted=sample_weight is not None)
    s = selected_rows(values, selected, model.outcome_name_)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    return Table(frame.reset_index(drop=True), values, s, weight)


def _check_rows(model, rows: int, *, weighted: bool) -> None:
    """Refuse a table that cannot be the one of the fit: every count on the page would be wrong."""
    fitted = _rows_of_fit(model, weighted=weighted)
    if fitted is not None and fitted != rows:
        raise DataError(
            f"X has {rows:,} rows but the model was fitted to {fitted:,}; give the report the rows "
            "of the fit, or fit the model to these"
        )


def _rows_of_fit(model, *, weighted: bool) -> int | None:
    """None where the model does not know: a file keeps the sum of frequency weights, not rows."""
    result = getattr(model, "result_", None)
    if result is None:
        return model.identification_.evidence.get("rows")
    if hasattr(result.data, "n"):
        return result.data.n
    return None if weighted else result.n


@dataclass(frozen=True)
class ColumnShape:
    """mean_observed, mean_unobserved : where y was and was not observed; None for a category"""

    name: str
    role: str
    kind: str
    missing: int
    mean_observed: float | None
    mean_unobserved: float | None


def column_shapes(model, table: Table) -> tuple[ColumnShape, ...]:
    """One for each column of X, in its order."""
    roles = ("in both equations", "instrument")
    if table.s.all():  # there is no equation of selection
        roles = ("in the equation", "not used")
    shapes = []
    for name in model.columns_.names:
        column = table.frame[name]
        levels = model.columns_.levels.get(name)
        means: tuple[float | None, float | None] = (None, None)
        if levels is None:
            values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
            means = _mean(values[table.s]), _mean(values[~table.s])
        shapes.append(
            ColumnShape(
                name=name,
                role=roles[name in model.columns_.instruments],
                kind="number" if levels is None else f"category, {len(levels)} levels",
                missing=int(column.isna().sum()),
                mean_observed=means[0],
                mean_unobserved=means[1],
            )
        )
    return tuple(shapes)


def _mean(values: np.ndarray) -> float | None:
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else None
