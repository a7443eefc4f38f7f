"""The methods of the command line and the estimators behind them."""

from __future__ import annotations

from typing import Any

from heckesel.errors import DataError

LINEAR = {"linear-ml": "ml", "linear-two-step": "two-step"}
DEEP = ("two-step", "joint", "profile")
BASELINES = ("ensemble", "weighted-ensemble")
METHODS = (*DEEP, *LINEAR)


def make_model(method: str, instruments: list[str], *, missing: str, **options):
    """The estimator of a method; options that are None keep its defaults."""
    given = {name: value for name, value in options.items() if value is not None}
    common: dict[str, Any] = {"instruments": instruments or None, "missing": missing}
    if method in LINEAR:
        transform = given.pop("target_transform", None)
        given.pop("random_state", None)  # nothing in it is random
        if given:
            name = next(iter(given)).replace("_", "-")
            raise DataError(f"--{NAMES.get(name, name)} is for networks, and {method} has none")
        from heckesel.estimators.linear import HeckmanRegressor

        return HeckmanRegressor(method=LINEAR[method], target_transform=transform, **common)
    try:
        import torch  # noqa: F401
    except ImportError:
        raise DataError(
            f"method {method} needs networks: pip install 'heckesel[deep]', or take linear-ml"
        ) from None
    if method in BASELINES:
        from heckesel.estimators.deep_ensemble import DeepEnsembleRegressor
        from heckesel.estimators.weighted_ensemble import WeightedEnsembleRegressor

        ensemble = method == "ensemble"
        kind: Any = DeepEnsembleRegressor if ensemble else WeightedEnsembleRegressor
        return kind(**common, **given)
    from heckesel.estimators.deep import DeepHeckmanRegressor

    if "rho_prior" in given and method != "profile":
        raise DataError(f"--rho-prior is for --method profile, and this is {method}")
    return DeepHeckmanRegressor(method=method, **common, **given)


NAMES = {"n-members": "members"}  # options whose name is not that of the parameter
