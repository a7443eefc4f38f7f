"""--transform in every command."""

import json

import numpy as np
import pytest

import heckesel as hk
from tests.cli.command_line import run

ROLES = ["--outcome", "wage", "--instruments", "z"]


@pytest.fixture
def wages(tmp_path):
    frame = hk.datasets.make_controlled(300, rho=0.5, alpha=1.5, seed=3).frame
    frame = frame[["x", "z"]].assign(wage=np.exp(2 + frame["y"]))
    path = tmp_path / "wages.csv"
    frame.to_csv(path, index=False)
    return path


def test_diagnose_names_the_scale_and_uses_it(wages, capsys):
    shown = run(capsys, "diagnose", wages, *ROLES, "--transform", "auto", "--json")
    assert json.loads(shown.out)["identification"]["evidence"]["scale"] == "log(wage)"
    shown = run(capsys, "diagnose", wages, *ROLES, "--transform", "log")
    assert "\nScale: log(wage)\nIdentification: " in shown.out
    assert "Scale" not in run(capsys, "diagnose", wages, *ROLES).out


def test_compare_fits_every_method_on_the_scale(wages, capsys):
    typed = ["--methods", "ml,two-step", "--splits", "2", "--json"]
    scores = {}
    for scale in ("log", "sqrt"):
        shown = run(capsys, "compare", wages, *ROLES, *typed, "--transform", scale)
        said = json.loads(shown.out)
        assert said["identification"]["evidence"]["scale"] == f"{scale}(wage)"
        scores[scale] = said["methods"][0]["log_likelihood"]
    assert scores["log"] > scores["sqrt"]  # both are likelihoods of the wage itself
