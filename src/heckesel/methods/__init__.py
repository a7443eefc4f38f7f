"""Methods and baselines, one per file: `fit_many(datas, *, seeds, config, device, progress)`.

It fits many datasets with the same columns as one batch and returns a list. A fitted method is a
frozen dataclass with `.predict(x, w=None, target="population") -> Predictive` and `.info`. `config`
is what the method itself defines, None for its defaults. A new method is a file and a line here:
Python, the command line, reports, saved models and the contract test take it from METHODS.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from heckesel.errors import DataError

DEEP = "DeepHeckmanRegressor"


@dataclass(frozen=True)
class Method:
    """What there is to know about a method before its module is imported.

    module : where `fit_many` is; None where the estimator alone fits it
    label : its name in reports, tables and figures
    name : what a user types in Python and in the shell; None for a method of experiments
    estimator : the public class that fits it
    fitted : the class of what `fit_many` returns, by its name in the module
    outcome : the `outcome` of `HeckmanClassifier` that is this method for two classes
    weight_decay : of its networks, where nothing else was asked for
    """

    module: str | None
    label: str
    name: str | None = None
    estimator: str | None = None
    fitted: str | None = None
    outcome: str | None = None
    weight_decay: float = 1e-5


METHODS = {
    "heckman_two_step": Method(
        "heckesel.methods.heckman_two_step", "two-step", "two-step", DEEP, "SelectionEnsemble"
    ),
    "heckman_joint": Method(
        "heckesel.methods.heckman_joint", "joint", "joint", DEEP, "SelectionEnsemble"
    ),
    "heckman_averaged": Method(
        "heckesel.methods.heckman_averaged", "averaged", "averaged", DEEP, "AveragedEnsemble"
    ),
    "heckman_profile": Method(
        "heckesel.methods.heckman_profile",
        "profile",
        "profile",
        DEEP,
        "RhoMixture",
        "network",
        weight_decay=1e-3,
    ),
    "heckman_auto": Method("heckesel.methods.heckman_auto", "auto", "auto", DEEP, "FormMixture"),
    "linear_heckman": Method(
        "heckesel.methods.linear_heckman",
        "linear, maximum likelihood",
        "linear-ml",
        "HeckmanRegressor",
        outcome="linear",
    ),
    "linear_two_step": Method(None, "linear, two-step", "linear-two-step", "HeckmanRegressor"),
    "deep_ensemble": Method(
        "heckesel.methods.deep_ensemble",
        "deep ensemble",
        "ensemble",
        "DeepEnsembleRegressor",
        "GaussianEnsemble",
    ),
    "weighted_ensemble": Method(
        "heckesel.methods.weighted_ensemble",
        "weighted ensemble",
        "weighted-ensemble",
        "WeightedEnsembleRegressor",
        "GaussianEnsemble",
    ),
    "heckman_outcome": Method("heckesel.methods.heckman_outcome", "outcome likelihood"),
    "spline_joint": Method("heckesel.methods.spline_joint", "spline"),
    "blind_two_head": Method("heckesel.methods.blind_two_head", "blind two-head"),
    "mc_dropout": Method("heckesel.methods.mc_dropout", "MC dropout"),
    "gp": Method("heckesel.methods.gp", "GP"),
    "least_squares": Method("heckesel.methods.least_squares", "least squares"),
    "skyline": Method("heckesel.methods.skyline", "skyline"),
    "oracle": Method("heckesel.methods.oracle", "oracle"),
}


def names_of(*estimators: str) -> dict[str, str]:
    """What a user types -> the name in METHODS, of methods that one of the estimators fits."""
    return {
        method.name: key
        for key, method in METHODS.items()
        if method.name is not None and method.estimator in estimators
    }


def load_method(name: str) -> ModuleType:
    """The module behind a name in METHODS, imported when first asked for."""
    known = [key for key, method in METHODS.items() if method.module is not None]
    if name not in known:
        raise DataError(f"there is no method {name!r}; there are {', '.join(known)}")
    return import_module(str(METHODS[name].module))


def fit_one(method: str | ModuleType, data, *, seed: int = 0, **options):
    """The fit of one dataset by a method, given by its name or as its module; options : `config`,
    `device` and `progress` of its `fit_many`."""
    module = load_method(method) if isinstance(method, str) else method
    return module.fit_many([data], seeds=[seed], **options)[0]
