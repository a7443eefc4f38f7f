"""`heckesel compare`: every method on the same folds of one table."""

from __future__ import annotations

import json
import warnings

import click

from heckesel.cli.models import (
    BASELINES,
    CLASSIFIERS,
    METHODS,
    check_device_option,
    make_classifier,
    make_model,
)
from heckesel.cli.terminal import say
from heckesel.cli.training_data import data_options, read_training_data
from heckesel.cli.verdict_output import as_plain, verdict_of
from heckesel.errors import DataError, HeckeselError

ALL = (*METHODS, *BASELINES)
CAVEAT = (
    "Both columns judge what was observed. How well a method predicts outcomes that nobody saw "
    "cannot be measured on this table: methods that fit alike here can differ there, and then the "
    "verdict decides how far the likelihood is to be trusted."
)


@click.command()
@data_options
@click.option("--methods", metavar="A,B", help=f"Some of {', '.join(ALL)}; default: all.")
@click.option("--splits", default=5, show_default=True, help="Folds; each is predicted once.")
@click.option("--transform", type=click.Choice(["log"]), help="Scale on which to fit the outcome.")
@click.option("--members", type=int, help="Networks in each ensemble.")
@click.option("--epochs", type=int, help="Passes over the data.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)
@click.option("--device", help="auto, cpu or cuda.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(methods, splits, transform, members, epochs, seed, device, as_json, **data):
    """Compare every method on the same folds of DATA (.csv or .parquet).

    The mean joint log-likelihood of selection and outcome on rows left out can be compared, and so
    can R2 of E[y | selected] on the outcomes among them, or the share of classes that are hit; what
    nobody observed cannot.

    \b
    heckesel compare loans.csv --outcome repaid --instruments branch
    heckesel compare loans.csv --outcome repaid --instruments branch \\
        --methods two-step,linear-ml --splits 3 --json
    """
    from heckesel.estimators.compare_models import compare_models
    from heckesel.progress import progress_bar

    names = [] if methods is None else [name.strip() for name in methods.split(",")]
    unknown = [name for name in names if name not in ALL]
    if unknown:
        raise DataError(f"there is no method {unknown[0]!r}; known: {', '.join(ALL)}")
    check_device_option(device)
    given = read_training_data(**data)
    classes = given.classes
    names = names or list(ALL if classes is None else CLASSIFIERS)
    numeric = [name for name in names if classes is not None and name not in CLASSIFIERS]
    if numeric:
        or_else = ", or take --kind regression" if given.could_be_number else ""
        raise DataError(
            f"{numeric[0]} is for numbers, and {given.y.name} has two classes; compare "
            f"{' and '.join(CLASSIFIERS)}{or_else}"
        )
    network = {"n_members": members, "epochs": epochs, "device": device, "progress": False}
    models = {
        name: (make_model if classes is None else make_classifier)(
            name,
            given.instruments,
            missing=given.missing,
            target_transform=transform,
            random_state=seed,
            **({} if name.startswith("linear") else network),
        )
        for name in names
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # every fold would repeat them, and the verdict is shown
        verdict = verdict_of(given)
        with progress_bar("comparing") as progress:
            options = given.options | {"splits": splits, "seed": seed, "progress": progress}
            if classes is not None:
                options["score_name"] = "accuracy_given_selection"
            rows = compare_models(models, given.X, given.codes, **options)
    result = {
        "splits": splits,
        "methods": rows,
        "identification": as_plain(verdict),
        "caveat": CAVEAT,
    }
    say(json.dumps(result, indent=1) if as_json else _as_text(result, given.rule))
    if all("error" in row for row in rows):
        raise HeckeselError(f"no method could be fitted: {rows[0]['error']}")


def _as_text(result: dict, rule: str | None) -> str:
    score, shown = "r2_given_selection", "R2 | selected"
    if rule is not None:
        score, shown = "accuracy_given_selection", "hits | selected"
    head = f"{'':<20}{'log-likelihood':>16}{'behind the best':>18}{'(se)':>9}{shown:>16}"
    lines = [head] if rule is None else [rule, head]
    for row in result["methods"]:
        if "error" in row:
            lines.append(f"{row['method']:<20}  could not be fitted: {row['error']}")
            continue
        lines.append(
            f"{row['method']:<20}{row['log_likelihood']:>16.4f}{row['behind']:>18.4f}"
            f"{'(' + _number(row['behind_se']) + ')':>9}{_number(row[score]):>16}"
        )
    verdict = result["identification"]
    return "\n".join(
        [
            *lines,
            f"Means over {result['splits']} folds of rows left out, the same for every method.",
            f"Identification: {verdict['verdict']}: {verdict['sentence']}",
            result["caveat"],
        ]
    )


def _number(value) -> str:
    return "none" if value is None else f"{value:.3f}"
