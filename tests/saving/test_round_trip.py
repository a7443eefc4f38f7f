"""Saved models: the same to the last bit, in one file without rows and without code."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import heckesel as hk
from heckesel.predictive import TARGETS
from tests.saving import small_classifiers
from tests.small_models import MODELS, N, X, Y, fitted


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.heckesel"


def said(model, y):
    """Everything a model says about X, as arrays."""
    found = {"mean": model.predict(X), "std": model.predict(X, return_std=True)[1]}
    targets = ("population",) if getattr(model, "errors", None) == "t" else TARGETS
    for target in targets:
        predictive = model.predict_distribution(X, target)
        found[f"{target} mean"] = predictive.mean
        found[f"{target} epistemic"] = predictive.epistemic
        found[f"{target} interval"] = model.predict_interval(X, 0.8, target)
    if len(targets) > 1:
        found["log-likelihood"] = model.log_likelihood(X, y)
        found["score"] = model.score(X, y)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_predicts_bit_identically(name, path):
    model, y = fitted(name)
    model.save(path)
    loaded = hk.load(path)
    assert type(loaded) is type(model)
    assert repr(loaded) == repr(model)
    assert repr(loaded.identification_) == repr(model.identification_)
    assert loaded.identification_.evidence == model.identification_.evidence
    assert list(loaded.feature_names_in_) == list(X.columns)
    before, after = said(model, y), said(loaded, y)
    assert before.keys() == after.keys()
    for what in before:
        np.testing.assert_array_equal(before[what], after[what], err_msg=what)
    for name in ("rho_", "sigma_", "info_", "intercept_"):
        if hasattr(model, name):
            assert np.all(getattr(loaded, name) == getattr(model, name))


@pytest.mark.filterwarnings("ignore::heckesel.errors.IdentificationWarning")
@pytest.mark.parametrize("name", small_classifiers.CLASSIFIERS)
def test_a_loaded_classifier_predicts_bit_identically(name, path):
    model, columns, y = small_classifiers.fitted(name)
    model.save(path)
    loaded = hk.load(path)
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.result_.summary() == model.result_.summary()
    assert loaded.log_likelihood(columns, y) == model.log_likelihood(columns, y)
    nothing = model.identification_.verdict == "nothing to correct"
    for target in TARGETS[:1] if nothing else TARGETS:
        for asked in ("predict_proba", "predict_proba_interval"):
            before, after = (
                getattr(each, asked)(columns, target=target) for each in (model, loaded)
            )
            np.testing.assert_array_equal(after, before)


def test_a_model_of_logs_is_saved_wherever_its_columns_lie(path):
    """The slope over years puts the logarithm at 2,000 in the year 0."""
    rng = np.random.default_rng(0)
    z, u = rng.normal(size=(2, 400))
    table = pd.DataFrame({"year": rng.integers(2000, 2010, 400) * 1.0, "z": z})
    y = pd.Series(np.exp(2005 - table["year"] + u)).where(z + u > 0)
    model = hk.HeckmanRegressor(["z"], method="ml", target_transform="log").fit(table, y)
    model.save(path)
    np.testing.assert_array_equal(hk.load(path).predict(table), model.predict(table))


@pytest.mark.parametrize("name", ["linear", "linear two-step"])
def test_a_loaded_linear_model_keeps_its_table(name, path):
    model, _ = fitted(name)
    model.save(path)
    loaded = hk.load(path)
    assert loaded.result_.summary() == model.result_.summary()
    np.testing.assert_array_equal(loaded.result_.to_frame(), model.result_.to_frame())
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert [mode.rho for mode in loaded.result_.modes] == [m.rho for m in model.result_.modes]
    assert type(loaded.result_) is type(model.result_)
    assert repr(loaded.result_) == repr(model.result_)
    for call in (loaded.result_.average, loaded.result_.margins, loaded.result_.predict):
        with pytest.raises(hk.DataError, match="the file of a saved model"):
            call()
    for what in ("average", "margins"):
        found, expected = (getattr(each, what)(X) for each in (loaded, model))
        pd.testing.assert_frame_equal(pd.DataFrame(found), pd.DataFrame(expected))


def test_a_fit_at_the_boundary_and_one_without_selection_are_saved_too(path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    u = rng.normal(size=60)
    s = x[:, 0] + x[:, 1] + u > 0
    perfect = hk.HeckmanRegressor([1], method="ml").fit(x, np.where(s, 1 + x[:, 0] + 2 * u, np.nan))
    assert perfect.result_.status == "boundary"
    whole = hk.HeckmanRegressor(method="ml").fit(x, 1 + x[:, 0] + u)
    deep = hk.DeepHeckmanRegressor(networks=hk.Networks(epochs=3, n_members=1)).fit(x, x[:, 0] + u)
    for model, target in ((perfect, "unselected"), (whole, "population"), (deep, "selected")):
        model.save(path)
        loaded = hk.load(path)
        np.testing.assert_array_equal(
            loaded.predict_interval(x, target=target), model.predict_interval(x, target=target)
        )
        assert not hasattr(loaded, "feature_names_in_")


@pytest.mark.parametrize("name", ["linear", "two-step", "ensemble"])
def test_no_row_of_the_data_is_in_the_file(name, path):
    from safetensors.numpy import load_file

    model, _ = fitted(name)
    model.save(path)
    assert all(N not in tensor.shape for tensor in load_file(path).values())


# What cannot be saved


@pytest.mark.parametrize(
    ("model", "fragment"),
    [
        (
            hk.HeckmanRegressor(["z"], target_transform=(np.arcsinh, np.sinh), method="ml"),
            "target_transform.0 is a function, which cannot be saved",
        ),
        (
            hk.DeepEnsembleRegressor(
                networks=hk.Networks(epochs=2, n_members=2), random_state=np.random.RandomState(0)
            ),
            "random_state is a RandomState",
        ),
    ],
)
def test_functions_and_generators_are_refused_and_leave_no_file(model, fragment, path):
    model.fit(X[["x", "z"]], Y)
    with pytest.raises(hk.DataError, match=fragment):
        model.save(path)
    assert not list(path.parent.iterdir())


def test_a_model_that_was_not_fitted_is_not_saved(path):
    with pytest.raises(NotFittedError):
        hk.HeckmanRegressor(method="ml").save(path)


def test_a_subclass_is_not_saved_as_something_else(path):
    class Own(hk.HeckmanRegressor):
        pass

    with pytest.raises(hk.DataError, match="a Own cannot be saved"):
        Own(["z"]).fit(X[["x", "z"]], Y).save(path)


# What is needed


def test_a_linear_model_needs_no_torch(path):
    fitted("linear")[0].save(path)
    code = (
        "import sys, heckesel as hk; m = hk.load(sys.argv[1]); m.save(sys.argv[1]); "
        "print('torch' in sys.modules, m.rho_)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    ).stdout
    assert printed.split() == ["False", str(fitted("linear")[0].rho_)]
