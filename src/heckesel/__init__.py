"""Prediction and uncertainty when outcomes are observed only for selected units.

The public names are loaded when first used, so that `import heckesel` stays quick.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "heckman": "heckesel.selection_model",
    "heckprobit": "heckesel.selection_model",
    "probit": "heckesel.classical.probit_results",
    "identify": "heckesel.diagnose",
    "column_report": "heckesel.column_checks",
    "test_instruments": "heckesel.diagnose",
    "compare_fits": "heckesel.classical.compare",
    "placebo": "heckesel.diagnose",
    "sensitivity": "heckesel.verdict.sensitivity",
    "bounds": "heckesel.verdict.bounds",
    "HeckmanFit": "heckesel.classical.results",
    "HeckmanRegressor": "heckesel.regressor",
    "HeckmanClassifier": "heckesel.classifier",
    "DeepHeckmanRegressor": "heckesel.deep_regressor",
    "DeepEnsembleRegressor": "heckesel.deep_regressor",
    "Networks": "heckesel.learners.networks",
    "HeckmanImputer": "heckesel.imputer",
    "pool_estimates": "heckesel.imputer",
    "load": "heckesel.saving",
    "joint_log_likelihood_scorer": "heckesel.estimators.compare_models",
    "Predictive": "heckesel.predictive",
    "HeckeselError": "heckesel.errors",
    "DataError": "heckesel.errors",
    "IdentificationWarning": "heckesel.errors",
}

_PACKAGES = ("datasets", "metrics", "plots")

__all__ = [*_PACKAGES, *_HOMES]


def __getattr__(name: str):
    if name in _PACKAGES:
        return import_module(f"heckesel.{name}")
    if name not in _HOMES:
        raise AttributeError(f"heckesel has no {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
