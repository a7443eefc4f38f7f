"""`heckesel predict`: predictions for the rows of a table."""

import click

from heckesel.cli.scored_rows import Scoring, score_parquet, scored_table
from heckesel.cli.terminal import note, notes, print_table, say, waiting
from heckesel.cli.training_data import file_options, open_table, say_detected
from heckesel.errors import DataError, HeckeselError


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
    help="File: .csv, .csv.gz, .parquet or .xlsx.  [default: standard output, as CSV]",
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

    From Parquet to Parquet, rows are read and written in blocks, so that memory does not grow
    with the file.

    \b
    heckesel predict loans.heckesel applicants.csv --out predicted.csv
    heckesel predict loans.heckesel refused.csv --target unselected --level 0.8 --out p.parquet
    """
    from heckesel.atomic_files import check_outputs
    from heckesel.diagnostics.verdict import UNUSABLE
    from heckesel.saving import load
    from heckesel.tables import files

    if not 0 < level < 1:
        raise DataError(f"--level must be between 0 and 1, got {level:g}")
    out = None if out == "-" else out
    inputs = {f"the model {model}": model, f"the table {data}": data}
    check_outputs(inputs, {"--out": out})
    if out is not None:
        files.check_table_output(out)
    with waiting("reading"):
        fitted = load(model)
        if not fitted.columns_.from_frame:
            raise DataError(f"{model} was fitted to an array without column names; fit a frame")
        verdict = fitted.identification_
        if verdict.level == UNUSABLE and not force:
            raise DataError(f"{verdict.caveat} To predict with {model} all the same, add --force")
    scoring = Scoring(fitted, target, level)
    if out is not None and files.is_parquet(data) and files.is_parquet(out):
        with notes():
            rows, counts = score_parquet(scoring, data, out)
    else:
        table = open_table(data, given)
        say_detected(table)
        with notes():
            table, counts = scored_table(scoring, table)
        rows = len(table.frame)
        _write(table, out)
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


def _write(table, out) -> None:
    from heckesel.tables import files

    if out is None:
        print_table(files.as_csv(table.frame, table))
        return
    with waiting("writing"):
        files.write_table(out, table)
