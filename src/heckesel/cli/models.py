"""The methods of the command line and the estimators behind them."""

from __future__ import annotations

from typing import Any

from heckesel.device import check_device
from heckesel.errors import DataError, cannot_import

LINEAR = {"linear-ml": "ml", "linear-two-step": "two-step"}
DEEP = ("two-step", "joint", "averaged", "profile")
BASELINES = ("ensemble", "weighted-ensemble")
METHODS = (*DEEP, *LINEAR)


CLASSIFIERS = {"profile": "network", "linear-ml": "linear"}


def method_for(method: str | None, data) -> str:
    """The method asked for, or the default for this kind of outcome."""
    if data.classes is None:
        return method or "two-step"
    method = method or "profile"
    if method not in CLASSIFIERS:
        raise DataError(
            f"{method} is for numbers, and {data.y.name} has two classes; take "
            f"{' or '.join(CLASSIFIERS)}" + ", or --kind regression" * data.could_be_number
        )
    return method


def check_device_option(device: str | None, dask: str | None = None) -> None:
    """Before anything is read; on a cluster the workers have the cards."""
    if device is None:
        return
    check_device(device)
    if device.startswith("cuda") and dask is None:
        from heckesel.networks.training.config import torch_device

        torch_device(device)


def make_classifier(method: str, instruments: list[str], *, missing: str, **options):
    """The classifier of a method; options that are None keep its defaults."""
    given = {name: value for name, value in options.items() if value is not None}
    if "target_transform" in given:
        raise DataError("--transform is for numbers, and the outcome has two classes")
    if method == "linear-ml":
        given.pop("random_state", None)
        _refuse_networks_options(given, method)
    else:
        _need_torch(method)
    from heckesel.estimators.heckman_classifier import HeckmanClassifier

    return HeckmanClassifier(
        instruments or None, outcome=CLASSIFIERS[method], missing=missing, **given
    )


def make_model(method: str, instruments: list[str], *, missing: str, **options):
    """The estimator of a method; options that are None keep its defaults."""
    given = {name: value for name, value in options.items() if value is not None}
    common: dict[str, Any] = {"instruments": instruments or None, "missing": missing}
    if method in LINEAR:
        transform = given.pop("target_transform", None)
        given.pop("random_state", None)  # nothing in it is random
        _refuse_networks_options(given, method)
        from heckesel.estimators.heckman_regressor import HeckmanRegressor

        return HeckmanRegressor(method=LINEAR[method], target_transform=transform, **common)
    _need_torch(method)
    if method in BASELINES:
        from heckesel.estimators.deep_ensemble_regressor import DeepEnsembleRegressor
        from heckesel.estimators.weighted_ensemble_regressor import WeightedEnsembleRegressor

        ensemble = method == "ensemble"
        kind: Any = DeepEnsembleRegressor if ensemble else WeightedEnsembleRegressor
        return kind(**common, **given)
    from heckesel.estimators.deep_heckman_regressor import DeepHeckmanRegressor

    if "rho_prior" in given and method != "profile":
        raise DataError(f"--rho-prior is for --method profile, and this is {method}")
    return DeepHeckmanRegressor(method=method, **common, **given)


def _refuse_networks_options(given: dict, method: str) -> None:
    if given:
        name = next(iter(given)).replace("_", "-")
        raise DataError(f"--{NAMES.get(name, name)} is for networks, and {method} has none")


def _need_torch(method: str) -> None:
    try:
        import torch  # noqa: F401
    except Exception as error:  # a broken torch can raise anything
        why = cannot_import("torch", error, "pip install 'heckesel[deep]'")
        raise DataError(f"method {method} needs {why}; or take linear-ml") from None


NAMES = {"n-members": "members"}  # options whose name is not that of the parameter
