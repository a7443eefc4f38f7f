"""`heckesel fit`: fit a model to a table and save it."""

import json
from contextlib import ExitStack

import click

from heckesel.cli import models
from heckesel.cli.dask_client import dask_client
from heckesel.cli.terminal import notes, say, waiting
from heckesel.cli.training_data import (
    TrainingData,
    data_options,
    listed,
    model_options,
    open_table,
    training_data,
)
from heckesel.display import plain
from heckesel.errors import DataError, imported


@click.command()
@data_options
@click.option("--out", required=True, type=click.Path(), help="File for the fitted model.")
@click.option("--report", type=click.Path(), help="File for an HTML report on the fit.")
@click.option(
    "--method",
    type=click.Choice(models.METHODS),
    help="Method. For two classes: profile, linear-ml or linear-auto.  [default: auto; "
    "profile for two classes]",
)
@click.option(
    "--errors",
    type=click.Choice(["normal", "t", "shape"]),
    help="Error distribution for linear-ml, joint and profile: normal, t (heavy tails; not for "
    "profile), or shape (skewed and heavy-tailed).  [default: normal]",
)
@click.option(
    "--scale",
    metavar="A,B",
    help="Columns on which sigma depends, for linear-ml, joint and profile.",
)
@click.option(
    "--rho-prior",
    type=click.Choice(["positive", "negative"]),
    help="Sign of rho, the correlation of the errors, if it is known (auto and profile only).",
)
@click.option(
    "--folds",
    type=int,
    help="Number of folds. Each network holds out one, for early stopping and to estimate the "
    "noise.  [default: 5 with at least 100 selected rows, else none; 5 for two classes]",
)
@click.option(
    "--members",
    "n_members",
    type=int,
    help="Networks in the ensemble.  [default: 10 with folds (profile 20), else 5; 5 for two "
    "classes]",
)
@click.option("--dask", metavar="ADDRESS", help="Dask scheduler; its workers train the networks.")
@model_options
def fit(out, report, method, dask, as_json, **given):
    """Fit a model to the table DATA and save it.

    Instruments enter the selection equation only. All other columns without a special role enter
    both equations. The printed verdict states whether the data support the correction.

    \b
    heckesel fit loans.csv --outcome repaid --instruments branch --out loans.heckesel
    heckesel fit loans.csv --outcome repaid --instruments branch,officer \\
        --exclude name --method profile --rho-prior positive --out loans.heckesel
    heckesel fit loans.csv --outcome repaid --instruments branch --method linear-ml \\
        --kind classification --out loans.heckesel
    heckesel fit wages.parquet --outcome wage --method linear-ml --transform log --out w.heckesel
    """
    from heckesel.atomic_files import check_outputs

    options = {name: given.pop(name) for name in models.PARAMETERS}
    check_outputs({f"the table {given['data']}": given["data"]}, {"--out": out, "--report": report})
    models.check_device_option(options["device"], dask)
    if report is not None:  # before any data are read
        for module in ("heckesel.report", "jinja2", "matplotlib"):
            imported(module, "--report needs the report extra", "report")
    data, rule = _read(given, _for_numbers(method, options["target_transform"], dask))
    method = models.method_for(method, data)
    _check_choices(method, data, dask=dask)
    if options["scale"] is not None:
        options["scale"] = listed(options["scale"], list(data.X.columns))
    model = models.make_model(method, data, **options)
    _train(model, data, method, dask)
    _write(model, data, out, report)
    summary = _summary(model, data, method, out, report)
    if as_json:
        say(json.dumps(summary, indent=1))
    else:
        say(_as_text(summary, rule or data.rule, getattr(model, "result_", None)))


def _read(given: dict, asked: str | None) -> tuple[TrainingData, str | None]:
    """The data, and a sentence if 0 and 1 are numbers because of the option `asked`."""
    table = open_table(given.pop("data"), given)
    data = training_data(table, **given)
    if asked is None or given["kind"] != "auto" or not _zero_and_one(data.classes):
        return data, None
    return training_data(table, **given | {"kind": "regression"}), (
        f"{data.y.name} has the values 0 and 1 and is treated as a number, because {asked} needs "
        "a numeric outcome (to treat it as two classes, set --kind classification)"
    )


