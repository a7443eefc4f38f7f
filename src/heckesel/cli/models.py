"""The methods of the command line and the estimators behind them."""

from __future__ import annotations

from typing import Any

from heckesel.cli.training_data import TrainingData
from heckesel.device import check_device
from heckesel.errors import DataError, cannot_import
from heckesel.methods import DEEP, names_of
from heckesel.methods import METHODS as KNOWN

LINEAR = tuple(names_of("HeckmanRegressor"))
METHODS = (*names_of(DEEP), *LINEAR)
BASELINES = names_of("DeepEnsembleRegressor", "WeightedEnsembleRegressor")
CLASSIFIERS = {each.name: each.outcome for each in KNOWN.values() if each.name and each.outcome}
OPTIONS = {"n_members": "members"}  # parameters whose option has another name


def method_for(method: str | None, data: TrainingData) -> str:
    """The requested method, or the default for this kind of outcome."""
    if data.classes is None:
        return method or "two-step"
    method = method or "profile"
    if method not in CLASSIFIERS:
        raise numbers_only(f"method {method}", data, f"use {' or '.join(CLASSIFIERS)}")
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
    if data.classes is not None and "target_transform" in given:
        raise numbers_only("--transform", data, "omit it")
    if method in LINEAR:
        _check_linear(method, given)
    else:
        _need_torch(method)
    import heckesel as hk

    common: dict[str, Any] = {"instruments": data.instruments or None, "missing": data.missing}
    if data.classes is not None:
        return hk.HeckmanClassifier(outcome=CLASSIFIERS[method], **common, **given)
    if method in LINEAR:
        return hk.HeckmanRegressor(method=method.removeprefix("linear-"), **common, **given)
    if method in BASELINES:
        return getattr(hk, str(KNOWN[BASELINES[method]].estimator))(**common, **given)
    if "rho_prior" in given and method not in ("auto", "profile"):
        raise DataError(f"--rho-prior needs --method auto or profile, but the method is {method}")
    return hk.DeepHeckmanRegressor(method=method, **common, **given)


def _check_linear(method: str, given: dict) -> None:
    """Drop the seed, since nothing is random, and refuse the other options of networks."""
    given.pop("random_state", None)
    refused = [name for name in given if name != "target_transform"]
    if refused:
        option = OPTIONS.get(refused[0], refused[0]).replace("_", "-")
        raise DataError(f"--{option} is for networks, and {method} has none")


def _need_torch(method: str) -> None:
    try:
        import torch  # noqa: F401
    except Exception as error:  # a broken torch can raise anything
        why = cannot_import("torch", error, "pip install 'heckesel[deep]'")
        raise DataError(f"method {method} needs {why}; or use --method linear-ml") from None
