"""Methods and baselines, one per file: `fit_many(datas, *, seeds, config, device, progress)`.

It fits many datasets with the same columns as one batch and returns a list. A fitted method is a
frozen dataclass with `.predict(x, w=None, target="population") -> Predictive` and `.info`, a frozen
dataclass of plain values. It may have more: `.index(w)`, its selection index; `.graph`, its part of
an ONNX file; `.draw(rng)`, the same fit with drawn parameters, for imputation; and `.main`, the one
of several parts that `hk.sensitivity` refits. Networks are found in its fields, whatever their
names. `config` holds the options that the method defines; None means its defaults.

Two functions are optional: `options(network, model)` makes the config from the options of an
estimator, and `fit_files(config)` returns a function that fits rows on disk. A new method is a file
and a line here: Python, the command line, reports, saved models and the contract test take it from
METHODS. Two files are not in METHODS: `binary_networks`, for outcomes with two classes, and
`own_network`, for user-defined networks. Parts of methods are in `parts/`.
"""

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from heckesel.errors import DataError

DEEP = "DeepHeckmanRegressor"


@dataclass(frozen=True)
class Method:
    """Description of a method that is available before its module is imported.

    label : its name in reports, tables and figures
    name : its name in Python and in the shell; None for a method of experiments
    estimator : the public class that fits it
    fitted : the class of what `fit_many` returns, by its name in the module
    module : the module with `fit_many`, by default the file with the name of the method; None if
        only the estimator can fit it
    outcome : the value of `outcome` of `HeckmanClassifier` that selects this method
    way : how it estimates the model, for the report
    weight_decay, members : of its networks and, on folds, their number, unless the user sets them
    needs_folds : it cannot train every member on all rows
    one_sigma : its errors are normal, with one sigma
    network_selection : its selection index can be a network
    rho_prior : it takes prior knowledge about rho
    error_models : it takes errors="shape" and scale=
    explains : its fit has an explanation of what it chose (`explanation_`)
    """

    label: str
    name: str | None = None
    estimator: str | None = None
    fitted: str | None = None
    module: str | None = ""
    outcome: str | None = None
    way: str = "in two steps"
    weight_decay: float = 1e-5
    members: int = 10  # two for each of five folds; more change nothing (X4)
    needs_folds: bool = False
    one_sigma: bool = False
    network_selection: bool = False
    rho_prior: bool = False
    error_models: bool = False
    explains: bool = False


METHODS = {
    "heckman_two_step": Method(
        "two-step", "two-step", DEEP, "SelectionEnsemble", network_selection=True
    ),
    "heckman_joint": Method(
        "joint",
        "joint",
        DEEP,
        "SelectionEnsemble",
        way="by joint likelihood",
        error_models=True,
    ),
    "heckman_averaged": Method(
        "averaged",
        "averaged",
        DEEP,
        "AveragedEnsemble",
        way="in two steps and by likelihood, averaged",
        needs_folds=True,
        network_selection=True,
    ),
    "heckman_profile": Method(
        "profile",
        "profile",
        DEEP,
        "RhoMixture",
        outcome="network",
        way="averaged over ρ",
        weight_decay=1e-3,
        members=20,  # four per fold, which share their columns
        needs_folds=True,
        one_sigma=True,
        rho_prior=True,
        error_models=True,
    ),
    "heckman_auto": Method(
        "auto",
        "auto",
        DEEP,
        "AutoMixture",
        needs_folds=True,
        network_selection=True,
        rho_prior=True,
        explains=True,
    ),
    "linear_heckman": Method(
        "linear, maximum likelihood",
        "linear-ml",
        "HeckmanRegressor",
        module="heckesel.classical.linear_model",
        outcome="linear",
    ),
    "linear_two_step": Method(
        "linear, two-step", "linear-two-step", "HeckmanRegressor", module=None
    ),
    "deep_ensemble": Method(
        "deep ensemble", "ensemble", "DeepEnsembleRegressor", "GaussianEnsemble"
    ),
    "weighted_ensemble": Method(
        "weighted ensemble", "weighted-ensemble", "WeightedEnsembleRegressor", "GaussianEnsemble"
    ),
    "heckman_outcome": Method("outcome likelihood"),
    "spline_joint": Method("spline"),
    "blind_two_head": Method("blind two-head"),
    "mc_dropout": Method("MC dropout"),
    "gp": Method("GP"),
    "least_squares": Method("least squares"),
    "skyline": Method("skyline"),
    "oracle": Method("oracle"),
}


def names_of(*estimators: str) -> dict[str, str]:
    """User-visible name -> name in METHODS, for the methods that one of the estimators fits."""
    return {
        method.name: key
        for key, method in METHODS.items()
        if method.name is not None and method.estimator in estimators
    }


def method_of(model) -> Method:
    """The entry of METHODS that an estimator of networks fits; without a parameter `method` it is a
    plain ensemble."""
    return METHODS[names_of(DEEP)[model.method] if hasattr(model, "method") else "deep_ensemble"]


def with_rho_prior() -> list[str]:
    """User-visible names of the methods that accept prior knowledge about rho."""
    return sorted(name for name, key in names_of(DEEP).items() if METHODS[key].rho_prior)


def with_error_models() -> list[str]:
    """User-visible names of the methods that accept errors="shape" and scale=."""
    return sorted(name for name, key in names_of(DEEP).items() if METHODS[key].error_models)


def load_method(name: str) -> ModuleType:
    """The module behind a name in METHODS, imported when first asked for."""
    known = [key for key, method in METHODS.items() if method.module is not None]
    if name not in known:
        raise DataError(f"there is no method {name!r}; there are {', '.join(known)}")
    return import_module(METHODS[name].module or f"heckesel.methods.{name}")


def fit_one(method: str | ModuleType, data, *, seed: int = 0, **options):
    """The fit of one dataset by a method, given by its name or as its module; options : `config`,
    `device` and `progress` of its `fit_many`."""
    module = load_method(method) if isinstance(method, str) else method
    return module.fit_many([data], seeds=[seed], **options)[0]