def _check_choices(method: str, given: TrainingData, *, dask) -> None:
    if dask is not None and method.startswith("linear"):
        raise DataError(f"--dask distributes the training of networks, but {method} has none")
    if dask is not None and given.classes is not None:
        raise models.numbers_only("--dask", given, "omit it")


def _train(model, data: TrainingData, method: str, dask: str | None) -> None:
    from heckesel.diagnostics.verdict import VERDICTS

    with ExitStack() as stack:
        stack.enter_context(notes(said=(*VERDICTS, "all ")))
        if method.startswith("linear"):  # networks show a progress bar
            stack.enter_context(waiting("fitting"))
        workers = {} if dask is None else {"client": stack.enter_context(dask_client(dask))}
        model.fit(data.X, data.y, **data.options, **workers)


def _write(model, data: TrainingData, out, report) -> None:
    """Write the model and, if requested, its report: both or neither."""
    from heckesel.atomic_files import replacing

    if report is None:
        model.save(out)
        return
    from heckesel.report import write_report

    with waiting("writing the report"), replacing(out) as saved, replacing(report) as page:
        model.save(saved)
        write_report(model, data.X, data.y, page, **data.options)


def _for_numbers(method, transform, dask) -> str | None:
    """The first option that needs a numeric outcome."""
    asked = {
        f"--method {method}": method is not None and method not in models.CLASSIFIERS,
        "--transform": transform is not None,
        "--dask": dask is not None,
    }
    return next((option for option, given in asked.items() if given), None)


def _zero_and_one(classes) -> bool:
    """Whether the classes are the numbers 0 and 1, and so could be a numeric outcome."""
    return classes is not None and all(
        not isinstance(each, str | bool) and each in (0, 1) for each in classes
    )


def _summary(model, given, method: str, out, report) -> dict:
    s = given.y.notna() if given.selected is None else given.selected == 1.0
    return {
        "method": method,
        "basis": getattr(model, "info_", {}).get("outcome"),
        "rows": len(s),
        "selected": int(s.sum()),
        "outcome": given.y.name,
        "scale": getattr(model, "scale_", given.y.name),
        "columns": list(given.X.columns),
        "actions": list(model.columns_.actions),
        "instruments": given.instruments,
        "kind": "regression" if given.classes is None else "classification",
        "classes": None if given.classes is None else list(given.classes),
        "rho": _common(model, "rho_"),
        "sigma": _common(model, "sigma_"),
        "explanation": getattr(model, "explanation_", None),
        "identification": models.as_plain(model.identification_),
        "out": str(out),
        "report": None if report is None else str(report),
    }


def _common(model, name: str) -> float | None:
    """The value of the best mode if the method has modes, else the mean over members or over the
    points of a mixture."""
    import numpy as np

    values, info = np.atleast_1d(getattr(model, name, np.nan)), getattr(model, "info_", {})
    lists_modes = hasattr(model, "classes_") or "modes" in info
    value = float(values[0] if lists_modes else np.average(values, weights=info.get("weight")))
    return plain(value)


def _about_scale(summary: dict) -> str:
    return (
        f"Coefficients, rho and sigma are on the scale {summary['scale']}; predictions are on the "
        f"scale of {summary['outcome']}"
    )


def _as_text(summary: dict, rule: str | None, table=None) -> str:
    """table : result of a linear method, whose summary includes the verdict"""
    shown = [
        f"{name} = {summary[name]:.4g}" for name in ("rho", "sigma") if summary[name] is not None
    ]
    verdict = summary["identification"]
    method = summary["method"] + (" (splines)" if summary["basis"] == "spline" else "")
    lines = [
        *([] if rule is None else [rule]),
        f"Method {method}: {summary['rows']:,} rows, {summary['selected']:,} of them with "
        f"{summary['outcome']}; {len(summary['columns'])} columns; {', '.join(shown)}",
        *([] if summary["scale"] == summary["outcome"] else [_about_scale(summary)]),
        *summary["actions"],
        *([] if summary["explanation"] is None else [summary["explanation"]]),
        f"Identification: {verdict['verdict']}: {verdict['sentence']}"
        if table is None
        else f"\n{table.summary()}\n",
        *(f"Wrote {summary[name]}" for name in ("out", "report") if summary[name] is not None),
    ]
    return "\n".join(lines)
