"""`heckesel compare`: cross-validate every method on the same folds."""

from __future__ import annotations

import json
import warnings

import click

from heckesel.cli.models import (
    BASELINES,
    CLASSIFIERS,
    METHODS,
    check_device_option,
    make_model,
    method_for,
)
from heckesel.cli.terminal import say
from heckesel.cli.training_data import (
    DATA_OPTIONS,
    TRAINING_OPTIONS,
    read_training_data,
    with_options,
)
from heckesel.cli.verdict_output import as_plain, verdict_of
from heckesel.errors import DataError, HeckeselError

ALL = (*METHODS, *BASELINES)
CAVEAT = (
    "Both columns evaluate observed data. The accuracy of predictions for unobserved outcomes "
    "cannot be measured on this table: methods that fit equally well here can differ there. The "
    "verdict says how far to trust the likelihood."
)


@click.command()
@with_options(DATA_OPTIONS)
@click.option("--methods", metavar="A,B", help=f"Some of {', '.join(ALL)}.  [default: all]")
@click.option("--splits", default=5, show_default=True, help="Number of cross-validation folds.")
@click.option("--members", type=int, help="Networks in each ensemble.")
@with_options(TRAINING_OPTIONS)
def compare(methods, splits, members, transform, epochs, seed, device, as_json, **data):
    """Cross-validate every method on DATA (CSV or Parquet).

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
    check_device_option(device)
    given = read_training_data(**data)
    classes = given.classes
    network = {"n_members": members, "epochs": epochs, "device": device, "progress": False}
    models = {
        name: make_model(
            method_for(name, given),
            given,
            target_transform=transform,
            random_state=seed,
            **({} if name.startswith("linear") else network),
        )
        for name in names or (ALL if classes is None else CLASSIFIERS)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # every fold would repeat them, and the verdict is printed
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
        raise HeckeselError(f"no method can be fitted: {rows[0]['error']}")


def _as_text(result: dict, rule: str | None) -> str:
    score, shown = "r2_given_selection", "R2 | selected"
    if rule is not None:
        score, shown = "accuracy_given_selection", "accuracy | selected"
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
