"""The methods of the command line, the estimators behind them, and the verdict on a table."""

from typing import Any

from heckesel.cli.training_data import TrainingData
from heckesel.device import check_device
from heckesel.display import plain
from heckesel.errors import DataError, cannot_import
from heckesel.methods import DEEP, names_of, with_error_models, with_rho_prior
from heckesel.methods import METHODS as KNOWN

LINEAR = tuple(names_of("HeckmanRegressor"))
METHODS = (*names_of(DEEP), *LINEAR)
NETWORKS = with_error_models()
BASELINES = names_of("DeepEnsembleRegressor", "WeightedEnsembleRegressor")
CLASSIFIERS = {each.name: each.outcome for each in KNOWN.values() if each.name and each.outcome}
# Parameters of estimators that are options of the command line.
OF_NETWORKS = ("rho_prior", "folds", "n_members", "epochs", "device")
ERROR_OPTIONS = {"errors": "--errors", "scale": "--scale"}
PARAMETERS = (*OF_NETWORKS, *ERROR_OPTIONS, "random_state", "target_transform")
OPTIONS = {"n_members": "members"}  # parameters whose option has another name


def method_for(method: str | None, data: TrainingData) -> str:
    """The requested method, or the default for this kind of outcome."""
    if data.classes is None:
        return method or "auto"
    method = method or "profile"
    if method not in CLASSIFIERS:
        *most, last = CLASSIFIERS
        raise numbers_only(f"method {method}", data, f"use {', '.join(most)} or {last}")
    return method


def numbers_only(what: str, data: TrainingData, way_out: str) -> DataError:
    """The error for an option that an outcome with two classes does not have."""
    return DataError(
        f"{what} needs a numeric outcome, but {data.y.name} has two classes; {way_out}"
        + ", or set --kind regression" * data.could_be_number
    )


def check_device_option(device: str | None, dask: str | None = None) -> None:
    """Check the device before any data are read; on a cluster it is the workers' device."""
    if device is None:
        return
    check_device(device)
    if device.startswith("cuda") and dask is None:
        from heckesel.networks.training.config import torch_device

        torch_device(device)


def make_model(method: str, data: TrainingData, **options):
    """The estimator of a method; options that are None keep its defaults."""
    given = {name: value for name, value in options.items() if value is not None}
    for name, option in (("target_transform", "--transform"), *ERROR_OPTIONS.items()):
        if data.classes is not None and name in given:
            raise numbers_only(option, data, "omit it")
        if name in ERROR_OPTIONS and name in given and method not in (*NETWORKS, "linear-ml"):
            ways = f"{', '.join(NETWORKS)} or linear-ml"
            raise DataError(f"{option} needs --method {ways}, but the method is {method}")
    if method in LINEAR:
        _check_linear(method, given)
    else:
        _need_torch(method)
    import heckesel as hk

    common: dict[str, Any] = {"instruments": data.instruments or None, **data.problems}
    if method in LINEAR:
        common["method"] = method.removeprefix("linear-")
    if data.classes is not None:
        return hk.HeckmanClassifier(outcome=CLASSIFIERS[method], **common, **given)
    if method in LINEAR:
        return hk.HeckmanRegressor(**common, **given)
    if method in BASELINES:
        return getattr(hk, str(KNOWN[BASELINES[method]].estimator))(**common, **given)
    if "rho_prior" in given and method not in (known := with_rho_prior()):
        ways = " or ".join(known)
        raise DataError(f"--rho-prior needs --method {ways}, but the method is {method}")
    return hk.DeepHeckmanRegressor(method=method, **common, **given)


def _check_linear(method: str, given: dict) -> None:
    """Drop the seed, since nothing is random, and refuse the other options of networks."""
    given.pop("random_state", None)
    refused = [name for name in given if name in OF_NETWORKS]
    if refused:
        option = OPTIONS.get(refused[0], refused[0]).replace("_", "-")
        raise DataError(f"--{option} applies to networks only, but {method} has none")


def _need_torch(method: str) -> None:
    try:
        import torch  # noqa: F401
    except Exception as error:  # a broken torch can raise anything
        why = cannot_import("torch", error, "pip install 'heckesel[deep]'")
        raise DataError(f"method {method} needs {why}; or use --method linear-ml") from None


def verdict_of(data: TrainingData, transform: str | None):
    """The `Identification` of the data; for two classes that of a linear probit with selection."""
    import heckesel as hk

    if data.classes is not None and transform is not None:
        raise numbers_only("--transform", data, "omit it")
    columns = {"instruments": data.instruments or None, **data.problems}
    if data.classes is None:
        options = data.options | {"target_transform": transform}
        return hk.identify(data.X, data.y, **columns, **options)
    model = hk.HeckmanClassifier(**columns)
    return model.fit(data.X, data.y, **data.options).identification_


def examined(data: TrainingData, transform: str | None):
    """The `ColumnReport`, the `Identification` and, with instruments, the `InstrumentValidity`."""
    import heckesel as hk
    from heckesel.diagnostics.column_report import column_report
    from heckesel.estimators.identify import examine

    columns = {"instruments": data.instruments or None, **data.options}
    if data.classes is None:
        options = data.problems | {"target_transform": transform}
        return examine(data.X, data.y, **columns, **options)
    verdict = verdict_of(data, transform)
    report = column_report(data.X, data.codes, **columns)
    tests = hk.test_instruments
    columns |= data.problems
    return report, verdict, tests(data.X, data.codes, **columns) if data.instruments else None


def as_plain(identification) -> dict:
    """For --json; a number that is not finite is null, and so is `note` if the correction is
    supported."""
    return {
        "verdict": identification.verdict,
        "level": identification.level,
        "sentence": identification.sentence,
        "note": identification.caveat,
        "evidence": plain(identification.evidence),
    }
