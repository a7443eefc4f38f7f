"""`method="auto"`: one call, an explanation, and a saved file that predicts the same."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from sklearn.exceptions import ConvergenceWarning

import heckesel as hk

pytest.importorskip("torch")


def skewed_frame(n=400, rho=0.7, seed=1) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    x, z, u, v = rng.normal(size=(4, n))
    error = -np.log(1 - ndtr(rho * u + np.sqrt(1 - rho**2) * v)) - 1  # exponential, mean 0
    y = np.where(0.2 - 0.8 * x + z + u > 0, np.sin(x) + 0.5 * error, np.nan)
    return pd.DataFrame({"x": x, "z": z}), pd.Series(y, name="y")


@pytest.fixture(scope="module")
def model():
    X, y = skewed_frame()
    return hk.DeepHeckmanRegressor(["z"], method="auto", progress=False, device="cpu").fit(X, y)


def test_the_fit_reports_what_it_changed(model):
    assert "skewed or heavy-tailed" in model.explanation_
    assert "likelihood of held-out rows" in model.explanation_
    assert "rho lies between" in model.explanation_


def test_candidates_are_a_table_with_the_best_first(model):
    table = model.candidates_
    assert set(table.outcome) == {"splines", "networks"}
    assert table.weight.sum() == pytest.approx(1.0)
    assert table.behind.iloc[0] == 0
    assert table.behind.is_monotonic_increasing
    assert (table.behind_error.iloc[1:] > 0).all()
    best = table.sort_values("weight").iloc[-1]
    assert best.behind < 2 * best.behind_error + 1e-9  # what has the weight is not clearly worse


def test_only_a_method_that_chooses_has_candidates():
    X, y = skewed_frame(n=150)
    options = {"epochs": 20, "hidden": (8,), "n_members": 2, "folds": None, "device": "cpu"}
    model = hk.DeepHeckmanRegressor(["z"], method="two-step", progress=False, **options)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert not hasattr(model, "candidates_")
    assert not hasattr(model, "explanation_")


@pytest.mark.parametrize("target", ["population", "selected", "unselected"])
def test_a_saved_model_predicts_the_same(model, target, tmp_path):
    X, _ = skewed_frame()
    model.save(tmp_path / "m.heckesel")
    again = hk.load(tmp_path / "m.heckesel")
    here, there = (each.predict_distribution(X, target=target) for each in (model, again))
    np.testing.assert_array_equal(here.mean, there.mean)
    np.testing.assert_array_equal(here.interval(0.9), there.interval(0.9))
    assert again.explanation_ == model.explanation_
    pd.testing.assert_frame_equal(again.candidates_, model.candidates_)


def test_a_model_with_t_errors_can_be_saved(tmp_path):
    """Outliers in both errors give the t form some weight."""
    rng = np.random.default_rng(5)
    x, z, u, v = rng.normal(size=(4, 500))
    factor = np.sqrt(4 / rng.chisquare(4, 500))
    X = pd.DataFrame({"x": x, "z": z})
    y = pd.Series(np.where(z + x + factor * u > 0, x + factor * (0.6 * u + 0.8 * v), np.nan))
    options = {"epochs": 50, "hidden": (8,), "progress": False, "device": "cpu"}
    model = hk.DeepHeckmanRegressor(["z"], **options).fit(X, y)
    assert model.candidates_.set_index("errors").weight["t"] > 0.02
    model.save(tmp_path / "m.heckesel")
    again = hk.load(tmp_path / "m.heckesel")
    for target in ("population", "unselected"):
        here, there = (each.predict_interval(X, target=target) for each in (model, again))
        np.testing.assert_array_equal(here, there)


def test_few_values_or_a_spike_lead_to_the_two_step():
    X, y = skewed_frame(n=250)
    model = hk.DeepHeckmanRegressor(
        ["z"], method="auto", epochs=20, hidden=(8,), n_members=5, progress=False, device="cpu"
    )
    model.fit(X, y.round())
    assert model.explanation_.startswith("The two-step was used, because")


def test_a_transformed_outcome_leads_to_the_two_step():
    X, y = skewed_frame(n=250)
    options = {"epochs": 20, "hidden": (8,), "n_members": 5, "progress": False, "device": "cpu"}
    with pytest.warns(ConvergenceWarning):
        model = hk.DeepHeckmanRegressor(["z"], target_transform="log", **options).fit(X, np.exp(y))
    assert model.explanation_ == "The two-step was used, because the outcome is transformed."
    assert (model.predict(X) > 0).all()


def test_what_it_cannot_do_is_one_sentence():
    X, y = skewed_frame(n=200)
    with pytest.raises(hk.DataError, match="weights models by held-out folds"):
        hk.DeepHeckmanRegressor(["z"], folds=None).fit(X, y)
    with pytest.raises(hk.HeckeselError, match="training diverged"):
        hk.DeepHeckmanRegressor(["z"], learning_rate=1e30, epochs=5, progress=False).fit(X, y)
    with pytest.raises(hk.DataError, match="needs at least one network per fold"):
        hk.DeepHeckmanRegressor(["z"], n_members=2, folds=5).fit(X, y)
