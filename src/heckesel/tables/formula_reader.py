"""How a batch of a file becomes the columns of both equations.

Numbers that a formula names plainly are taken as they are; everything else goes through the
formula, whose categories were collected over all rows before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from heckesel.data import SelectionData, check_values, check_weight_values, marked_rows
from heckesel.errors import DataError
from heckesel.tables.formula import (
    Equation,
    build_equation,
    categories_of,
    check_variables,
    evaluate_column,
    number_column,
    required_columns,
    with_categories,
)
from heckesel.tables.frames import as_pandas
from heckesel.tables.parquet import Part, batches

PLAIN_ROWS = 6_144  # a batch and what is made of it stay in a core's cache
FORMULA_ROWS = 131_072  # evaluating a formula has a fixed cost of milliseconds
HEAD_ROWS = 10_000


@dataclass(frozen=True)
class Reader:
    """Both equations, the outcome, and the columns that mark selection and weigh rows."""

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
        for first, batch in batches(part, list(self.columns), size):
            with place_of(part, first):
                yield self._rows(batch, room, check)

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
            frame = as_pandas(batch.to_pandas())
            y, s, weight = self._sides(frame)
            x = np.full((len(y), len(self.outcome.names)), np.nan)
            if s.any():
                x[s] = self.outcome.matrix(frame[s].reset_index(drop=True))
            w = self.select.matrix(frame)
        if check:
            check_weight_values(weight)
            check_values(x, w, s, y, self.outcome.names, self.select.names, self.y)
        data = SelectionData(
            x, w, s, y, weight, self.outcome.names, self.select.names, self.y, self.instruments
        )
        if weight.all():
            return data
        return data.take(weight > 0)

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
        s = marked_rows(y, selected, self.y)
        return np.where(s, y, np.nan), s, np.ones(len(y)) if weight is None else weight


def count_rows(reader: Reader, part: Part) -> tuple[int, int]:
    """Rows and selected rows of positive weight."""
    rows = selected = 0
    for first, batch in batches(part, list(reader.side_columns), FORMULA_ROWS):
        with place_of(part, first):
            _, s, weight = reader._sides(as_pandas(batch.to_pandas()))
            check_weight_values(weight)
        rows += int(np.count_nonzero(weight))
        selected += int(np.count_nonzero(weight[s]))
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


@contextmanager
def place_of(part: Part, first: int):
    """Errors name the file, and where in it their row numbers start."""
    try:
        yield
    except DataError as error:
        place = os.path.basename(part.path)
        counted = f", counting rows from its row {first}" if first else ""
        raise DataError(f"in {place}{counted}: {error}") from None


def learn_reader(
    parts: tuple[Part, ...],
    right: str,
    select_right: str,
    *,
    y: str,
    indicator: str | None,
    weights: str | None,
    run: Callable[[Callable, Iterable], Iterable],
) -> Reader:
    """Equations from the first rows; if these show a category, its levels from all rows."""
    equations = []
    for text, role in ((right, "outcome"), (select_right, "selection")):
        head = _head(parts, text, role)
        equation = _learned(text, head, role)
        if y in equation.variables:
            raise DataError(f"the outcome {y!r} cannot explain itself; remove it from the right")
        if categories_of(equation.spec):
            found = list(run(partial(_levels_in, equation, text, role), parts))
            equation = with_categories(equation, text, head, found, role)
        equations.append(equation)
    outcome, select = equations
    sides = _side_columns(head, {"outcome": y, "selection indicator": indicator})
    if weights is not None:
        check_variables([weights], head)
        sides.add(weights)
    return Reader(
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
        for _, batch in batches(part, None, HEAD_ROWS):
            frame = as_pandas(batch.to_pandas())
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


def _levels_in(equation: Equation, text: str, role: str, part: Part) -> dict[str, list]:
    """Categories of every factor among the complete rows of a part."""
    found: dict[str, list] = {}
    for first, batch in batches(part, list(equation.variables), FORMULA_ROWS):
        frame = as_pandas(batch.to_pandas())
        frame = frame[frame.notna().all(axis=1)]
        if not len(frame):
            continue
        with place_of(part, first):
            learned, _ = build_equation(text, frame, np.ones(len(frame), bool), role)
        for factor, levels in categories_of(learned.spec).items():
            known = found.setdefault(factor, [])
            known += [level for level in levels if level not in known]
    return found
