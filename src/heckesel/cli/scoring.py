"""`heckesel predict`: predictions for the rows of a table, some rows at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from heckesel.cli.data import choice_option, file_options, open_table, quiet_option
from heckesel.cli.terminal import note, notes, print_table, say, stage
from heckesel.errors import DataError, HeckeselError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from heckesel.tables.columns import RowProblems
    from heckesel.tables.files import TableFile

ROWS_AT_ONCE = 2**17  # in memory at once of a file that is streamed; a step of the progress bar
REASON = "reason"
LEVELS_SHOWN = 3


@click.command()
@click.argument("model", type=click.Path())
@click.argument("data", type=click.Path())
@click.option("--level", default=0.9, show_default=True, help="Level of the intervals.")
@choice_option(
    "--target",
    ["population", "selected", "unselected"],
    "Predict for any unit with these columns, or given that the unit was or was not selected. The "
    "last two need the instruments.",
    default="population",
)
@click.option(
    "--out",
    type=click.Path(),
    help="File: .csv, .csv.gz, .parquet or .xlsx.  [default: standard output, as CSV]",
)
@click.option("--force", is_flag=True, help="Predict even if the data contradict the correction.")
@file_options
@quiet_option
def predict(model, data, level, target, out, force, **given):
    """Predict the rows of the table DATA with a saved MODEL.

    The output has the columns of DATA, unchanged, and four more: mean, std, low and high, or for
    two classes probability (of the second class), low, high and class. If DATA already has a
    column named mean, the prediction is in predicted_mean, and so on.

    A model that was fitted with --on-problem fix also predicts rows with unseen levels or missing
    values; notes count these rows. A row that cannot be predicted, for example because a number
    cannot be read, has empty predictions and an explanation in the additional column reason. The
    exit code is then 1.

    From Parquet to Parquet, rows are read and written in blocks, so that memory does not grow
    with the file.

    \b
    heckesel predict loans.heckesel applicants.csv --out predicted.csv
    heckesel predict loans.heckesel refused.csv --target unselected --level 0.8 --out p.parquet
    """
    import heckesel as hk
    from heckesel.io import check_outputs
    from heckesel.tables import files
    from heckesel.verdict.identify import CONTRADICTED, MOSTLY_PRIOR

    if not 0 < level < 1:
        raise DataError(f"--level must be between 0 and 1, got {level:g}")
    out = None if out == "-" else out
    check_outputs({f"the model {model}": model, f"the table {data}": data}, {"--out": out})
    if out is not None:
        files.check_table_output(out)
    with stage("reading"):
        fitted = hk.load(model)
        if not fitted.columns_.from_frame:
            raise DataError(f"{model} was fitted to an array without column names; fit a frame")
        verdict = fitted.identification_
        if verdict.verdict == CONTRADICTED and not force:
            raise DataError(f"{verdict} To predict with {model} all the same, add --force")
    scoring = Scoring(fitted, target, level)
    if verdict.verdict in (MOSTLY_PRIOR, CONTRADICTED):
        note(str(verdict))
    with notes(said=("the verdict on this",)):
        if out is not None and files.is_parquet(data) and files.is_parquet(out):
            rows, counts = score_parquet(scoring, data, out)
        else:
            table = open_table(data, given)
            for sentence in table.notes:
                note(sentence)
            table, counts = scored_table(scoring, table)
            rows = len(table.frame)
            if out is None:
                print_table(files.as_csv(table.frame, table))
            else:
                with stage("writing"):
                    files.write_table(out, table)
    for text in counts.notes:
        note(text)
    if scoring.classes is not None:
        outcome = f"{fitted.outcome_name_} is {scoring.classes[1]}"
        say(f"Predicted: probability that {outcome}", err=True)
    if out is not None:
        say(f"Wrote {rows:,} rows to {out} (target {target}, level {level:g})")
    if counts.unusable:
        raise HeckeselError(
            f"{counts.unusable:,} of {rows:,} rows could not be predicted; the column reason says "
            "why"
        )


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
            return ["mean", "std", "low", "high"]
        return ["probability", "low", "high", "class"]

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
            from heckesel.estimators.fitted_model import predicted_numbers

            def numbers(y):
                return y.mean, y.std, *y.interval(self.level).T

            return tuple(predicted_numbers(self.model, X, self.target, numbers))
        probability = self.model.predict_proba(X, self.target)[:, 1]
        low, high = self.model.predict_proba_interval(X, self.level, self.target).T
        return probability, low, high, self.classes[(probability > 0.5).astype(int)]


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
    parts = []
    with stage("predicting") as update:
        for block in blocks:
            parts.append(scoring.predictions(block, reasons=counts.unusable > 0))
            update(len(parts) * ROWS_AT_ONCE, len(X))
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
    rows, total = 0, parquet_rows(path)
    with parquet_output(out) as write, stage("predicting") as update:
        for block, table in parquet_blocks(path, ROWS_AT_ONCE):
            for sentence in table.notes:
                note(sentence)
            rows += len(table.frame)
            X = scoring.columns(table)
            try:
                found = scoring.predictions(X, reasons=counts.unusable > 0)
            except DataError as error:
                first = rows - len(X)
                place = f"in {path}, counting rows from its row {first}: " if first else ""
                raise DataError(f"{place}{error}") from None
            names = names or free_names(table.path, table.frame.columns, list(found))
            write(block, {names[name]: values for name, values in found.items()})
            update(rows, total)
    return rows, counts
