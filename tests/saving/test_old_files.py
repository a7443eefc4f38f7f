"""Models that an earlier version saved load, and predict what they predicted there."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import heckesel as hk

FILES = Path(__file__).parent / "files"
SAID = json.loads((FILES / "predictions.json").read_text())
POINTS = pd.DataFrame({"x": [-1.0, 0.0, 1.5], "z": [0.5, -0.5, 0.0]})


@pytest.mark.parametrize("name", SAID)
def test_a_model_of_an_earlier_version_predicts_what_it_did(name):
    model = hk.load(FILES / f"{name}.heckesel")
    for target, expected in SAID[name].items():
        if name == "classifier":
            found = model.predict_proba(POINTS, target=target)
        else:
            found = model.predict(POINTS, return_std=True, target=target)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", SAID)
def test_a_model_of_an_earlier_version_is_saved_again_with_the_same_content(name, tmp_path):
    from heckesel.saving.model_file import read_model

    old = read_model(FILES / f"{name}.heckesel")
    hk.load(FILES / f"{name}.heckesel").save(tmp_path / "again.heckesel")
    again = read_model(tmp_path / "again.heckesel")
    assert again.pop("groups") is None  # older files have no groups of dependent rows
    profile = again["identification"]["profile"]
    if profile is not None:
        assert profile.pop("selected") == 0  # newer files say which mode the fit uses
    for part, known in ((again["parameters"], old["parameters"]), (again["state"], old["state"])):
        added = {key: part.pop(key) for key in [*part] if key not in known}
        assert added.pop("on_problem", "error") == "error"
        assert added.pop("unobserved", None) is None
        if name == "classifier":
            assert added in ({"method": "ml"}, {"choice": None})
        elif name == "linear":  # normal errors with a constant sigma, and nothing was chosen
            assert added.pop("errors") == "normal"
            assert set(added) <= {"scale", "choice", "cov_given_rho"}
            assert not any(added.values())
        else:
            assert added in ({}, {"scale": None})  # one sigma
    np.testing.assert_equal(again, old)
