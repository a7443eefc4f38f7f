"""`heckesel fit`, `diagnose` and `compare`: commands that fit a table."""

import json
from dataclasses import asdict

import click

from heckesel.cli.data import (
    TrainingData,
    choice_option,
    data_options,
    listed,
    model_options,
    open_table,
    output_options,
    training_data,
)
from heckesel.cli.terminal import notes, say, stage
from heckesel.display import plain
from heckesel.errors import DataError, HeckeselError, cannot_import, check_device, imported

# name in the shell -> class and its `method`
METHODS = {
    "auto": ("HeckmanRegressor", "auto"),
    "profile": ("HeckmanRegressor", "profile"),
    "two-step": ("HeckmanRegressor", "two-step"),
    "ml": ("HeckmanRegressor", "ml"),
    "deep-two-step": ("DeepHeckmanRegressor", "two-step"),
    "deep-joint": ("DeepHeckmanRegressor", "joint"),
}
CLASSIFIERS = {each: ("HeckmanClassifier", each) for each in ("auto", "ml")}
BASELINES = {"deep-ensemble": ("DeepEnsembleRegressor", None)}
COMPARED = ("auto", "two-step", "ml")
MOST_DIAGNOSED = 10_000  # rows of a verdict without a model; its columns are read on all rows
NETWORK_OPTIONS = ("epochs", "n_members", "device")
OPTIONS = {"n_members": "members", "target_transform": "transform", "random_state": "seed"}
CAVEAT = (
    "Both measures are computed from observed data. They do not show how well a method predicts "
    "unobserved outcomes: methods that fit observed data equally well can differ there. The "
    "verdict states how far the correction can be trusted."
)


