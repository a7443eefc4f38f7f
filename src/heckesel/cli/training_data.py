"""The options that fit, diagnose and compare share, and the training data they describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from heckesel.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

CSV_OPTIONS = [
    click.option("--delimiter", help="Delimiter of a CSV file, if it cannot be detected."),
    click.option("--decimal", default=".", show_default=True, help="Decimal mark of a CSV file."),
]
DATA_OPTIONS = [
    click.argument("data", type=click.Path()),
    click.option("--outcome", required=True, help="Column to predict; empty if unselected."),
    click.option(
        "--instruments",
        metavar="A,B",
        help="Columns that affect selection but not the outcome (exclusion restrictions).",
    ),
    click.option(
        "--selected",
        metavar="COLUMN",
        help="Column that is 1 for selected and 0 for other rows, if an empty outcome does not "
        "show it.",
    ),
    click.option("--weights", metavar="COLUMN", help="Column with the weight of each row."),
    click.option("--exclude", metavar="A,B", help="Columns to ignore, such as names and ids."),
    click.option(
        "--missing",
        type=click.Choice(["error", "indicator"]),
        default="error",
        show_default=True,
        help="Missing values in other columns: stop with an error, or impute the mean and add a "
        "missing indicator.",
    ),
    click.option(
        "--kind",
        type=click.Choice(["auto", "regression", "classification"]),
        default="auto",
        show_default=True,
        help="Kind of outcome: a number or two classes. auto means classes if the outcome has "
        "booleans, two strings, or 0 and 1.",
    ),
    *CSV_OPTIONS,
]
TRAINING_OPTIONS = [
    click.option("--transform", type=click.Choice(["log"]), help="Fit the log of the outcome."),
    click.option("--epochs", type=int, help="Passes over the data, at most.  [default: 1500]"),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**32 - 1),
        metavar="INTEGER",
        default=0,
        show_default=True,
        help="Seed; the same seed gives the same result.",
    ),
    click.option("--device", help="Where to train: auto, cpu or cuda.  [default: auto]"),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
]


def with_options(options: list):
    """A decorator that adds these arguments and options to a command, in this order."""

    def decorate(command):
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@dataclass(frozen=True)
class TrainingData:
    """The arguments of an estimator's `fit`.

    classes : the two classes of the outcome; None if it is a number
    """

    X: pd.DataFrame
    y: pd.Series
    instruments: list[str]
    selected: pd.Series | None
    weight: pd.Series | None
    missing: str
    classes: tuple | None = None

    @property
    def rule(self) -> str | None:
        """The sentence that says that the outcome has two classes."""
        if self.classes is None:
            return None
        first, second = self.classes
        sentence = (
            f"{self.y.name} has two classes, {first} and {second}; predictions are probabilities "
            f"of {second}"
        )
        if self.could_be_number:
            sentence += " (to treat it as a number, set --kind regression)"
        return sentence

    @property
    def could_be_number(self) -> bool:
        """Whether the classes can be read as numbers: 0 and 1, or booleans."""
        strings = {each.lower() for each in self.classes or () if isinstance(each, str)}
        return strings <= {"true", "false"}

    @property
    def codes(self) -> pd.Series:
        """The outcome as numbers: 1 for the second class, 0 for the first, NaN if missing."""
        if self.classes is None:
            return self.y
        codes = {label: float(code) for code, label in enumerate(self.classes)}
        return self.y.map(codes).astype(float)

    @property
    def options(self) -> dict:
        return {"selected": self.selected, "sample_weight": self.weight}


def read_training_data(
    data, *, outcome, instruments, selected, weights, exclude, missing, kind, delimiter, decimal
) -> TrainingData:
    """Read the file; X has every column without another role."""
    from heckesel.cli.waiting import note, waiting
    from heckesel.tables.file_columns import fit_columns, number_column
    from heckesel.tables.outcome_kind import read_outcome
    from heckesel.tables.table_file import read_table

    with waiting("reading"):
        table = read_table(data, delimiter=delimiter, decimal=decimal)
        names = list(table.frame.columns)
        chosen, excluded = _listed(instruments, names), _listed(exclude, names)
        roles = {"outcome": [outcome], "instrument": chosen, "excluded column": excluded}
        roles |= {"selected column": [selected] if selected else []}
        roles |= {"weights column": [weights] if weights else []}
        taken: dict[str, str] = {}
        for role, columns in roles.items():
            for name in columns:
                table.check(name, role)
                if name in taken:
                    both = f"both as {taken[name]} and as {role}"
                    how = f"twice as {role}" if taken[name] == role else both
                    raise DataError(f"{name!r} is given {how}")
                taken[name] = role
        used = [name for name in names if taken.get(name, "instrument") == "instrument"]
        if len(used) == len(chosen):
            raise DataError(f"{data} has no column from which to predict {outcome!r}")
        chosen_rows = None
        if selected:
            chosen_rows = number_column(table, selected, "selected column", yes_no=True)
        found = read_outcome(table, outcome, kind, chosen_rows)
        return TrainingData(
            X=fit_columns(table, used, missing=missing, note=note),
            y=found.values,
            classes=found.classes,
            instruments=chosen,
            selected=chosen_rows,
            weight=number_column(table, weights, "weights column") if weights else None,
            missing=missing,
        )


def _listed(given: str | None, names: list[str]) -> list[str]:
    """The names in `a,b`; the name of a column may contain a comma."""
    if not given:
        return []
    if given in names:
        return [given]
    return [part for part in (part.strip() for part in given.split(",")) if part]
