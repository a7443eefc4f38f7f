"""`heckesel fit`: from a table to a saved model."""

from __future__ import annotations

import json
import math

import click

from heckesel.cli.dask_client import dask_client
from heckesel.cli.models import (
    CLASSIFIERS,
    METHODS,
    check_device_option,
    make_classifier,
    make_model,
    method_for,
)
from heckesel.cli.terminal import say
from heckesel.cli.training_data import TrainingData, data_options, read_training_data
from heckesel.cli.verdict_output import as_plain
from heckesel.errors import DataError, HeckeselError


@click.command()
@data_options
@click.option("--out", required=True, type=click.Path(), help="File for the model.")
@click.option("--report", type=click.Path(), help="File for a page about the fit, in HTML.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    help="[default: two-step, or profile for two classes, which have it and linear-ml]",
)
@click.option(
    "--rho-prior",
    type=click.Choice(["positive", "negative"]),
    help="Sign of the correlation, where it is known (profile).",
)
@click.option("--transform", type=click.Choice(["log"]), help="Scale on which to fit the outcome.")
@click.option(
    "--folds",
    type=int,
    help="Members do without one each; sigma is judged there.  "
    "[default: 5 from 100 selected rows on, else none; classes 5]",
)
@click.option(
    "--members",
    type=int,
    help="Networks in the ensemble.  [default: 10 on folds, profile 20, 5 without; classes 5]",
)
@click.option("--epochs", type=int, help="Passes over the data.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)
@click.option("--device", help="auto, cpu or cuda.")
@click.option("--dask", metavar="ADDRESS", help="Scheduler of a cluster that trains the members.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def fit(
    out,
    report,
    method,
    rho_prior,
    transform,
    folds,
    members,
    epochs,
    seed,
    device,
    dask,
    as_json,
    **data,
):
    """Fit a model to DATA (.csv or .parquet) and save it.

    Every column that has no other role explains both selection and outcome; instruments explain
    selection alone. The verdict says whether the data can carry the correction.

    \b
    heckesel fit loans.csv --outcome repaid --instruments branch --out loans.heckesel
    heckesel fit loans.csv --outcome repaid --instruments branch,officer \\
        --exclude name --method profile --rho-prior positive --out loans.heckesel
    heckesel fit loans.csv --outcome repaid --instruments branch --method linear-ml \\
        --kind classification --out loans.heckesel
    heckesel fit wages.parquet --outcome wage --method linear-ml --transform log --out w.heckesel
    """
    from heckesel.atomic_files import check_output
    from heckesel.cli.outputs import check_outputs

    check_outputs({f"the table {data['data']}": data["data"]}, {"--out": out, "--report": report})
    check_output(out)
    check_device_option(device, dask)
    write_report = None
    if report is not None:
        check_output(report)
        write_report = _report_writer()
    given, rule = _read(data, _for_numbers(report, method, transform, dask))
    method = method_for(method, given)
    _check_choices(method, given, report=report, dask=dask)
    model = (make_model if given.classes is None else make_classifier)(
        method,
        given.instruments,
        missing=given.missing,
        rho_prior=rho_prior,
        target_transform=transform,
        folds=folds,
        n_members=members,
        epochs=epochs,
        random_state=seed,
        device=device,
    )
    _train(model, given, method, dask)
    _write(model, given, out, report, write_report)
    summary = _summary(model, given, method, out, report)
    if as_json:
        say(json.dumps(summary, indent=1))
    else:
        say(_as_text(summary, rule or given.rule, getattr(model, "result_", None)))


def _read(data: dict, asked: str | None) -> tuple[TrainingData, str | None]:
    """The table, and what is said where 0 and 1 are numbers because of an option `asked` for."""
    given = read_training_data(**data)
    if asked is None or data["kind"] != "auto" or not _zero_and_one(given.classes):
        return given, None
    given = read_training_data(**data | {"kind": "regression"})
    return given, (
        f"{given.y.name} holds 0 and 1 and is taken for a number, since {asked} is for "
        "numbers (--kind classification would take it for two classes)"
    )


def _check_choices(method: str, given: TrainingData, *, report, dask) -> None:
    if dask is not None and method.startswith("linear"):
        raise DataError(f"--dask trains networks, and {method} has none")
    for option, value in {"--dask": dask, "--report": report}.items():
        if value is not None and given.classes is not None:
            raise DataError(
                f"{option} is for numbers, and {given.y.name} has two classes; leave it out"
            )


def _train(model, given: TrainingData, method: str, dask: str | None) -> None:
    from heckesel.cli.waiting import notes, waiting
    from heckesel.diagnostics.verdict import VERDICTS

    with notes(said=(*VERDICTS, "all ")):
        if method.startswith("linear"):
            with waiting("fitting"):
                model.fit(given.X, given.y, **given.options)
        elif dask is None:  # shows its own bar
            model.fit(given.X, given.y, **given.options)
        else:
            with dask_client(dask) as client:
                model.fit(given.X, given.y, **given.options, client=client)


def _write(model, given: TrainingData, out, report, write_report) -> None:
    """The model and, where asked for, its report: both or neither."""
    from heckesel.atomic_files import replacing
    from heckesel.cli.waiting import waiting

    if write_report is None:
        model.save(out)
        return
    with waiting("writing the report"), replacing(out) as saved, replacing(report) as page:
        model.save(saved)
        write_report(model, given.X, given.y, page, **given.options)


def _for_numbers(report, method, transform, dask) -> str | None:
    """The first option that classes do not have."""
    asked = {
        "--report": report is not None,
        f"--method {method}": method is not None and method not in CLASSIFIERS,
        "--transform": transform is not None,
        "--dask": dask is not None,
    }
    return next((option for option, given in asked.items() if given), None)


def _zero_and_one(classes) -> bool:
    """Whether classes are the numbers 0 and 1, which may as well be numbers."""
    return classes is not None and all(
        not isinstance(each, str | bool) and each in (0, 1) for each in classes
    )


def _report_writer():
    try:
        from heckesel.report import write_report
    except ImportError:
        raise HeckeselError(
            "--report needs the report extra: pip install 'heckesel[report]'"
        ) from None
    return write_report


def _summary(model, given, method: str, out, report) -> dict:
    s = given.y.notna() if given.selected is None else given.selected == 1.0
    return {
        "method": method,
        "basis": getattr(model, "info_", {}).get("outcome"),
        "rows": len(s),
        "selected": int(s.sum()),
        "outcome": given.y.name,
        "columns": list(given.X.columns),
        "instruments": given.instruments,
        "kind": "regression" if given.classes is None else "classification",
        "classes": None if given.classes is None else list(given.classes),
        "rho": _common(model, "rho_"),
        "sigma": _common(model, "sigma_"),
        "identification": as_plain(model.identification_),
        "out": str(out),
        "report": None if report is None else str(report),
    }


def _common(model, name: str) -> float | None:
    """Of the best mode where a method lists modes, else the mean over members."""
    import numpy as np

    values = np.atleast_1d(getattr(model, name, np.nan))
    lists_modes = getattr(model, "method", "profile") == "profile"
    value = float(values[0] if lists_modes else values.mean())
    return value if math.isfinite(value) else None


def _as_text(summary: dict, rule: str | None, table=None) -> str:
    """table : the fit of a linear method, whose summary ends with the verdict"""
    shown = [
        f"{name} {summary[name]:.4g}" for name in ("rho", "sigma") if summary[name] is not None
    ]
    verdict = summary["identification"]
    method = summary["method"] + (" (splines)" if summary["basis"] == "spline" else "")
    lines = [
        *([] if rule is None else [rule]),
        f"{method}: {summary['rows']:,} rows, {summary['selected']:,} with "
        f"{summary['outcome']}, {len(summary['columns'])} columns; {', '.join(shown)}",
        f"Identification: {verdict['verdict']}: {verdict['sentence']}"
        if table is None
        else f"\n{table.summary()}\n",
        *(f"wrote {summary[name]}" for name in ("out", "report") if summary[name] is not None),
    ]
    return "\n".join(lines)
