"""`heckesel fit`: fit a model to a table and save it."""

from __future__ import annotations

import json
import math

import click

from heckesel.cli.dask_client import dask_client
from heckesel.cli.models import (
    CLASSIFIERS,
    METHODS,
    check_device_option,
    make_model,
    method_for,
    numbers_only,
)
from heckesel.cli.terminal import say
from heckesel.cli.training_data import (
    DATA_OPTIONS,
    TRAINING_OPTIONS,
    TrainingData,
    read_training_data,
    with_options,
)
from heckesel.cli.verdict_output import as_plain
from heckesel.errors import DataError, HeckeselError


@click.command()
@with_options(DATA_OPTIONS)
@click.option("--out", required=True, type=click.Path(), help="File for the fitted model.")
@click.option("--report", type=click.Path(), help="File for an HTML report on the fit.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    help="Method; two classes have profile and linear-ml.  [default: two-step; profile for two "
    "classes]",
)
@click.option(
    "--rho-prior",
    type=click.Choice(["positive", "negative"]),
    help="Sign of rho, the correlation of the errors, if it is known (profile only).",
)
@click.option(
    "--folds",
    type=int,
    help="Number of folds. Each network holds out one, for early stopping and to estimate the "
    "noise.  [default: 5 with at least 100 selected rows, else none; 5 for two classes]",
)
@click.option(
    "--members",
    type=int,
    help="Networks in the ensemble.  [default: 10 with folds (profile 20), else 5; 5 for two "
    "classes]",
)
@click.option("--dask", metavar="ADDRESS", help="Dask scheduler; its workers train the networks.")
@with_options(TRAINING_OPTIONS)
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
    """Fit a model to DATA (CSV or Parquet) and save it.

    Columns without another role explain both selection and the outcome; instruments explain
    selection only. The verdict says whether the data support the correction.

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
    model = make_model(
        method,
        given,
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
    """The data, and a sentence if 0 and 1 are numbers because of the option `asked`."""
    given = read_training_data(**data)
    if asked is None or data["kind"] != "auto" or not _zero_and_one(given.classes):
        return given, None
    given = read_training_data(**data | {"kind": "regression"})
    return given, (
        f"{given.y.name} has the values 0 and 1 and is treated as a number, since {asked} needs "
        "one (to treat it as two classes, set --kind classification)"
    )


def _check_choices(method: str, given: TrainingData, *, report, dask) -> None:
    if dask is not None and method.startswith("linear"):
        raise DataError(f"--dask trains networks, and {method} has none")
    for option, value in {"--dask": dask, "--report": report}.items():
        if value is not None and given.classes is not None:
            raise numbers_only(option, given, "omit it")


def _train(model, given: TrainingData, method: str, dask: str | None) -> None:
    from heckesel.cli.waiting import notes, waiting
    from heckesel.diagnostics.verdict import VERDICTS

    with notes(said=(*VERDICTS, "all ")):
        if method.startswith("linear"):
            with waiting("fitting"):
                model.fit(given.X, given.y, **given.options)
        elif dask is None:  # shows a progress bar
            model.fit(given.X, given.y, **given.options)
        else:
            with dask_client(dask) as client:
                model.fit(given.X, given.y, **given.options, client=client)


def _write(model, given: TrainingData, out, report, write_report) -> None:
    """Write the model and, if requested, its report: both or neither."""
    from heckesel.atomic_files import replacing
    from heckesel.cli.waiting import waiting

    if write_report is None:
        model.save(out)
        return
    with waiting("writing the report"), replacing(out) as saved, replacing(report) as page:
        model.save(saved)
        write_report(model, given.X, given.y, page, **given.options)


def _for_numbers(report, method, transform, dask) -> str | None:
    """The first option that needs a numeric outcome."""
    asked = {
        "--report": report is not None,
        f"--method {method}": method is not None and method not in CLASSIFIERS,
        "--transform": transform is not None,
        "--dask": dask is not None,
    }
    return next((option for option, given in asked.items() if given), None)


def _zero_and_one(classes) -> bool:
    """Whether the classes are the numbers 0 and 1, and so could be a numeric outcome."""
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
    """The value of the best mode if the method has modes, else the mean over members."""
    import numpy as np

    values = np.atleast_1d(getattr(model, name, np.nan))
    lists_modes = getattr(model, "method", "profile") == "profile"
    value = float(values[0] if lists_modes else values.mean())
    return value if math.isfinite(value) else None


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
        f"Identification: {verdict['verdict']}: {verdict['sentence']}"
        if table is None
        else f"\n{table.summary()}\n",
        *(f"Wrote {summary[name]}" for name in ("out", "report") if summary[name] is not None),
    ]
    return "\n".join(lines)
