"""`hk.placebo`: columns whose truth is known, hidden as the outcome is hidden."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

import heckesel as hk

matplotlib.use("agg")


def draw(n=3000, seed=0):
    """`hit` moves with the error of selection, `calm` does not; z is the instrument."""
    rng = np.random.default_rng(seed)
    u, z, a, b, calm = rng.normal(size=(5, n))
    hit = 0.7 * u + np.sqrt(1 - 0.49) * a
    X = pd.DataFrame({"hit": hit, "calm": calm, "x": b, "label": "k", "z": z})
    return X, np.where(z + 0.5 * b + u > 0, 1.0, np.nan)


def test_a_column_that_depends_on_selection_is_corrected_and_another_is_not():
    X, y = draw()
    X = X.drop(columns="label")
    found = hk.placebo(X, y, instruments=["z"], learner="linear").table
    assert list(found.index) == ["hit", "calm", "x"]
    assert abs(found.loc["hit", "corrected"]) < 0.5 * abs(found.loc["hit", "naive"])
    # the share of u in `hit` is .7 whatever the instrument
    assert found.loc["hit", "rho_implied"] == pytest.approx(0.7, abs=0.1)
    assert abs(found.loc["calm", "rho_implied"]) < 0.1
    assert found.loc["calm", "covers"]


def test_the_prior_is_a_scale_that_the_regressor_takes():
    X, y = draw(n=800)
    X = X.drop(columns="label")
    found = hk.placebo(X, selected=~np.isnan(y), instruments="z", learner="linear")
    assert 0.02 <= found.rho_prior < 1
    hk.HeckmanRegressor(["z"], learner="linear", rho_prior=found.rho_prior).fit(X, y)
    ax = hk.plots.placebo(found)
    assert {tick.get_text() for tick in ax.get_yticklabels()} == {"x", "calm", "hit"}


def test_bad_use_is_one_sentence():
    X, y = draw(n=200)
    for options, message in (
        ({"y": y, "selected": y == 1}, "pass y"),
        ({}, "pass y"),
        ({"y": y[:-1]}, "X has 200 rows but there are 199"),
        ({"y": y, "columns": ["age"]}, "X has no column 'age'"),
        ({"y": np.ones(200)}, "every row was selected"),
        ({"y": y, "columns": []}, "no numeric column"),
    ):
        with pytest.raises(hk.DataError, match=message):
            hk.placebo(X, instruments=["z"], **options)