@click.command()
@data_options
@click.option("--out", required=True, type=click.Path(), help="File for the fitted model.")
@click.option("--report", type=click.Path(), help="File for an HTML report on the fit.")
@choice_option(
    "--method",
    METHODS,
    "Method; deep- are ensembles of networks. For two classes: auto or ml.",
    default="auto",
)
@choice_option(
    "--errors",
    ["normal", "t", "shape"],
    "Error distribution for ml and profile: normal, t (heavy tails), or shape (skewed and "
    "heavy-tailed).  [default: normal]",
)
@click.option("--scale", metavar="A,B", help="Columns on which sigma depends, for ml.")
@click.option(
    "--rho-prior",
    metavar="SCALE",
    help="Prior of rho, the correlation of the errors, for auto and profile: a positive scale, or "
    "uniform.",
)
@model_options
@output_options
def fit(out, report, method, as_json, **given):
    """Fit a model to the table DATA and save it.

    Instruments enter the selection equation only. All other columns without a special role enter
    both equations. The printed verdict states how far the correction can be trusted.

    \b
    heckesel fit loans.csv --outcome repaid --instruments branch --out loans.heckesel
    heckesel fit loans.csv --outcome repaid --instruments branch,officer \\
        --exclude name --report loans.html --out loans.heckesel
    heckesel fit loans.csv --outcome repaid --instruments branch --method ml \\
        --kind classification --out loans.heckesel
    heckesel fit wages.parquet --outcome wage --method ml --transform log --out w.heckesel
    """
    import numpy as np

    from heckesel.io import check_outputs, replacing

    check_outputs({f"the table {given['data']}": given["data"]}, {"--out": out, "--report": report})
    options = _options(given)
    if report is not None:  # before any data are read
        for module in ("heckesel.report", "jinja2", "matplotlib"):
            imported(module, "--report needs the report extra", "report")
    asked = [
        f"--{OPTIONS.get(name, name)}"
        for name in ("target_transform", "errors", "scale")
        if options[name] is not None
    ]
    asked = [f"--method {method}"] * (method not in CLASSIFIERS) + asked
    data, rule = _read(given, asked)
    if options["scale"] is not None:
        options["scale"] = listed(options["scale"], list(data.X.columns))
    model = make_model(method, data, options)
    with notes(said=_said()), stage("fitting", bar="networks" not in model.get_params()):
        model.fit(data.X, data.y, **data.sides)
    if report is None:
        model.save(out)
    else:
        from heckesel.report import write_report

        # both files or neither
        with stage("writing the report"), replacing(out) as saved, replacing(report) as page:
            model.save(saved)
            write_report(model, data.X, data.y, page, **data.sides)
    s = data.y.notna() if data.selected is None else data.selected == 1.0
    summary = {
        "method": method,
        "rows": len(s),
        "selected": int(s.sum()),
        "outcome": data.y.name,
        "scale": getattr(model, "scale_", data.y.name),
        "columns": list(data.X.columns),
        "actions": list(model.columns_.actions),
        "instruments": data.instruments,
        "kind": "regression" if data.classes is None else "classification",
        "classes": None if data.classes is None else list(data.classes),
        # means over the members of an ensemble
        **{
            name: plain(float(np.mean(getattr(model, f"{name}_", np.nan))))
            for name in ("rho", "sigma")
        },
        "identification": model.identification_.to_dict(),
        "out": str(out),
        "report": None if report is None else str(report),
    }
    if as_json:
        say(json.dumps(summary, indent=1))
        return
    if rule is not None:
        say(rule)
    facts = [
        f"Method {method}: {len(s):,} rows, {s.sum():,} of them with {data.y.name}",
        f"{len(data.X.columns)} columns",
        *(
            f"{name} = {summary[name]:{digits}}"
            for name, digits in (("rho", "z.3f"), ("sigma", ".4g"))
            if summary[name] is not None
        ),
    ]
    if hasattr(model, "rho_interval_"):
        low, high = model.rho_interval_
        facts[-1] += f", 90 % interval {low:z.2f} to {high:z.2f}"
    say("; ".join(facts))
    if summary["scale"] != data.y.name:
        say(
            f"Coefficients, rho and sigma are on the scale {summary['scale']}; predictions are on "
            f"the scale of {data.y.name}"
        )
    for action in summary["actions"]:
        say(action)
    if hasattr(model, "result_"):  # its summary includes the verdict
        say(f"\n{model.result_.summary()}\n")
    else:
        say(f"Identification: {in_the_shell(model.identification_)}")
    for path in filter(None, (out, report)):
        say(f"Wrote {path}")


@click.command()
@data_options
@model_options
@output_options
def diagnose(as_json, **given):
    """Report whether the table DATA supports a correction.

    The first part lists each column with its kind and what --on-problem fix does with it. The
    rest uses at most 10,000 rows, chosen at random, and so takes seconds whatever the table. The
    verdict states how far a correction can be trusted. Instruments are also tested for a direct
    effect on the outcome.

    \b
    heckesel diagnose loans.csv --outcome repaid --instruments branch
    heckesel diagnose loans.csv --outcome repaid --instruments branch --json
    """
    import heckesel as hk
    from heckesel.verdict.identify import REJECTED

    options = _options(given)
    data, rule = _read(given, [])
    tests = None
    with notes(said=(*_said(), "column ")):
        with stage("reading the columns"):
            report = hk.column_report(data.X, data.codes, **data.columns)
        n, data = len(data.X), data.sample(MOST_DIAGNOSED)
        with stage("checking the instruments"):
            verdict = verdict_of(data, options["target_transform"])
        if data.instruments:
            with stage("testing the instruments"):
                # at the level of the verdict, so that the two cannot disagree
                given = data.columns | data.problems | {"level": REJECTED}
                tests = hk.test_instruments(data.X, data.codes, **given)
    if as_json:
        found = {"identification": verdict.to_dict()}
        if n > len(data.X):
            found["rows"] = {"used": len(data.X), "given": n}
        if tests is not None:
            listed = tests.to_dict()
            found["tests"] = {"conclusion": listed.pop("verdict"), **listed}
        columns = plain([asdict(each) for each in report.entries])
        say(json.dumps(found | {"columns": columns}, indent=1))
        return
    if rule is not None:
        say(rule)
    say(str(report))
    if "scale" in verdict.evidence:
        say(f"Scale: {verdict.evidence['scale']}")
    if n > len(data.X):
        say(f"{len(data.X):,} of the {n:,} rows, chosen at random, were used for what follows")
    say(f"Identification: {in_the_shell(verdict)}")
    for line in verdict.evidence_lines():
        say(f"  {line}")
    if tests is not None:
        say(f"Tests of a direct effect of the instruments: {tests.sentence}")
        for line in tests.details():
            say(f"  {line}")


