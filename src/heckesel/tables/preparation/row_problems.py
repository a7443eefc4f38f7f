"""Rows to predict that a plan cannot use as they are: imputed, treated as other, or not at all."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from heckesel.tables.preparation.column_plan import DATE_PARTS, MEANS, ColumnPlan, Step, rows_have

EMPTY = "no column has a value"


@dataclass(frozen=True)
class RowProblems:
    """reasons : (m,) why a row cannot be predicted, None where it can; notes : counts by column"""

    reasons: np.ndarray
    notes: tuple[str, ...]

    @property
    def unusable(self) -> np.ndarray:
        """(m,) bool"""
        return pd.notna(self.reasons)


def row_problems(plan: ColumnPlan, frame: pd.DataFrame, names: Iterable[str]) -> RowProblems:
    """What the plan does with the rows of a table to make the columns `names`.

    A row cannot be predicted if a number or a date in it cannot be read, or if it has no value.
    """
    reasons = np.full(len(frame), None, dtype=object)
    found = {step.source: (step, filled) for step, filled in plan.filled(frame, names)}
    for step, filled in found.values():
        for row in np.flatnonzero(filled.unreadable):
            what = "a date" if step.kind in DATE_PARTS else "a finite number"
            reasons[row] = f"{step.source} is {frame[step.source].iloc[row]!r:.40}, not {what}"
    reasons[np.all([filled.absent for _, filled in found.values()], axis=0)] = EMPTY
    usable = pd.isna(reasons)
    notes, imputed = [], []
    for step, filled in found.values():
        if (rows := filled.unseen & usable).any():
            notes.append(_unseen(step, frame[step.source][rows]))
        if count := int((filled.absent & usable).sum()):
            imputed.append(f"{step.source} ({count:,})")
    if imputed:
        notes.append(f"missing values imputed as in the fit: {', '.join(imputed)}")
    return RowProblems(reasons, tuple(notes))


def _unseen(step: Step, values: pd.Series) -> str:
    treated = "the mean of all levels is used" if step.kind == MEANS else f"treated as {step.other}"
    levels = values.astype(str).unique()
    shown = ", ".join(levels[:3]) + ", ..." * (len(levels) > 3)
    rows = rows_have(np.ones(len(values)))
    return f"{step.source}: {rows} a level that the fit has not seen ({shown}); {treated}"
