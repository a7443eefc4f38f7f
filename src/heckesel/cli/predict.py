"""`heckesel predict`: from a saved model and a table to predictions."""

from __future__ import annotations

import click

from heckesel.cli.terminal import print_table, say
from heckesel.errors import DataError

ROWS_AT_ONCE = 50_000  # between two movements of the bar


@click.command()
@click.argument("model", type=click.Path())
@click.argument("data", type=click.Path())
@click.option("--level", default=0.9, show_default=True, help="Coverage of lower and upper.")
@click.option(
    "--target",
    type=click.Choice(["population", "selected", "unselected"]),
    default="population",
    show_default=True,
    help="y of any row, or given that it was or was not selected (needs the instruments).",
)
@click.option("--out", type=click.Path(), help="File, .csv or .parquet; without it, the terminal.")
@click.option("--delimiter", help="Of a CSV file, if it cannot be told.")
@click.option("--decimal", default=".", show_default=True, help="Decimal mark of a CSV file.")
def predict(model, data, level, target, out, delimiter, decimal):
    """Predict every row of DATA (.csv or .parquet) with a saved MODEL.

    The columns of DATA come back as they are, then mean, std, lower and upper; for an outcome of
    two classes probability (of the second one), lower, upper and class. If DATA has a column of
    that name, the prediction is predicted_mean, and so on.

    \b
    heckesel predict loans.heckesel applicants.csv --out predicted.csv
    heckesel predict loans.heckesel refused.csv --target unselected --level 0.8 --out p.parquet
    """
    from heckesel.atomic_files import check_output
    from heckesel.cli.outputs import check_outputs
    from heckesel.cli.waiting import notes, waiting
    from heckesel.saving.saved_model import load
    from heckesel.tables.column_kinds import prediction_columns, with_numbers
    from heckesel.tables.table_file import (
        as_csv,
        check_table_output,
        read_table,
        suffix_of,
        write_table,
    )

    if not 0 < level < 1:
        raise DataError(f"--level must lie between 0 and 1, got {level:g}")
    inputs = {f"the model {model}": model, f"the table {data}": data}
    check_outputs(inputs, {"--out": out})
    if out is not None:
        check_output(out)
        check_table_output(out)
    with waiting("reading"):
        fitted = load(model)
        if not fitted.columns_.from_frame:
            raise DataError(f"{model} was fitted to an array without column names; fit a frame")
        table = read_table(data, delimiter=delimiter, decimal=decimal)
        X = prediction_columns(table, fitted.columns_, target)
    with notes():
        predictions = _predictions(fitted, X, target, level)
    frame = _with_predictions(table, predictions)
    if hasattr(fitted, "classes_"):
        say(f"probability of {fitted.outcome_name_} = {fitted.classes_[1]}", err=True)
    if out is None:
        print_table(as_csv(frame, table))
        return
    with waiting("writing"):
        if suffix_of(out) == ".parquet":
            frame = with_numbers(frame, table.decimal)
        write_table(out, frame, table)
    say(f"{len(frame):,} rows, target {target}, level {level:g}: wrote {out}")


def _with_predictions(table, predictions: dict):
    """The table with the predictions as further columns, renamed if the table has the name."""
    from heckesel.cli.waiting import note

    added = {}
    for name, values in predictions.items():
        free = name
        while free in table.frame.columns:
            free = f"predicted_{free}"
        if free != name:
            note(f"{table.path} has a column {name!r}, so the prediction is in {free!r}")
        added[free] = values
    return table.frame.assign(**added)


def _predictions(fitted, X, target: str, level: float) -> dict:
    import numpy as np

    from heckesel.progress import progress_bar

    columns_of = _classes if hasattr(fitted, "classes_") else _numbers
    parts = []
    with progress_bar("predicting") as progress:
        for first in range(0, len(X), ROWS_AT_ONCE):
            parts.append(columns_of(fitted, X.iloc[first : first + ROWS_AT_ONCE], target, level))
            if progress is not None:
                progress(min(first + ROWS_AT_ONCE, len(X)), len(X))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _numbers(fitted, X, target: str, level: float) -> dict:
    found = fitted.predict_distribution(X, target)
    lower, upper = found.interval(level).T
    return {"mean": found.mean, "std": found.std, "lower": lower, "upper": upper}


def _classes(fitted, X, target: str, level: float) -> dict:
    probability = fitted.predict_proba(X, target)[:, 1]
    lower, upper = fitted.predict_proba_interval(X, level, target).T
    label = fitted.classes_[(probability > 0.5).astype(int)]
    return {"probability": probability, "lower": lower, "upper": upper, "class": label}