@click.command()
@data_options
@click.option(
    "--methods",
    metavar="A,B",
    help=f"Methods to compare: some of {', '.join((*METHODS, *BASELINES))}.  "
    f"[default: {','.join(COMPARED)}; for two classes {','.join(CLASSIFIERS)}]",
)
@click.option("--splits", default=5, show_default=True, help="Number of cross-validation folds.")
@model_options
@output_options
def compare(methods, splits, as_json, **given):
    """Cross-validate methods on the table DATA.

    All methods use the same folds. The table shows the mean joint log-likelihood of selection and
    outcome on held-out rows, and R2 given selection (or accuracy, for two classes) on held-out
    outcomes. The accuracy for outcomes that were not observed cannot be measured.

    \b
    heckesel compare loans.csv --outcome repaid --instruments branch
    heckesel compare loans.csv --outcome repaid --instruments branch \\
        --methods two-step,ml --splits 3 --json
    """
    import warnings

    from heckesel.estimators.compare_models import compare_models
    from heckesel.io import unannounced

    known = METHODS | BASELINES
    names = [] if methods is None else [name.strip() for name in methods.split(",")]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise DataError(f"there is no method {unknown[0]!r}; the methods are {', '.join(known)}")
    options = _options(given)
    data, rule = _read(given, [])
    names = names or (COMPARED if data.classes is None else [*CLASSIFIERS])
    alone = {name: value for name, value in options.items() if name not in ("epochs", "n_members")}
    compared = {
        name: make_model(name, data, options if name not in COMPARED else alone) for name in names
    }
    score = "r2_given_selection" if data.classes is None else "accuracy_given_selection"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # every fold would repeat them, and the verdict is printed
        verdict = verdict_of(data, options["target_transform"])
        with stage("comparing") as update, unannounced():
            folds = {"splits": splits, "seed": options["random_state"], "score_name": score}
            rows = compare_models(
                compared, data.X, data.codes, **data.sides, **folds, progress=update
            )
    result = {"splits": splits, "methods": rows, "identification": verdict.to_dict()}
    if as_json:
        say(json.dumps(result | {"caveat": CAVEAT}, indent=1))
    else:
        shown = "R2 | selected" if rule is None else "accuracy | selected"
        lines = [] if rule is None else [rule]
        lines.append(f"{'':<20}{'log-likelihood':>16}{'behind the best':>18}{'(se)':>9}{shown:>21}")
        for row in rows:
            if "error" in row:
                lines.append(f"{row['method']:<20}  cannot be fitted: {row['error']}")
                continue
            error, value = (
                "none" if each is None else f"{each:.3f}" for each in (row["behind_se"], row[score])
            )
            lines.append(
                f"{row['method']:<20}{row['log_likelihood']:>16.4f}{row['behind']:>18.4f}"
                f"{f'({error})':>9}{value:>21}"
            )
        lines.append(f"Means over {splits} held-out folds, which are the same for every method.")
        say("\n".join([*lines, f"Identification: {in_the_shell(verdict)}", CAVEAT]))
    if all("error" in row for row in rows):
        raise HeckeselError(f"no method can be fitted: {rows[0]['error']}")


