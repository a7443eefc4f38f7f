"""The columns of X as inputs of an ONNX graph, and their conversion to numbers.

A graph cannot raise an error. If `predict` would raise one (for an unseen level, an infinite number
or a missing value that is not imputed), the prediction of the row is NaN.
"""

from itertools import groupby
from numbers import Real

import numpy as np

from heckesel.errors import DataError
from heckesel.onnx.graph import Graph
from heckesel.tables.columns import Columns

NUMBERS = "X"  # the input that holds all numbers
TAKEN = (NUMBERS, "mean", "std")


def number_names(columns: Columns) -> tuple[str, ...]:
    """The columns of the input `X`, in order; instruments do not enter the population mean."""
    return tuple(name for name in columns.outcome_names if not _is_text(columns, name))


def text_names(columns: Columns) -> tuple[str, ...]:
    """The columns that are separate inputs."""
    return tuple(name for name in columns.outcome_names if _is_text(columns, name))


def write_columns(graph: Graph, columns: Columns) -> str:
    """(m, p) in double, what `columns.x` makes of a table."""
    numbers, strings = number_names(columns), text_names(columns)
    taken = [name for name in TAKEN if name in strings]
    if taken:
        raise DataError(
            f"the name of column {taken[0]!r} is reserved in ONNX files; rename the column"
        )
    table = graph.columns(NUMBERS, len(numbers)) if numbers else ""
    given = {name: graph.columns(name, kind="STRING") for name in strings}
    for at, name in enumerate(numbers):
        if name in columns.levels or name in columns.fill:
            given[name] = graph.call("Gather", table, np.array([at]), axis=1)
    absent = {
        name: _absent(graph, columns, name, given[name]) for name in columns.fill & given.keys()
    }
    filled = _filled(graph, columns, numbers, table) if numbers else ""
    parts = []
    for is_category, run in groupby(columns.outcome_names, lambda name: name in columns.levels):
        names = list(run)
        if is_category:
            parts += [
                graph.double(_levels(graph, columns, name, given[name], absent.get(name)))
                for name in names
            ]
        else:
            places = np.array([numbers.index(name) for name in names])
            parts.append(graph.call("Gather", filled, places, axis=1))
    for group in columns.indicators:
        if group[0] in columns.outcome_names:
            gaps = graph.call("Max", *(graph.as_number(absent[name]) for name in group))
            parts.append(graph.double(gaps))
    return graph.call("Concat", *parts, axis=1)


def _filled(graph: Graph, columns: Columns, numbers, table: str) -> str:
    """The numbers with imputed values; infinite ones are NaN."""
    fill = np.array([[columns.fill.get(name, np.nan) for name in numbers]])
    finite = graph.call("Where", graph.call("IsInf", table), np.float32(np.nan), table)
    absent = graph.call("IsNaN", table)
    return graph.call("Where", absent, graph.double(fill), graph.double(finite))


def _absent(graph: Graph, columns: Columns, name: str, column: str) -> str:
    """(m, 1) where there is a gap; in text that is an empty one."""
    if _is_text(columns, name):
        if "" in columns.levels[name]:
            raise DataError(
                f"column {name!r} has missing values and empty strings, which an ONNX file cannot "
                "distinguish; replace the empty strings"
            )
        return graph.call("Equal", column, np.array([[""]], dtype=object))
    return graph.call("IsNaN", column)


def _levels(graph: Graph, columns: Columns, name: str, column: str, absent: str | None) -> str:
    """(m, levels) 0/1, without the first where x is linear."""
    levels = columns.levels[name]
    if _is_text(columns, name):
        row = np.array([levels], dtype=object)
    else:
        row = np.array([levels], dtype=np.float32)
        if len(set(row[0])) < len(levels) or any(row[0] != np.array(levels, dtype=float)):
            raise DataError(
                f"some levels of column {name!r} cannot be written in single precision, as ONNX "
                "files require; convert them to strings"
            )
    found = graph.as_number(graph.call("Equal", column, row))
    known = graph.call("ReduceMax", found, np.array([1]), keepdims=1)
    if absent is not None:
        known = graph.call("Max", known, graph.as_number(absent))
    known = graph.call("Greater", known, np.float32(0))
    kept = graph.call("Gather", found, np.arange(int(columns.linear), len(levels)), axis=1)
    return graph.call("Where", known, kept, np.float32(np.nan))


def _is_text(columns: Columns, name: str) -> bool:
    levels = columns.levels.get(name, ())
    strings = sum(isinstance(level, str) for level in levels)
    if not strings and all(isinstance(level, Real | np.bool_) for level in levels):
        return False
    if strings == len(levels):
        return True
    kind = next(type(level) for level in levels if not isinstance(level, str))
    raise DataError(
        f"column {name!r} has levels of type {kind.__name__}, which ONNX files do not support; "
        "convert them to strings"
    )
