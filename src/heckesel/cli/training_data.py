"""The options by which fit, diagnose and compare name the columns of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from heckesel.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

OPTIONS = [
    click.argument("data", type=click.Path()),
    click.option("--outcome", required=True, help="Column to predict; empty where unselected."),
    click.option("--instruments", metavar="A,B", help="Columns that moved selection alone."),
    click.option("--selected", metavar="COLUMN", help="0/1: selected or not, if empty is no sign."),
    click.option("--weights", metavar="COLUMN", help="Weight of each row."),
    click.option("--exclude", metavar="A,B", help="Columns to leave out, such as names and ids."),
    click.option(
        "--missing",
        type=click.Choice(["error", "indicator"]),
        default="error",
        show_default=True,
        help="Missing values elsewhere: refuse them, or fill them and point them out.",
    ),
    click.option(
        "--kind",
        type=click.Choice(["auto", "regression", "classification"]),
        default="auto",
        show_default=True,
        help="Of outcome: a number, or two classes (auto: truths, two texts, or 0 and 1).",
    ),
    click.option("--delimiter", help="Of a CSV file, if it cannot be told."),
    click.option("--decimal", default=".", show_default=True, help="Decimal mark of a CSV file."),
]


def data_options(command):
    """DATA and the options that name its columns."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class TrainingData:
    """What an estimator's `fit` takes; classes : the two of the outcome, None if it is a number."""

    X: pd.DataFrame
    y: pd.Series
    instruments: list[str]
    selected: pd.Series | None
    weight: pd.Series | None
    missing: str
    classes: tuple | None = None

    @property
    def rule(self) -> str | None:
        """What was decided about the outcome, in a sentence."""
        if self.classes is None:
            return None
        first, second = self.classes
        sentence = (
            f"{self.y.name} has two classes, {first} and {second}: what is predicted is the "
            f"probability of {second}"
        )
        if self.could_be_number:
            sentence += " (--kind regression would take it for a number)"
        return sentence

    @property
    def could_be_number(self) -> bool:
        """Whether `--kind regression` has numbers to read: not of texts, but of truths."""
        texts = {each.lower() for each in self.classes or () if isinstance(each, str)}
        return texts <= {"true", "false"}

    @property
    def codes(self) -> pd.Series:
        """The outcome as numbers: 1 for the second class, 0 for the first, NaN where missing."""
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
    """Every column that has no other role is a column of X."""
    from heckesel.cli.waiting import note, waiting
    from heckesel.tables.file_columns import fit_columns, number_column
    from heckesel.tables.outcome_kind import read_outcome
    from heckesel.tables.table_file import read_table

    with waiting("reading"):
        table = read_table(data, delimiter=delimiter, decimal=decimal)
        names = list(table.frame.columns)
        chosen, left_out = _listed(instruments, names), _listed(exclude, names)
        roles = {"outcome": [outcome], "instrument": chosen, "excluded column": left_out}
        roles |= {"selected column": [selected] if selected else []}
        roles |= {"weights column": [weights] if weights else []}
        taken: dict[str, str] = {}
        for role, columns in roles.items():
            for name in columns:
                table.check(name, role)
                if name in taken:
                    raise DataError(f"{name!r} is given as {taken[name]} and as {role}")
                taken[name] = role
        used = [name for name in names if taken.get(name, "instrument") == "instrument"]
        if len(used) == len(chosen):
            raise DataError(f"{data} has no columns to predict {outcome!r} from")
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
    """`a,b` as names; a name with a comma in it is one name."""
    if not given:
        return []
    if given in names:
        return [given]
    return [part for part in (part.strip() for part in given.split(",")) if part]
