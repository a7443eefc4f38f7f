"""Parquet files as the columns of two formulas.

Numeric columns that appear unchanged in a formula are copied; everything else is evaluated by the
formula, whose categories are collected from all rows first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from heckesel.data import SelectionData, batch_of, check_weight_values, marked_rows
from heckesel.errors import DataError
from heckesel.tables.formula import (
    Equation,
    build_equation,
    categories_of,
    check_not_explained_by_itself,
    check_variables,
    evaluate_column,
    number_column,
    required_columns,
    with_categories,
)
from heckesel.tables.parquet import Part, frame_of, read_part

PLAIN_ROWS = 6_144  # a batch and what is made of it stay in a core's cache
FORMULA_ROWS = 131_072  # evaluating a formula has a fixed cost of milliseconds
HEAD_ROWS = 10_000


@dataclass(frozen=True)
class FormulaReader:
    """Both equations, the outcome, and the columns of selection indicator and weights."""

    outcome: Equation
    select: Equation
    y: str
    indicator: str | None
    weights: str | None
    columns: tuple[str, ...]
    side_columns: tuple[str, ...]
    instruments: tuple[str, ...]

    @property
    def plain(self) -> bool:
        """Every column is a number of the file."""
        sides = [text for text in (self.y, self.indicator) if text is not None]
        return (
            self.outcome.plain and self.select.plain and all(t in self.side_columns for t in sides)
        )

    def read(self, part: Part) -> Iterator[SelectionData]:
        """Batches of rows with positive weight; the next batch overwrites the last."""
        return self._batches(part, check=False)

    def checked(self, part: Part) -> Iterator[SelectionData]:
        """The same, every number checked."""
        return self._batches(part, check=True)

    def _batches(self, part: Part, *, check: bool) -> Iterator[SelectionData]:
        size = PLAIN_ROWS if self.plain else FORMULA_ROWS
        room = [np.empty((PLAIN_ROWS, len(side.names))) for side in (self.outcome, self.select)]
        return read_part(
            part, list(self.columns), size, partial(self._rows, room=room, check=check)
        )

    def _rows(self, batch, room, check: bool) -> SelectionData:
        if self.plain:
            columns = {name: _numbers(batch, name) for name in self.columns}
            y, s, weight = self._sides(columns)
            w = _fill(room[1][: len(y)], self.select, columns)
            shared = len(self.outcome.names)
            if self.outcome.names == self.select.names[:shared]:
                x = w[:, :shared]
            else:
                x = _fill(room[0][: len(y)], self.outcome, columns)
        else:
            frame = frame_of(batch)
            y, s, weight = self._sides(frame)
            x = np.full((len(y), len(self.outcome.names)), np.nan)
            if s.any():
                x[s] = self.outcome.matrix(frame[s].reset_index(drop=True))
            w = self.select.matrix(frame)
        return batch_of(
            x,
            w,
            s,
            y,
            weight,
            x_names=self.outcome.names,
            w_names=self.select.names,
            y_name=self.y,
            excluded=self.instruments,
            check=check,
        )

    def _sides(self, frame):
        """Outcome, selection and weights of the rows."""
        y, selected, weight = (
            None if text is None else _side(text, frame, role)
            for text, role in (
                (self.y, "outcome"),
                (self.indicator, "selection indicator"),
                (self.weights, "weights"),
            )
        )
        weight = np.ones(len(y)) if weight is None else weight
        return y, marked_rows(y, selected, self.y), weight


def count_rows(reader: FormulaReader, part: Part) -> tuple[int, int]:
    """Rows and selected rows of positive weight."""

    def count(batch) -> tuple[int, int]:
        _, s, weight = reader._sides(frame_of(batch))
        check_weight_values(weight)
        return int(np.count_nonzero(weight)), int(np.count_nonzero(weight[s]))

    counts = read_part(part, list(reader.side_columns), FORMULA_ROWS, count)
    rows, selected = (sum(column) for column in zip(*counts, strict=True))
    return rows, selected


def _side(text: str, frame, role: str) -> np.ndarray:
    if isinstance(frame, dict):
        return frame[text]
    return number_column(frame, text) if role == "weights" else evaluate_column(text, frame, role)


def _numbers(batch, name: str) -> np.ndarray:
    values = batch.column(name).to_numpy(zero_copy_only=False)
    return values.astype(float, copy=False)


def _fill(matrix: np.ndarray, equation: Equation, columns: dict) -> np.ndarray:
    for j, name in enumerate(equation.names):
        matrix[:, j] = 1.0 if name == "Intercept" else columns[name]
    return matrix


def learn_reader(
    parts: tuple[Part, ...],
    right: str,
    select_right: str,
    *,
    y: str,
    indicator: str | None,
    weights: str | None,
    run: Callable[[Callable, Iterable], Iterable],
) -> FormulaReader:
    """Equations from the first rows; if these show a category, its levels from all rows."""
    equations = []
    for text, role in ((right, "outcome"), (select_right, "selection")):
        head = _head(parts, text, role)
        equation = _learned(text, head, role)
        check_not_explained_by_itself(y, equation.variables)
        if categories_of(equation.spec):
            found = [
                each
                for batches in run(partial(_levels_in, equation, text, role), parts)
                for each in batches
            ]
            equation = with_categories(equation, text, head, found, role)
        equations.append(equation)
    outcome, select = equations
    sides = _side_columns(head, {"outcome": y, "selection indicator": indicator})
    if weights is not None:
        check_variables([weights], head)
        sides.add(weights)
    return FormulaReader(
        outcome=outcome,
        select=select,
        y=y,
        indicator=indicator,
        weights=weights,
        columns=tuple(sorted({*outcome.variables, *select.variables, *sides})),
        side_columns=tuple(sorted(sides)),
        instruments=select.columns_beyond(outcome.variables),
    )


def _side_columns(head: pd.DataFrame, expressions: dict[str, str | None]) -> set[str]:
    """Columns behind the outcome and the indicator, each a name or an expression."""
    columns: set[str] = set()
    for role, text in expressions.items():
        if text is not None:
            named = text in head.columns
            columns |= {text} if named else set(required_columns(f"0 + {text}", role))
            _check_rowwise(partial(_side, text, role=role), head, text, role)
    return columns


def _head(parts, text: str, role: str) -> pd.DataFrame:
    """The first rows in which every variable of an equation is there."""
    needed = None
    for part in parts:
        for frame in read_part(part, None, HEAD_ROWS, frame_of):
            needed = needed or [name for name in required_columns(text, role) if name in frame]
            complete = frame[needed].notna().all(axis=1)
            if complete.any():
                return frame[complete].reset_index(drop=True)
    raise DataError(f"no row has a value in every variable of the {role} equation {text!r}")


def _learned(text: str, head: pd.DataFrame, role: str) -> Equation:
    equation, _ = build_equation(text, head, np.ones(len(head), bool), role)
    learns = sorted(str(name) for name in equation.spec.transform_state)
    if learns:
        raise DataError(
            f"{learns[0]} in the {role} equation is learned from all rows at once, which files are "
            "not; compute this column when you write them"
        )
    _check_rowwise(equation.matrix, head, text, role)
    return equation


def _check_rowwise(evaluate, head: pd.DataFrame, text: str, role: str) -> None:
    """Half of the rows must give half of the numbers, or batches would not."""
    half = len(head) // 2
    if not half:
        return
    whole = evaluate(head)
    halves = np.concatenate([evaluate(head[:half]), evaluate(head[half:])])
    if not np.allclose(whole, halves, rtol=1e-9, atol=0, equal_nan=True):
        raise DataError(
            f"a term of the {role} {text!r} depends on other rows than its own, and files are read "
            "some rows at a time; compute this column when you write them"
        )


def _levels_in(equation: Equation, text: str, role: str, part: Part) -> list[dict[str, tuple]]:
    """Levels of every factor among the complete rows of each batch."""

    def levels(batch) -> dict[str, tuple]:
        frame = frame_of(batch)
        frame = frame[frame.notna().all(axis=1)]
        if not len(frame):
            return {}
        learned, _ = build_equation(text, frame, np.ones(len(frame), bool), role)
        return categories_of(learned.spec)

    return list(read_part(part, list(equation.variables), FORMULA_ROWS, levels))
