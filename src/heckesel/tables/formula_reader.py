"""Parquet files as the columns of two formulas.

Numeric columns that appear unchanged in a formula are copied; everything else is evaluated by the
formula, whose categories are collected from all rows first.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from heckesel.data import SelectionData, batch_of, check_weight_values, marked_rows
from heckesel.errors import DataError
from heckesel.tables import formula
from heckesel.tables.formats.parquet import Part, frame_of, read_frames, read_part

PLAIN_ROWS = 32_768  # a batch and its design fit into a processor's cache
FORMULA_ROWS = 131_072  # evaluating a formula has a fixed cost of milliseconds
HEAD_ROWS = 10_000


@dataclass(frozen=True)
class FormulaReader:
    """Both equations and that of log sigma(x), if it varies, the outcome, and the columns of
    selection indicator and weights."""

    outcome: formula.Equation
    select: formula.Equation
    scale: formula.Equation | None
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
        equations = [each for each in (self.outcome, self.select, self.scale) if each is not None]
        plain = all(each.plain for each in equations)
        return plain and all(text in self.side_columns for text in sides)

    def read(self, part: Part) -> Iterator[SelectionData]:
        """Batches of rows with positive weight; the next batch overwrites the last."""
        return self._batches(part, check=False)

    def checked(self, part: Part) -> Iterator[SelectionData]:
        """The same, every number checked."""
        return self._batches(part, check=True)

    def _batches(self, part: Part, *, check: bool) -> Iterator[SelectionData]:
        size = PLAIN_ROWS if self.plain else FORMULA_ROWS
        room = [np.empty((len(side.names), PLAIN_ROWS)).T for side in (self.outcome, self.select)]
        return read_part(
            part, list(self.columns), size, partial(self._rows, room=room, check=check)
        )

    def _rows(self, batch, room, check: bool) -> SelectionData:
        z = None
        if self.plain:
            columns = {name: _numbers(batch, name) for name in self.columns}
            y, s, weight = self.sides(columns)
            w = _fill(room[1][: len(y)], self.select, columns)
            shared = len(self.outcome.names)
            if self.outcome.names == self.select.names[:shared]:
                x = w[:, :shared]
            else:
                x = _fill(room[0][: len(y)], self.outcome, columns)
            if self.scale is not None:
                z = _fill(np.empty((len(y), len(self.scale.names))), self.scale, columns)
        else:
            frame = frame_of(batch)
            y, s, weight = self.sides(frame)
            x = _where_selected(self.outcome, frame, s)
            z = None if self.scale is None else _where_selected(self.scale, frame, s)
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
            scale=None if z is None else z[:, 1:],
            scale_names=() if self.scale is None else self.scale.names[1:],
            check=check,
        )

    def sides(self, frame):
        return sides_of(frame, self.y, self.indicator, self.weights)


def sides_of(frame, y: str, indicator: str | None, weights: str | None):
    """Outcome, selection and weights of the rows."""
    outcome = _side(y, frame, "outcome")
    selected = None if indicator is None else _side(indicator, frame, "selection indicator")
    weight = np.ones(len(outcome)) if weights is None else _side(weights, frame, "weights")
    return outcome, marked_rows(outcome, selected, y), weight


def _where_selected(equation: formula.Equation, frame, s) -> np.ndarray:
    matrix = np.full((len(s), len(equation.names)), np.nan)
    if s.any():
        matrix[s] = equation.matrix(frame[s].reset_index(drop=True))
    return matrix


def count_rows(reader: FormulaReader, part: Part) -> tuple[int, int]:
    """Rows and selected rows of positive weight."""

    def count(batch) -> tuple[int, int]:
        _, s, weight = reader.sides(frame_of(batch))
        check_weight_values(weight)
        return int(np.count_nonzero(weight)), int(np.count_nonzero(weight[s]))

    counts = read_part(part, list(reader.side_columns), FORMULA_ROWS, count)
    rows, selected = (sum(column) for column in zip(*counts, strict=True))
    return rows, selected


def _side(text: str, frame, role: str) -> np.ndarray:
    if isinstance(frame, dict):
        return frame[text]
    return formula.evaluate_column(text, frame, role)


def _numbers(batch, name: str) -> np.ndarray:
    values = batch.column(name).to_numpy(zero_copy_only=False)
    return values.astype(float, copy=False)


def _fill(matrix: np.ndarray, equation: formula.Equation, columns: dict) -> np.ndarray:
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
    scale: str | None,
    run: Callable[[Callable, Iterable], Iterable],
) -> FormulaReader:
    """Equations from the first rows; if these show a category, its levels from all rows."""
    equations = []
    formulas = [(right, "outcome"), (select_right, "selection")]
    if scale is not None:
        formulas.append((formula.scale_formula(scale), "scale"))
    for text, role in formulas:
        head = _head(parts, text, role)
        equation = _learned(text, head, role)
        formula.check_not_explained_by_itself(y, equation.variables)
        if formula.categories_of(equation.spec):
            learn = partial(_levels, text=text, role=role)
            found = read_frames(parts, list(equation.variables), FORMULA_ROWS, learn, run)
            equation = formula.with_categories(equation, text, head, found, role)
        equations.append(equation)
    outcome, select, *varying = equations
    for equation in varying:
        formula.check_scale_equation(equation, str(scale))
    variables = {name for equation in equations for name in equation.variables}
    sides = _side_columns(head, {"outcome": y, "selection indicator": indicator})
    if weights is not None:
        formula.check_variables([weights], head)
        sides.add(weights)
    return FormulaReader(
        outcome=outcome,
        select=select,
        scale=varying[0] if varying else None,
        y=y,
        indicator=indicator,
        weights=weights,
        columns=tuple(sorted({*variables, *sides})),
        side_columns=tuple(sorted(sides)),
        instruments=select.columns_beyond(outcome.variables),
    )


def _side_columns(head: pd.DataFrame, expressions: dict[str, str | None]) -> set[str]:
    """Columns behind the outcome and the indicator, each a name or an expression."""
    columns: set[str] = set()
    for role, text in expressions.items():
        if text is not None:
            named = text in head.columns
            columns |= {text} if named else set(formula.required_columns(f"0 + {text}", role))
            _check_rowwise(partial(_side, text, role=role), head, text, role)
    return columns


def _head(parts, text: str, role: str) -> pd.DataFrame:
    """The first rows in which every variable of an equation is there."""
    variables = formula.required_columns(text, role)
    for part in parts:
        for frame in read_part(part, None, HEAD_ROWS, frame_of):
            complete = frame[[name for name in variables if name in frame]].notna().all(axis=1)
            if complete.any():
                return frame[complete].reset_index(drop=True)
    raise DataError(f"no row has a value in every variable of the {role} equation {text!r}")


def _learned(text: str, head: pd.DataFrame, role: str) -> formula.Equation:
    equation, _ = formula.build_equation(text, head, np.ones(len(head), bool), role)
    learns = sorted(str(name) for name in equation.spec.transform_state)
    if learns:
        raise DataError(
            f"{learns[0]} in the {role} equation depends on all rows at once, but files are read "
            "in parts; compute this column when you write the files"
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
            f"a term of the {role} {text!r} depends on other rows, but files are read in parts; "
            "compute this column when you write the files"
        )


def _levels(frame: pd.DataFrame, *, text: str, role: str) -> dict[str, tuple]:
    """Levels of every factor among the complete rows."""
    frame = frame[frame.notna().all(axis=1)]
    if not len(frame):
        return {}
    equation, _ = formula.build_equation(text, frame, np.ones(len(frame), bool), role)
    return formula.categories_of(equation.spec)
