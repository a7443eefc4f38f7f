"""Values that are held and groups of rows, through averages and margins of a fit."""

import numpy as np
import pandas as pd
import pytest

import heckesel as hk


@pytest.fixture(scope="module")
def fit():
    frame = hk.datasets.make_controlled(400, rho=0.5, alpha=1.5, seed=3).frame
    sex = pd.Categorical(np.resize(["m", "f", "f"], 400), categories=["m", "f"])
    frame = frame.assign(sex=sex, hole=pd.Series(np.resize(["u", None], 400), dtype=object))
    return hk.heckman("y ~ x + sex", "~ x + sex + z", frame), frame


def test_held_values_are_all_combinations_and_change_the_mean_by_the_slope(fit):
    fit, _ = fit
    held = fit.average(at={"x": [0, 2], "sex": "f"})
    assert held.index.tolist() == [(0.0, "f"), (2.0, "f")]
    change = held["mean"].iloc[1] - held["mean"].iloc[0]
    assert change == pytest.approx(2 * fit.params["outcome", "x"], rel=1e-9)
    assert set(fit.margins(at={"sex": "f"}).index.get_level_values("sex")) == {"f"}


@pytest.mark.parametrize(
    ("at", "sentence"),
    [
        ([1], "at must be a dict"),
        ({}, "at must be a dict"),
        ({"xs": 1}, "at names 'xs', but the columns are .*; did you mean"),
        ({"x": []}, "no value for the column 'x'"),
        ({"x": "old"}, "needs numbers for the column 'x', got 'old'"),
        ({"x": np.nan}, "needs numbers for the column 'x'"),
        ({"sex": "q"}, "the column 'sex' has no level 'q'; it has 'm', 'f'"),
    ],
)
def test_values_that_cannot_be_held_are_refused(at, sentence, fit):
    with pytest.raises(hk.DataError, match=sentence):
        fit[0].margins(at=at)


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        ("hole", r"'hole', which is missing in 200 rows \(first: row 1\)"),
        (["sex"], "by must be the name of a column"),
    ],
)
def test_groups_that_cannot_be_formed_are_refused(by, sentence, fit):
    frame = fit[1]
    model = hk.HeckmanRegressor(["z"], method="ml").fit(frame[["x", "z"]], frame["y"])
    with pytest.raises(hk.DataError, match=sentence):
        model.average(frame, by=by)
