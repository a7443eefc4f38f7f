"""Parquet files in parts of about a million rows, as the columns of two formulas.

Numeric columns that appear unchanged in a formula are copied; everything else is evaluated by the
formula, whose categories are collected from all rows first.
"""

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from heckesel.data import SelectionData, batch_of, check_weight_values, marked_rows
from heckesel.errors import DataError
from heckesel.tables import formula
from heckesel.tables.frames import as_pandas

PART_ROWS = 1_000_000  # a second of work: enough to hand out, little to lose with a worker
READ_BUFFER = 1 << 20  # bytes of a column read at once, so that row groups are not held whole
PLAIN_ROWS = 32_768  # a batch and its design fit into a processor's cache
FORMULA_ROWS = 131_072  # evaluating a formula has a fixed cost of milliseconds
HEAD_ROWS = 10_000


@dataclass(frozen=True)
class Part:
    """Some row groups of one file; first_row : its place in the file."""

    path: str
    row_groups: tuple[int, ...]
    first_row: int
    rows: int


def parquet_parts(path) -> tuple[Part, ...]:
    """The parts of a file, of all ``*.parquet`` in a folder, or of all files a pattern names; in
    the order of their names."""
    parts = [part for file in _files(os.fspath(path)) for part in _parts_of(file)]
    if not parts:
        raise DataError(f"{os.fspath(path)!r} has no rows")
    return tuple(parts)


def _files(path: str) -> list[str]:
    if os.path.isdir(path):
        found = sorted(str(file) for file in Path(path).rglob("*.parquet"))
        if not found:
            raise DataError(f"the folder {path!r} holds no *.parquet file")
        return found
    if os.path.exists(path):
        return [path]
    found = sorted(glob.glob(path))
    if not found:
        raise DataError(
            f"there is no file {path!r}; data= takes a frame, or a Parquet file, folder or pattern"
        )
    return found


def open_file(path: str):
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError("reading Parquet needs pyarrow: pip install 'heckesel[scale]'") from None
    if not os.path.isfile(path):
        raise DataError(f"{path!r} is not a regular file; pass a Parquet file, folder or pattern")
    try:
        return pq.ParquetFile(path, buffer_size=READ_BUFFER)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{path!r} is not a Parquet file ({error}); write one with frame.to_parquet(...)"
        ) from None


def _parts_of(path: str) -> list[Part]:
    """Neighbouring row groups together, up to PART_ROWS rows."""
    with open_file(path) as file:
        sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    parts: list[Part] = []
    first = 0
    for k, rows in enumerate(sizes):
        if parts and parts[-1].rows + rows <= PART_ROWS:
            last = parts[-1]
            parts[-1] = Part(path, (*last.row_groups, k), last.first_row, last.rows + rows)
        else:
            parts.append(Part(path, (k,), first, rows))
        first += rows
    return [part for part in parts if part.rows]


def read_part(part: Part, columns: list[str] | None, size: int, use: Callable) -> Iterator:
    """use(record batch) of the given columns, or of all, for every `size` rows of a part.

    Errors name the file and the row from which their row numbers count.
    """
    for first, batch in _batches(part, columns, size):
        try:
            result = use(batch)
        except DataError as error:
            place = os.path.basename(part.path)
            counted = f", counting rows from its row {first}" if first else ""
            raise DataError(f"in {place}{counted}: {error}") from None
        yield result


def frame_of(batch) -> pd.DataFrame:
    """A record batch as pandas, its columns named by strings."""
    frame = as_pandas(batch.to_pandas())
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _batches(part: Part, columns: list[str] | None, size: int) -> Iterator:
    with open_file(part.path) as file:
        missing = [name for name in columns or () if name not in file.schema_arrow.names]
        if missing:
            raise DataError(f"{part.path!r} lacks the column {missing[0]!r}")
        first = part.first_row
        for batch in file.iter_batches(
            size, row_groups=list(part.row_groups), columns=columns, use_threads=False
        ):
            yield first, batch
            first += batch.num_rows


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
            learn = partial(_levels, columns=list(equation.variables), text=text, role=role)
            found = [levels for batches in run(learn, parts) for levels in batches]
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


def _levels(part: Part, *, columns: list[str], text: str, role: str) -> list[dict[str, tuple]]:
    """Levels of every factor among the complete rows of each batch."""

    def learn(batch) -> dict[str, tuple]:
        frame = frame_of(batch)
        frame = frame[frame.notna().all(axis=1)]
        if not len(frame):
            return {}
        equation, _ = formula.build_equation(text, frame, np.ones(len(frame), bool), role)
        return formula.categories_of(equation.spec)

    return list(read_part(part, columns, FORMULA_ROWS, learn))
