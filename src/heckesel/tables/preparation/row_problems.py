"""Rows to predict that a plan cannot use as they are: imputed, treated as other, or not at all."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from heckesel.tables.preparation.column_plan import DATE_PARTS, MEANS, ColumnPlan, Step, rows_have

EMPTY = "no column has a value"
LEVELS_SHOWN = 3


@dataclass(frozen=True)
class Unseen:
    """rows : how many have a level that did not occur in the fit; levels : some of them"""

    rows: int
    levels: tuple[str, ...]
    treated: str


@dataclass(frozen=True)
class RowProblems:
    """reasons : (m,) why a row cannot be predicted, None where it can; unseen, imputed : by column,
    the latter how many missing values"""

    reasons: np.ndarray
    unseen: dict[str, Unseen]
    imputed: dict[str, int]

    @property
    def unusable(self) -> np.ndarray:
        """(m,) bool"""
        return pd.notna(self.reasons)


def row_problems(plan: ColumnPlan, frame: pd.DataFrame, names: Iterable[str]) -> RowProblems:
    """The changes that the plan makes to rows of a table, to prepare the columns `names`.

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
    unseen, imputed = {}, {}
    for step, filled in found.values():
        if (rows := filled.unseen & usable).any():
            unseen[step.source] = _unseen(step, frame[step.source][rows])
        if count := int((filled.absent & usable).sum()):
            imputed[step.source] = count
    return RowProblems(reasons, unseen, imputed)


def _unseen(step: Step, values: pd.Series) -> Unseen:
    treated = "the mean of all levels is used" if step.kind == MEANS else f"treated as {step.other}"
    levels = values.astype(str).unique()[: LEVELS_SHOWN + 1]
    return Unseen(len(values), tuple(levels), treated)


class ProblemCounts:
    """The problems of the blocks of a table, added up."""

    def __init__(self) -> None:
        self.unusable = 0
        self._unseen: dict[str, Unseen] = {}
        self._imputed: dict[str, int] = {}

    def add(self, found: RowProblems) -> None:
        self.unusable += int(found.unusable.sum())
        for source, more in found.unseen.items():
            before = self._unseen.get(source, Unseen(0, (), more.treated))
            levels = tuple(dict.fromkeys((*before.levels, *more.levels)))[: LEVELS_SHOWN + 1]
            self._unseen[source] = Unseen(before.rows + more.rows, levels, more.treated)
        for source, count in found.imputed.items():
            self._imputed[source] = self._imputed.get(source, 0) + count

    @property
    def notes(self) -> list[str]:
        """A sentence for each column with unseen levels, and one for missing values."""
        said = []
        for source, each in self._unseen.items():
            shown = ", ".join(each.levels[:LEVELS_SHOWN])
            shown += ", ..." * (len(each.levels) > LEVELS_SHOWN)
            rows = rows_have(each.rows)
            said.append(
                f"{source}: {rows} a level that did not occur in the fit ({shown}); {each.treated}"
            )
        if self._imputed:
            counts = ", ".join(f"{source} ({n:,})" for source, n in self._imputed.items())
            said.append(f"missing values imputed as in the fit: {counts}")
        return said
