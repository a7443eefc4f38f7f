"""`method="auto"`: one call, an explanation, and a saved file that predicts the same."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

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


def test_it_says_what_it_did(model):
    assert "skewed or heavy-tailed" in model.explanation_
    assert "held-out likelihood" in model.explanation_
    assert sum(model.info_["forms"].values()) == pytest.approx(1.0)


@pytest.mark.parametrize("target", ["population", "selected", "unselected"])
def test_a_saved_model_predicts_the_same(model, target, tmp_path):
    X, _ = skewed_frame()
    model.save(tmp_path / "m.heckesel")
    again = hk.load(tmp_path / "m.heckesel")
    here, there = (each.predict_distribution(X, target=target) for each in (model, again))
    np.testing.assert_array_equal(here.mean, there.mean)
    np.testing.assert_array_equal(here.interval(0.9), there.interval(0.9))


def test_few_values_or_a_spike_lead_to_the_two_step():
    X, y = skewed_frame(n=250)
    model = hk.DeepHeckmanRegressor(
        ["z"], method="auto", epochs=20, hidden=(8,), n_members=5, progress=False, device="cpu"
    )
    model.fit(X, y.round())
    assert model.explanation_.startswith("The two-step was used, because")


def test_what_it_cannot_do_is_one_sentence(model, tmp_path):
    X, y = skewed_frame(n=200)
    with pytest.raises(hk.DataError, match="models the outcome on its own scale"):
        hk.DeepHeckmanRegressor(["z"], method="auto", target_transform="log").fit(X, np.exp(y))
    with pytest.raises(hk.HeckeselError):
        model.export_onnx(tmp_path / "m.onnx")
