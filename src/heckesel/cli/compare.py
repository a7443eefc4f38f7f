"""`heckesel compare`: cross-validate every method on the same folds."""

import json
import warnings

import click

from heckesel.cli import models
from heckesel.cli.terminal import say
from heckesel.cli.training_data import data_options, model_options, read_training_data
from heckesel.errors import DataError, HeckeselError

ALL = (*models.METHODS, *models.BASELINES)
CAVEAT = (
    "Both measures are computed from observed data. They do not show how well a method predicts "
    "unobserved outcomes: methods that fit observed data equally well can differ there. The "
    "verdict states how far the likelihood can be trusted."
)


@click.command()
@data_options
@click.option(
    "--methods",
    metavar="A,B",
    help=f"Methods to compare: some of {', '.join(ALL)}.  [default: all]",
)
@click.option("--splits", default=5, show_default=True, help="Number of cross-validation folds.")
@click.option("--members", "n_members", type=int, help="Networks in each ensemble.")
@model_options
def compare(methods, splits, as_json, **given):
    """Cross-validate all methods on the table DATA.

    All methods use the same folds. The table shows the mean joint log-likelihood of selection and
    outcome on held-out rows, and R2 given selection (or accuracy, for two classes) on held-out
    outcomes. The accuracy for outcomes that were not observed cannot be measured.

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
        raise DataError(f"there is no method {unknown[0]!r}; the methods are {', '.join(ALL)}")
    options = {name: given.pop(name) for name in models.PARAMETERS if name in given}
    shared = {name: value for name, value in options.items() if name not in models.OF_NETWORKS}
    models.check_device_option(options["device"])
    data = read_training_data(**given)
    compared = {
        name: models.make_model(
            models.method_for(name, data),
            data,
            **(shared if name in models.LINEAR else options | {"progress": False}),
        )
        for name in names or (ALL if data.classes is None else models.CLASSIFIERS)
    }
    score = "r2_given_selection" if data.classes is None else "accuracy_given_selection"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # every fold would repeat them, and the verdict is printed
        verdict = models.verdict_of(data, options["target_transform"])
        with progress_bar("comparing") as progress:
            folds = {"splits": splits, "seed": options["random_state"], "score_name": score}
            rows = compare_models(
                compared, data.X, data.codes, **data.options, **folds, progress=progress
            )
    result = {
        "splits": splits,
        "methods": rows,
        "identification": models.as_plain(verdict),
        "caveat": CAVEAT,
    }
    say(json.dumps(result, indent=1) if as_json else _as_text(result, score, data.rule))
    if all("error" in row for row in rows):
        raise HeckeselError(f"no method can be fitted: {rows[0]['error']}")


def _as_text(result: dict, score: str, rule: str | None) -> str:
    shown = "R2 | selected" if rule is None else "accuracy | selected"
    head = f"{'':<20}{'log-likelihood':>16}{'behind the best':>18}{'(se)':>9}{shown:>21}"
    lines = [head] if rule is None else [rule, head]
    for row in result["methods"]:
        if "error" in row:
            lines.append(f"{row['method']:<20}  cannot be fitted: {row['error']}")
            continue
        lines.append(
            f"{row['method']:<20}{row['log_likelihood']:>16.4f}{row['behind']:>18.4f}"
            f"{'(' + _number(row['behind_se']) + ')':>9}{_number(row[score]):>21}"
        )
    verdict = result["identification"]
    return "\n".join(
        [
            *lines,
            f"Means over {result['splits']} held-out folds, which are the same for every method.",
            f"Identification: {verdict['verdict']}: {verdict['sentence']}",
            result["caveat"],
        ]
    )


def _number(value) -> str:
    return "none" if value is None else f"{value:.3f}"
