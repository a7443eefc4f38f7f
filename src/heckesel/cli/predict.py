"""`heckesel predict`: predictions for the rows of a table."""

import click

from heckesel.cli.terminal import note, notes, print_table, say, waiting
from heckesel.cli.training_data import file_options, open_table, say_detected
from heckesel.errors import DataError, HeckeselError

ROWS_AT_ONCE = 2**17  # per step of the progress bar


@click.command()
@click.argument("model", type=click.Path())
@click.argument("data", type=click.Path())
@click.option("--level", default=0.9, show_default=True, help="Level of the intervals.")
@click.option(
    "--target",
    type=click.Choice(["population", "selected", "unselected"]),
    default="population",
    show_default=True,
    help="Predict for any unit with these columns, or given that the unit was or was not selected. "
    "The last two need the instruments.",
)
@click.option(
    "--out",
    type=click.Path(),
    help="File: .csv, .csv.gz, .parquet, .feather or .xlsx.  [default: standard output, as CSV]",
)
@click.option(
    "--force", is_flag=True, help='Predict even if the verdict on the model is "do not use".'
)
@file_options
def predict(model, data, level, target, out, force, **given):
    """Predict the rows of the table DATA with a saved MODEL.

    The output has the columns of DATA, unchanged, and four more: mean, std, lower and upper, or
    for two classes probability (of the second class), lower, upper and class. If DATA already
    has a column named mean, the prediction is in predicted_mean, and so on.

    A model that was fitted with --on-problem fix also predicts rows with unseen levels or missing
    values; notes count these rows. A row that cannot be predicted, for example because a number
    cannot be read, has empty predictions and an explanation in the additional column reason. The
    exit code is then 1.

    \b
    heckesel predict loans.heckesel applicants.csv --out predicted.csv
    heckesel predict loans.heckesel refused.csv --target unselected --level 0.8 --out p.parquet
    """
    from heckesel.atomic_files import check_outputs
    from heckesel.diagnostics.verdict import UNUSABLE
    from heckesel.estimators.load import load
    from heckesel.tables import table_file
    from heckesel.tables.file_columns import prediction_columns, with_numbers

    if not 0 < level < 1:
        raise DataError(f"--level must be between 0 and 1, got {level:g}")
    out = None if out == "-" else out
    inputs = {f"the model {model}": model, f"the table {data}": data}
    check_outputs(inputs, {"--out": out})
    if out is not None:
        table_file.check_table_output(out)
    with waiting("reading"):
        fitted = load(model)
        if not fitted.columns_.from_frame:
            raise DataError(f"{model} was fitted to an array without column names; fit a frame")
        verdict = fitted.identification_
        if verdict.level == UNUSABLE and not force:
            raise DataError(f"{verdict.caveat} To predict with {model} all the same, add --force")
    table = open_table(data, given)
    with waiting("reading"):
        X = prediction_columns(table, fitted.columns_, target)
    say_detected(table)
    problems = _row_problems(fitted.columns_, X, target)
    with notes():
        predictions = _predictions(fitted, X, target, level)
    unscored = _empty_unusable(predictions, problems)
    frame = _with_predictions(table, predictions)
    if hasattr(fitted, "classes_"):
        say(
            f"Predicted: probability that {fitted.outcome_name_} is {fitted.classes_[1]}",
            err=True,
        )
    if out is None:
        print_table(table_file.as_csv(frame, table))
    else:
        with waiting("writing"):
            if table_file.suffix_of(out) not in table_file.CSV:
                frame = with_numbers(frame, table.decimal)
            table_file.write_table(out, frame, table)
        say(f"Wrote {len(frame):,} rows to {out} (target {target}, level {level:g})")
    if unscored:
        raise HeckeselError(
            f"{unscored:,} of {len(frame):,} rows could not be predicted; the column reason says "
            "why"
        )


def _row_problems(columns, X, target: str):
    """The actions of the plan on these rows; None if the model has no plan."""
    if columns.plan is None:
        return None
    from heckesel.tables.preparation.row_problems import row_problems

    names = columns.outcome_names if target == "population" else columns.names
    found = row_problems(columns.plan, X, names)
    for text in found.notes:
        note(text)
    return found


def _empty_unusable(predictions: dict, problems) -> int:
    """Empty the predictions of rows that cannot be predicted, say why, and count them."""
    import numpy as np

    if problems is None or not problems.unusable.any():
        return 0
    for name, values in predictions.items():
        if values.dtype.kind == "f":
            predictions[name] = np.where(problems.unusable, np.nan, values)
        else:
            predictions[name] = np.where(problems.unusable, None, values.astype(object))
    predictions["reason"] = problems.reasons
    return int(problems.unusable.sum())


def _with_predictions(table, predictions: dict):
    """The table with the predictions as extra columns, renamed if the name is taken."""
    added = {}
    for name, values in predictions.items():
        free = name
        while free in table.frame.columns:
            free = f"predicted_{free}"
        if free != name:
            note(f"{table.path} already has a column {name!r}, so the prediction is in {free!r}")
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
    from heckesel.estimators.selection_regressor import predicted_numbers

    mean, std, lower, upper = predicted_numbers(
        fitted, X, target, lambda found: (found.mean, found.std, *found.interval(level).T)
    )
    return {"mean": mean, "std": std, "lower": lower, "upper": upper}


def _classes(fitted, X, target: str, level: float) -> dict:
    probability = fitted.predict_proba(X, target)[:, 1]
    lower, upper = fitted.predict_proba_interval(X, level, target).T
    label = fitted.classes_[(probability > 0.5).astype(int)]
    return {"probability": probability, "lower": lower, "upper": upper, "class": label}
