"""The options that commands share, and the training data they describe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import click

from heckesel.cli.terminal import QUIET, note, stage
from heckesel.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from heckesel.tables.files import TableFile


def _together(*options):
    """A decorator that adds these arguments and options to a command, in this order."""
    return lambda command: reduce(lambda inner, add: add(inner), reversed(options), command)


def choice_option(name: str, values, help: str, default: str | None = None, **settings):
    """An option with a few values and, if it has one, a default that the help shows."""
    settings |= {} if default is None else {"default": default, "show_default": True}
    return click.option(name, type=click.Choice([*values]), help=help, **settings)


quiet_option = click.option(
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=lambda context, _, given: context.meta.update({QUIET: given}),
    help="Show no progress and no notes.",
)
file_options = _together(
    click.option("--delimiter", help="Delimiter of a CSV file.  [default: detected]"),
    click.option(
        "--decimal", metavar="MARK", help="Decimal mark of a CSV file.  [default: detected]"
    ),
    click.option("--encoding", help="Encoding of a CSV file, such as cp1252.  [default: utf-8]"),
    click.option(
        "--sheet", metavar="NAME", help="Sheet of a workbook. Required if there are several."
    ),
)
OF_FILES = ("delimiter", "decimal", "encoding", "sheet")
data_options = _together(
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
        help="Column that is 1 for selected rows and 0 for others.  [default: rows with an outcome "
        "are selected]",
    ),
    click.option(
        "--unobserved",
        metavar="A,B",
        help="Values of the outcome that stand for a missing one, such as 0 or 999.",
    ),
    click.option("--weights", metavar="COLUMN", help="Column with the weight of each row."),
    click.option(
        "--groups",
        metavar="COLUMN",
        help="Column that identifies rows of the same unit, such as a patient number. It is not "
        "used as a regressor.",
    ),
    click.option("--exclude", metavar="A,B", help="Columns to ignore, such as names and ids."),
    click.option(
        "--categories",
        metavar="A,B",
        help="Columns of numbers that are codes, such as occupations or diagnoses, to be used as "
        "categories.",
    ),
    choice_option(
        "--on-problem",
        ["fix", "error"],
        "What to do with columns that cannot be used as they are (missing values, rare levels, "
        "collinear columns, dates, identifiers, ...): omit or transform them and report it, or "
        "stop with an error.",
        default="fix",
    ),
    choice_option(
        "--missing",
        ["error", "indicator"],
        "What to do with missing values in other columns with --on-problem error: stop, or impute "
        "the mean and add a missing indicator.",
        default="error",
    ),
    choice_option(
        "--kind",
        ["auto", "regression", "classification"],
        "Kind of outcome: a number or two classes. auto treats booleans, two strings, and 0 and 1 "
        "as classes.",
        default="auto",
    ),
    file_options,
)
output_options = _together(
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    quiet_option,
)
model_options = _together(
    click.option(
        "--transform",
        "target_transform",
        type=click.Choice(["log", "log1p", "sqrt", "yeo-johnson", "auto"]),
        help="Scale on which the outcome is fitted. Predictions are on the original scale. auto "
        "chooses the simplest scale whose held-out likelihood is close to the best.",
    ),
    click.option(
        "--seed",
        "random_state",
        type=click.IntRange(0, 2**32 - 1),
        metavar="INTEGER",
        default=0,
        show_default=True,
        help="Seed; the same seed gives the same result.",
    ),
    click.option("--epochs", type=int, help="Largest number of passes over the data (networks)."),
    click.option("--members", "n_members", type=int, help="Networks in the ensemble."),
    click.option("--device", help="Device for training: auto, cpu or cuda."),
)


@dataclass(frozen=True)
class TrainingData:
    """The arguments of an estimator's `fit`.

    classes : the two classes of the outcome; None if it is a number
    """

    X: pd.DataFrame
    y: pd.Series
    instruments: list[str]
    selected: pd.Series | None
    sample_weight: pd.Series | None
    missing: str
    on_problem: str
    groups: pd.Series | None = None
    classes: tuple | None = None

    @property
    def rule(self) -> str | None:
        """The sentence that says that the outcome has two classes."""
        if self.classes is None or len(self.classes) != 2:
            return None
        first, second = self.classes
        return (
            f"{self.y.name} has two classes, {first} and {second}; predictions are probabilities "
            f"of {second}"
        ) + " (to treat it as a number, set --kind regression)" * self.could_be_number

    def sample(self, rows: int) -> TrainingData:
        """At most so many rows, at random; whole groups, if there are any."""
        if len(self.X) <= rows:
            return self
        import numpy as np
        import pandas as pd

        rng = np.random.default_rng(0)
        if self.groups is None:
            chosen = np.sort(rng.choice(len(self.X), rows, replace=False))
        else:
            codes, labels = pd.factorize(self.groups)
            kept = rng.permutation(len(labels))[: max(2, len(labels) * rows // len(codes))]
            chosen = np.flatnonzero(np.isin(codes, kept))
        given = {"X": self.X, "y": self.y, **self.sides}
        return replace(self, **{k: v.iloc[chosen] for k, v in given.items() if v is not None})

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
    def problems(self) -> dict:
        """Options of the estimators for missing values and other problems of columns."""
        return {"missing": self.missing, "on_problem": self.on_problem}

    @property
    def columns(self) -> dict:
        """The roles of columns, as functions of data take them."""
        return {"instruments": self.instruments or None, **self.sides}

    @property
    def sides(self) -> dict:
        """The columns beside X and y."""
        return {name: getattr(self, name) for name in ("selected", "sample_weight", "groups")}


def open_table(data, given: dict) -> TableFile:
    """Read a table; the options of files are taken out of `given`."""
    from heckesel.tables.files import read_table

    with stage("reading"):
        return read_table(data, **{name: given.pop(name) for name in OF_FILES})


def training_data(
    table: TableFile,
    *,
    outcome,
    instruments,
    selected,
    unobserved,
    weights,
    groups,
    exclude,
    categories,
    missing,
    on_problem,
    kind,
) -> TrainingData:
    """The table with the roles of its columns; X has every column without another role."""
    with stage("reading"):
        if on_problem == "fix":
            table = table.without_empty_rows()
        elif table.unnamed:
            raise DataError(f"{table.unnamed[0]} of {table.path} has no name; give it one")
        names = list(table.frame.columns)
        chosen, excluded = listed(instruments, names), listed(exclude, names)
        roles = [("outcome", outcome), *(("instrument", name) for name in chosen)]
        roles += [("excluded column", name) for name in excluded]
        single = {"selected": selected, "weights": weights, "groups": groups}
        roles += [(f"{role} column", name) for role, name in single.items() if name]
        taken: dict[str, str] = {}
        for role, name in roles:
            table.check(name, role)
            if name in taken:
                both = f"both as {taken[name]} and as {role}"
                how = f"twice as {role}" if taken[name] == role else both
                raise DataError(f"{name!r} is given {how}")
            taken[name] = role
        used = [name for name in names if taken.get(name, "instrument") == "instrument"]
        if len(used) == len(chosen):
            raise DataError(f"{table.path} has no column from which to predict {outcome!r}")
        codes = listed(categories, names)
        for name in codes:
            table.check(name, "category")
            if name not in used:
                raise DataError(
                    f"{name!r} is neither a regressor nor an instrument; omit --categories"
                )
        chosen_rows = table.numbers(selected, "selected column") if selected else None
        if unobserved is not None:
            table = table.without_values(outcome, listed(unobserved, []))
        y, classes = table.outcome(outcome, kind, chosen_rows)
        found = TrainingData(
            X=table.columns(used, categories=codes),
            y=y,
            classes=classes,
            instruments=chosen,
            selected=chosen_rows,
            sample_weight=table.numbers(weights, "weights column") if weights else None,
            missing=missing,
            on_problem=on_problem,
            groups=table.frame[groups] if groups else None,
        )
    for sentence in table.notes:  # now that the columns are known to be right
        note(sentence)
    return found


def listed(given: str | None, names: list[str]) -> list[str]:
    """The names in `a,b`; the name of a column may contain a comma."""
    if not given:
        return []
    if given in names:
        return [given]
    return [part for part in (part.strip() for part in given.split(",")) if part]
