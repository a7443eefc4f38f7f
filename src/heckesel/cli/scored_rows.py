"""Rows of a table with the columns that `heckesel predict` adds, some rows at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from heckesel.cli.terminal import note
from heckesel.cli.training_data import say_detected
from heckesel.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from heckesel.tables.columns import RowProblems
    from heckesel.tables.files import TableFile

ROWS_AT_ONCE = 2**17  # in memory at once of a file that is streamed; a step of the progress bar
REASON = "reason"
LEVELS_SHOWN = 3


@dataclass(frozen=True)
class Scoring:
    """A fitted estimator, and what to predict with it."""

    model: Any
    target: str
    level: float

    @property
    def classes(self) -> np.ndarray | None:
        """The two classes of the outcome; None if it is a number."""
        return getattr(self.model, "classes_", None)

    @property
    def added(self) -> list[str]:
        """The names of the predictions."""
        if self.classes is None:
            return ["mean", "std", "lower", "upper"]
        return ["probability", "lower", "upper", "class"]

    def columns(self, table: TableFile) -> pd.DataFrame:
        """The columns of a table that the model reads."""
        columns = self.model.columns_
        needed = columns.sources(self.target)
        for name in needed:
            if name in columns.instruments:
                table.check(name, f"instrument (needed for the target {self.target!r})")
        return table.columns(needed)

    def problems(self, X: pd.DataFrame) -> RowProblems | None:
        """What on_problem="fix" does with these rows; None if the model was fitted without it."""
        columns = self.model.columns_
        return columns.row_problems(X, self.target) if columns.fixes else None

    def predictions(self, X: pd.DataFrame, *, reasons: bool) -> dict[str, np.ndarray]:
        """The added columns; empty in rows that cannot be predicted. reasons : add why"""
        import numpy as np
        import pandas as pd

        found = dict(zip(self.added, self._values(X), strict=True))
        problems = self.problems(X) if reasons else None
        if problems is None:
            return found
        for name, values in found.items():
            found[name] = values.copy() if values.dtype.kind == "f" else values.astype(object)
            found[name][pd.notna(problems.reasons)] = np.nan if values.dtype.kind == "f" else None
        return found | {REASON: problems.reasons}

    def _values(self, X: pd.DataFrame) -> tuple[np.ndarray, ...]:
        if self.classes is None:
            from heckesel.estimators.selection_regressor import predicted_numbers

            return tuple(
                predicted_numbers(
                    self.model,
                    X,
                    self.target,
                    lambda y: (y.mean, y.std, *y.interval(self.level).T),
                )
            )
        probability = self.model.predict_proba(X, self.target)[:, 1]
        lower, upper = self.model.predict_proba_interval(X, self.level, self.target).T
        return probability, lower, upper, self.classes[(probability > 0.5).astype(int)]


class ProblemCounts:
    """The problems of the blocks of a table, added up."""

    def __init__(self) -> None:
        self.unusable = 0
        self._unseen: dict[str, Counter] = {}
        self._imputed: Counter = Counter()

    def add(self, found: RowProblems) -> None:
        self.unusable += sum(reason is not None for reason in found.reasons)
        self._imputed.update(found.imputed)
        for source, levels in found.unseen.items():
            self._unseen.setdefault(source, Counter()).update(levels)

    @property
    def notes(self) -> list[str]:
        """A sentence for each column with unseen levels, and one for missing values."""
        said = []
        for source, levels in self._unseen.items():
            shown = ", ".join([*levels][:LEVELS_SHOWN]) + ", ..." * (len(levels) > LEVELS_SHOWN)
            rows = f"{levels.total():,} row{'s have' if levels.total() > 1 else ' has'}"
            said.append(
                f"{source}: {rows} a level that did not occur in the fit ({shown}); treated as "
                "other"
            )
        if self._imputed:
            counts = ", ".join(f"{source} ({n:,})" for source, n in self._imputed.items())
            said.append(f"missing values imputed as in the fit: {counts}")
        return said


def free_names(path, taken, added: list[str]) -> dict[str, str]:
    """Predictions -> the names of their columns, other ones where the table has them already."""
    names = {}
    for name in added:
        free = name
        while free in taken:
            free = f"predicted_{free}"
        if free != name:
            note(f"{path} already has a column {name!r}, so the prediction is in {free!r}")
        names[name] = free
    return names


def checked(scoring: Scoring, blocks: Iterable[pd.DataFrame]) -> ProblemCounts:
    """What the plan of the model does with all rows."""
    counts = ProblemCounts()
    for X in blocks:
        if (found := scoring.problems(X)) is not None:
            counts.add(found)
    return counts


def scored_table(scoring: Scoring, table: TableFile) -> tuple[TableFile, ProblemCounts]:
    """A table in memory with its predictions."""
    import numpy as np

    X = scoring.columns(table)
    blocks = [X.iloc[first : first + ROWS_AT_ONCE] for first in range(0, len(X), ROWS_AT_ONCE)]
    counts = checked(scoring, blocks)
    with _reporting(len(X)) as report:
        parts = [report(scoring.predictions(b, reasons=counts.unusable > 0)) for b in blocks]
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    names = free_names(table.path, table.frame.columns, list(found))
    frame = table.frame.assign(**{names[name]: values for name, values in found.items()})
    return replace(table, frame=frame), counts


def score_parquet(scoring: Scoring, path, out) -> tuple[int, ProblemCounts]:
    """Write a Parquet file with its predictions, and return how many rows it has. It is read in
    blocks: once to check all rows, if the model has a plan, and once to predict them."""
    from heckesel.tables.files import parquet_blocks, parquet_output, parquet_rows

    counts, names = ProblemCounts(), dict[str, str]()
    if scoring.model.columns_.fixes:
        blocks = parquet_blocks(path, ROWS_AT_ONCE)
        counts = checked(scoring, (scoring.columns(table) for _, table in blocks))
    rows = 0
    with parquet_output(out) as write, _reporting(parquet_rows(path)) as report:
        for block, table in parquet_blocks(path, ROWS_AT_ONCE):
            say_detected(table)
            rows += len(table.frame)
            X = scoring.columns(table)
            try:
                found = report(scoring.predictions(X, reasons=counts.unusable > 0))
            except DataError as error:
                first = rows - len(X)
                place = f"in {path}, counting rows from its row {first}: " if first else ""
                raise DataError(f"{place}{error}") from None
            names = names or free_names(table.path, table.frame.columns, list(found))
            write(block, {names[name]: values for name, values in found.items()})
    return rows, counts


@contextmanager
def _reporting(rows: int) -> Iterator[Callable[[dict], dict]]:
    """A function that returns the predictions it is given and moves a progress bar."""
    from heckesel.progress import progress_bar

    done = 0
    with progress_bar("predicting") as progress:

        def report(found: dict) -> dict:
            nonlocal done
            done += len(next(iter(found.values())))
            if progress is not None:
                progress(done, rows)
            return found

        yield report