def make_model(method: str, data: TrainingData, options: dict):
    """The estimator of a method; options that are None keep its defaults."""
    import heckesel as hk

    known = METHODS | BASELINES if data.classes is None else CLASSIFIERS
    if method not in known:
        raise _numbers_only(f"method {method}", data, f"use {' or '.join(CLASSIFIERS)}")
    kind, way = known[method]
    if kind.startswith("Deep"):
        try:
            import torch  # noqa: F401
        except Exception as error:  # a broken torch can raise anything
            why = cannot_import("torch", error, "pip install 'heckesel[deep]'")
            raise DataError(f"method {method} needs {why}; or use --method auto") from None
    model = getattr(hk, kind)(instruments=data.instruments or None, **data.problems)
    known = model.get_params()
    given = {name: value for name, value in options.items() if value is not None}
    if "networks" in known:
        given["verbose"] = True
        if networks := {name: given.pop(name) for name in NETWORK_OPTIONS if name in given}:
            given["networks"] = hk.Networks(**networks)
    for name in given.keys() - known.keys() - {"random_state"}:  # nothing may be random
        option = f"--{OPTIONS.get(name, name).replace('_', '-')}"
        if data.classes is not None:
            raise _numbers_only(option, data, "omit it")
        raise DataError(f"{option} does not apply to method {method}; omit it")
    given = {name: value for name, value in given.items() if name in known}
    return model.set_params(**given, **({} if way is None else {"method": way}))


def verdict_of(data: TrainingData, transform: str | None):
    """The verdict that a fit with the default method has."""
    import heckesel as hk

    if data.classes is None:
        columns = data.columns | data.problems
        return hk.identify(data.X, data.y, target_transform=transform, **columns)
    model = make_model("auto", data, {"target_transform": transform})
    return model.fit(data.X, data.y, **data.sides).identification_


def in_the_shell(verdict) -> str:
    """The verdict in words, with the command in place of the function."""
    return str(verdict).replace("hk.test_instruments", "heckesel diagnose")


def _options(given: dict) -> dict:
    """The options of estimators, taken out of `given`; the device is checked before any data."""
    names = ("errors", "scale", "rho_prior", "target_transform", "random_state", *NETWORK_OPTIONS)
    options = {name: given.pop(name, None) for name in names}
    check_device_option(options["device"])
    if options["rho_prior"] not in (None, "uniform"):
        try:
            options["rho_prior"] = float(options["rho_prior"])
        except ValueError:
            raise DataError("--rho-prior must be a positive number or uniform") from None
    return options


def check_device_option(device: str | None, *, elsewhere: bool = False) -> None:
    """Check the device before any data are read. elsewhere : it is the device of other machines"""
    if device is None:
        return
    check_device(device)
    if device.startswith("cuda") and not elsewhere:
        from heckesel.deep.training import torch_device

        torch_device(device)


def _read(given: dict, asked: list[str]) -> tuple[TrainingData, str | None]:
    """The data, and the sentence that says how the outcome is read; 0 and 1 are numbers if an
    option that was `asked` for needs numbers."""
    table = open_table(given.pop("data"), given)
    data = training_data(table, **given)
    zero_and_one = data.classes is not None and all(
        not isinstance(each, str | bool) and each in (0, 1) for each in data.classes
    )
    if not asked or given["kind"] != "auto" or not zero_and_one:
        return data, data.rule
    return training_data(table, **given | {"kind": "regression"}), (
        f"{data.y.name} has the values 0 and 1 and is treated as a number, because {asked[0]} "
        "needs a numeric outcome (to treat it as two classes, set --kind classification)"
    )


def _numbers_only(what: str, data: TrainingData, way_out: str) -> DataError:
    """The error for an option that an outcome with two classes does not have."""
    return DataError(
        f"{what} needs a numeric outcome, but {data.y.name} has two classes; {way_out}"
        + ", or set --kind regression" * data.could_be_number
    )


def _said() -> tuple[str, ...]:
    """How warnings start that the command prints anyway."""
    from heckesel.verdict.identify import VERDICTS

    return (*VERDICTS, "the verdict on this", "all ")
