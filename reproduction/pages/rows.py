"""Committed rows as flat dicts, and the values of one metric over the seeds of a cell.

Our own results and the paper's have the same names, so that one definition of a published number
applies to both.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from heckesel.errors import DataError
from reproduction.result_files import read_reference, read_rows, results_path, rows_of_auto

Row = dict
SUMMARIES = ("rho_intervals", "x6_calibration")


@dataclass(frozen=True)
class Results:
    """Rows of each experiment, under the name a user types; empty where it has not been run.

    SUMMARIES are what a program has measured, not rows of cells.
    """

    e0: Sequence[Row] = field(default=())
    e1: Sequence[Row] = field(default=())
    warm_up: Sequence[Row] = field(default=())
    e2: Sequence[Row] = field(default=())
    e4: Sequence[Row] = field(default=())
    e4_timm: Sequence[Row] = field(default=())
    x1: Sequence[Row] = field(default=())
    x4: Sequence[Row] = field(default=())
    x5: Sequence[Row] = field(default=())
    x6: Sequence[Row] = field(default=())
    peers: Sequence[Row] = field(default=())
    rho_intervals: Sequence[Row] = field(default=())
    x6_calibration: dict = field(default_factory=dict)


def flat(rows: Iterable[dict]) -> list[Row]:
    """{"cell": ..., "metrics": ...} as one dict; failed rows are not included.

    A metric with the name of a setting gets another one: the estimate of rho is rho_hat.
    """
    rows = list(rows)
    for row in rows:
        if "error" in row:
            raise DataError(f"cell {row['cell']} failed: {row['error']}")
    return [
        cell | {f"{key}_hat" if key in cell else key: value for key, value in metrics.items()}
        for cell, metrics in ((row["cell"], row["metrics"]) for row in rows)
    ]


def succeeded(rows: Iterable[dict]) -> list[Row]:
    """Flat rows of the cells that did not fail; the page that shows them counts the others."""
    return flat(row for row in rows if "error" not in row)


def read_results(folder: Path) -> Results:
    """The results in `folder`; panels may be missing, because their data are not in the repository,
    and our own experiments because they have not been run.

    A failed row of the paper's experiments is refused, one of our own is skipped. Rows of `auto`
    from another device are added, and frozen rows of the old auto, which no program computes any
    more.
    """
    found = {}
    for name in SUMMARIES:
        if (path := folder / f"{name}.json").exists():
            found[name] = json.loads(path.read_text(encoding="utf-8"))
    for part in fields(Results):
        if part.name in SUMMARIES:
            continue
        path = results_path(part.name.replace("_", "-"), folder)
        own = part.name.startswith(("x", "peers"))
        if path.exists():
            read = succeeded if own else flat
            found[part.name] = read(read_rows(path) + rows_of_auto(part.name, folder))
            frozen = folder / f"{part.name}_old_auto.json"
            found[part.name] += read(read_rows(frozen)) if frozen.exists() else []
        elif not own and part.name not in ("e4", "e4_timm"):
            raise DataError(f"{path} is missing; run `heckesel reproduce` first")
    return Results(**found)


def read_paper() -> Results:
    """The paper's own rows of A-E1 and A-E2 that published numbers need."""
    return Results(e1=read_paper_table("paper_e1"), e2=read_paper_table("paper_e2"))


def read_paper_numbers() -> dict[str, dict]:
    """Macro name -> {"value", "printed"}: all figures the paper derives from its results."""
    return read_reference("paper_numbers")["numbers"]


def matching(rows: Sequence[Row], **cell) -> list[Row]:
    """The rows that agree with `cell`. Pages call this thousands of times, so keys are compared one
    at a time."""
    found = list(rows)
    for key, value in cell.items():
        found = [row for row in found if row.get(key) == value]
    return found


def over_seeds(rows: Sequence[Row], metric: str, **cell) -> np.ndarray:
    """The metric in every row that agrees with `cell`, in the order of seeds: (n_seeds,)."""
    return np.array([row[metric] for row in _by_seed(rows, cell)], dtype=float)


def members(rows: Sequence[Row], **cell) -> np.ndarray:
    """rho of every ensemble member: (n_seeds, k)."""
    found = _by_seed(rows, cell)
    names = sorted(key for key in found[0] if key.startswith("rho_member_"))
    if not names:
        raise DataError(f"rows with {cell} do not say what rho each member has")
    return np.array([[row[name] for name in names] for row in found])


def only(rows: Sequence[Row], **cell) -> Row:
    """The one row that agrees with `cell`."""
    found = matching(rows, **cell)
    if len(found) != 1:
        raise DataError(f"{len(found)} rows with {cell}, expected one")
    return found[0]


def _by_seed(rows: Sequence[Row], cell: dict) -> list[Row]:
    found = matching(rows, **cell)
    if not found:
        raise DataError(f"no row with {cell}")
    return sorted(found, key=lambda row: row["seed"])


def read_paper_table(name: str, part: str = "rows") -> list[Row]:
    """A part of `paper_e1` or `paper_e2`: the "rows", or the "regions" with the points of each
    region in every draw. Rows are stored without their keys; null marks a metric that a method
    does not have."""
    table = read_reference(name)[part]
    return [
        {key: value for key, value in zip(table["columns"], row, strict=True) if value is not None}
        for row in table["rows"]
    ]
