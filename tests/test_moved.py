"""Import paths of the previous release still work, and warn."""

import subprocess
import sys
import warnings
from importlib import import_module

import pytest

import heckesel as hk
from heckesel.moved import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_an_old_path_imports_the_same_module_and_warns(old):
    for name in [name for name in sys.modules if name == f"heckesel.{old}"]:
        del sys.modules[name]
    with pytest.warns(
        DeprecationWarning, match=f"heckesel.{old} has moved to heckesel.{MOVED[old]}"
    ):
        found = import_module(f"heckesel.{old}")
    assert found is import_module(f"heckesel.{MOVED[old]}")
    assert found.__name__ == f"heckesel.{MOVED[old]}"


def test_the_imports_of_the_previous_documentation_work():
    from heckesel.data import SelectionData, selection_data  # noqa: F401
    from heckesel.methods import load_method, own_network  # noqa: F401
    from heckesel.metrics import evaluate  # noqa: F401
    from heckesel.predictive import Predictive, check_target  # noqa: F401
    from heckesel.report import write_report  # noqa: F401

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from heckesel.deep.config import NetworkConfig
        from heckesel.deep.rho_mixture import RhoMixture
        from heckesel.estimators.classifier import HeckmanClassifier
        from heckesel.estimators.comparison import compare_models
    from heckesel.networks.rho import rho_mixture

    assert NetworkConfig.__module__ == "heckesel.networks.training.config"
    assert HeckmanClassifier is hk.HeckmanClassifier
    assert RhoMixture is rho_mixture.RhoMixture
    assert Predictive is hk.Predictive
    assert compare_models.__module__ == "heckesel.estimators.compare_models"


def test_the_warning_points_at_the_line_that_imports():
    code = "import heckesel.deep.config"
    command = [sys.executable, "-W", "always::DeprecationWarning", "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "<string>:1: DeprecationWarning: heckesel.deep.config has moved to" in shown


def test_other_unknown_modules_are_still_an_error():
    with pytest.raises(ModuleNotFoundError, match="nothing"):
        import_module("heckesel.nothing")
