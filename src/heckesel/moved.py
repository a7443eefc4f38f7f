"""Old import paths, which still work for one release with a DeprecationWarning."""

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

# Old path -> new path below `heckesel`: the modules that the documentation named.
MOVED = {
    "classic": "linear",
    "classic.bootstrap": "linear.bootstrap",
    "classic.joint": "linear.joint",
    "classic.profile": "linear.rho_scan",
    "classic.separated": "linear.separated",
    "classic.stream": "linear.sample.stream",
    "classic.two_step": "linear.two_step",
    "deep": "networks",
    "deep.binary_loss": "networks.losses.binary",
    "deep.binary_mixture": "networks.ensembles.binary_mixture",
    "deep.config": "networks.training.config",
    "deep.ensemble": "networks.ensembles.selection_ensemble",
    "deep.held_out": "networks.ensembles.noise_calibration",
    "deep.linear_joint": "networks.rho.linear_joint",
    "deep.losses": "networks.losses.normal",
    "deep.outcome_loss": "networks.losses.outcome_selection",
    "deep.rho_curve": "networks.rho.rho_curve",
    "deep.rho_held_out": "networks.rho.rho_held_out",
    "deep.rho_mixture": "networks.rho.rho_mixture",
    "deep.student_loss": "networks.losses.student",
    "diagnostics.profile": "diagnostics.profile_curve",
    "diagnostics.sensitivity": "diagnostics.sensitivity_curves",
    "estimators.binary_fit": "linear.results.heckman_probit_fit",
    "estimators.classifier": "estimators.heckman_classifier",
    "estimators.comparison": "estimators.compare_models",
    "estimators.functional_form": "linear.results.functional_form",
    "estimators.regression": "estimators.selection_regressor",
    "linear.quasi_separated": "linear.separated",
    "methods.selection_network": "methods.parts.selection_network",
    "methods.two_step_on_folds": "methods.heckman_two_step",
}


class MovedModules(MetaPathFinder, Loader):
    """Imports the new module under its old name."""

    def find_spec(self, fullname, path=None, target=None) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != "heckesel" or name not in MOVED:
            return None
        warnings.warn(
            f"{fullname} has moved to heckesel.{MOVED[name]}; the old path will be removed in the "
            "next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return ModuleSpec(fullname, self, is_package="." not in name)

    def exec_module(self, module) -> None:
        # In place of the empty module: one module object, so that classes stay the same.
        new = import_module(f"heckesel.{MOVED[module.__name__.partition('.')[2]]}")
        sys.modules[module.__name__] = new


def install() -> None:
    """Look up old paths before others: `heckesel.classic.joint` must not be loaded twice."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())
