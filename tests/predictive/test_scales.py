"""The named scales of the outcome, and the one that held-out rows choose."""

import pickle

import numpy as np
import pytest
from scipy import stats
from sklearn.preprocessing import PowerTransformer

import heckesel as hk
from heckesel.saving import read_content, write_content
from heckesel.scales import choose_scale, named_transform


def test_yeo_johnson_is_that_of_scipy_and_scikit_learn():
    y = np.array([-30.0, -1.0, -0.2, 0.0, 0.7, 5.0, 400.0])
    for power in (0.0, 0.3, 1.0, 1.6, 2.0):
        scale = named_transform("yeo-johnson", power)
        np.testing.assert_allclose(scale.forward(y), stats.yeojohnson(y, power), rtol=1e-12)
        np.testing.assert_allclose(scale.inverse(scale.forward(y)), y, rtol=1e-10, atol=1e-14)
    values = 3 * stats.weibull_min(2).rvs(500, random_state=0)
    frame = np.random.default_rng(0).normal(size=(500, 2))
    y = np.where(frame @ [0.3, 1.0] > frame[::-1, 0], values, np.nan)
    model = hk.HeckmanRegressor([1], target_transform="yeo-johnson", method="ml").fit(frame, y)
    alone = PowerTransformer(standardize=False).fit(y[~np.isnan(y), None]).lambdas_[0]
    # x explains nothing here, so that the regression chooses nearly what y alone does
    assert model.transform_.parameter == pytest.approx(alone, abs=0.05)


def table(kind, n=600, seed=0):
    rng = np.random.default_rng(seed)
    x, z, e, u = rng.normal(size=(4, n))
    u = 0.5 * e + np.sqrt(0.75) * u
    y = {
        "normal": 3 + x + e,
        "log-normal": np.exp(1 + 0.5 * x + 0.7 * e),
        "squares": (6 + x + e) ** 2,
        "both signs": named_transform("yeo-johnson", 0.4).inverse(0.5 + x + e),
    }[kind]
    return np.column_stack([x, z]), np.where(x + z + u > -0.5, y, np.nan)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("normal", None), ("log-normal", "log"), ("squares", "sqrt"), ("both signs", "yeo-johnson")],
)
def test_held_out_rows_choose_the_scale_of_the_simulation(kind, expected):
    chosen = []
    for seed in range(10):
        X, y = table(kind, seed=seed)
        seen = ~np.isnan(y)
        design = np.column_stack([np.ones(seen.sum()), X[seen]])
        chosen.append(choose_scale(y[seen], design, np.ones(seen.sum())))
    assert chosen.count(expected) >= 9


@pytest.mark.parametrize("kind", ["normal", "log-normal"])
def test_auto_in_the_estimators(kind):
    X, y = table(kind)
    model = hk.HeckmanRegressor([1], method="ml", target_transform="auto").fit(X, y)
    plain = hk.HeckmanRegressor(
        [1], method="ml", target_transform=None if kind == "normal" else "log"
    ).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    assert model.scale_ == ("y" if kind == "normal" else "log(y)")
    assert f"\n{model.scale_}:\n" in model.result_.summary()
    other = hk.HeckmanRegressor([1], method="ml").fit(X, y)
    if kind == "log-normal":  # the likelihood is that of y, with the slope of the log
        assert model.log_likelihood(X, y) > other.log_likelihood(X, y) + 0.1


@pytest.mark.parametrize("scale", ["log1p", "sqrt", "yeo-johnson", "auto"])
def test_a_model_on_any_named_scale_is_saved(scale, tmp_path):
    X, y = table("log-normal", 200)
    model = hk.HeckmanRegressor([1], method="ml", target_transform=scale).fit(X, y)
    model.save(tmp_path / "m")
    loaded = hk.load(tmp_path / "m")
    assert (loaded.scale_, loaded.target_transform) == (model.scale_, scale)
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_identify_on_another_scale():
    X, y = table("log-normal")
    for scale in ("log", "auto"):
        found = hk.identify(X, y, instruments=[1], target_transform=scale)
        expected = hk.identify(X, np.log(y), instruments=[1])
        assert found.evidence == expected.evidence | {"scale": "log(y)"}


@pytest.mark.parametrize("change", [{"parameter": 5.0}, {"name": "log"}, {"name": "exec"}])
def test_a_file_with_an_impossible_scale_is_refused(change, tmp_path):
    X, y = table("log-normal", 200)
    model = hk.HeckmanRegressor([1], method="ml", target_transform="yeo-johnson").fit(X, y)
    model.save(tmp_path / "m")
    content, tensors = read_content(tmp_path / "m")
    content["fitted"]["transform_"]["fields"] |= change
    write_content(tmp_path / "m", content, tensors)
    with pytest.raises(hk.DataError, match=r"a scale '.*' with the parameter"):
        hk.load(tmp_path / "m")
