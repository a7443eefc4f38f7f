"""Gradient boosting of scikit-learn as arrays: the same digits, and no index that leads outside."""

import importlib.util

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import heckesel as hk
from heckesel.saving import load, read_content, save, write_content

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(400, 2)), RNG.integers(0, 6, 400), RNG.integers(3, 9, 400)])
X[::7, 1], X[::11, 2] = np.nan, np.nan
Y = np.exp(X[:, 0] / 2 + (X[:, 3] == 5) + RNG.normal(size=400) / 3)
NEW = np.column_stack([RNG.normal(size=(50, 2)) * 3, RNG.integers(0, 9, 50), np.full(50, np.nan)])
NEW[:, 3] = RNG.integers(0, 12, 50)
SMALL = {"max_iter": 12, "max_leaf_nodes": 6, "random_state": 0}
REGRESSORS = {
    "squares": HistGradientBoostingRegressor(**SMALL),
    "quantile": HistGradientBoostingRegressor(loss="quantile", quantile=0.3, **SMALL),
    "counts": HistGradientBoostingRegressor(loss="poisson", monotonic_cst=[1, 0, 0, 0], **SMALL),
    "stopped early": HistGradientBoostingRegressor(early_stopping=True, **SMALL),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_loaded_regressor_predicts_bit_identically(name, weighted, path):
    model = sklearn.clone(REGRESSORS[name]).fit(X, Y, RNG.random(400) if weighted else None)
    save(model, path)
    loaded = load(path)
    assert type(loaded) is type(model)
    assert str(loaded.get_params()) == str(model.get_params())
    for rows in (X, NEW):
        np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
    stages = zip(loaded.staged_predict(NEW), model.staged_predict(NEW), strict=True)
    assert all((ours == theirs).all() for ours, theirs in stages)
    assert loaded.n_iter_ == model.n_iter_
    assert sklearn.clone(loaded).fit(X, Y).n_features_in_ == 4


@pytest.mark.parametrize("labels", [2, 3])
def test_a_loaded_classifier_predicts_bit_identically(labels, path):
    classes = np.array(["no", "perhaps", "yes"])[np.digitize(Y, [1.0, 3.0][: labels - 1])]
    model = HistGradientBoostingClassifier(**SMALL).fit(X, classes)
    save(model, path)
    loaded = load(path)
    np.testing.assert_array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))


def test_a_model_with_categories_is_left_to_skops(path):
    model = HistGradientBoostingRegressor(categorical_features=[2], **SMALL).fit(X, Y)
    with pytest.raises(hk.HeckeselError, match="cannot be saved"):
        save(model, path)


def test_another_version_of_scikit_learn_is_named(path, monkeypatch):
    save(REGRESSORS["squares"].fit(X, Y), path)
    monkeypatch.setattr(sklearn, "__version__", "99.1")
    with pytest.raises(hk.DataError, match=r"boosting of scikit-learn .*, and this is 99\.1"):
        load(path)


def at(field, where, value):
    def change(state, tensors):
        array = tensors[state["nodes"][field]["$tensor"]]
        inner = np.flatnonzero(tensors[state["nodes"]["is_leaf"]["$tensor"]] == 0)
        array[inner[where]] = value

    return change


def of(*names, value):
    def change(state, tensors):
        for name in names[:-1]:
            state = state[name]
        if callable(value):
            tensor = state[names[-1]]["$tensor"]
            tensors[tensor] = value(tensors[tensor])
        else:
            state[names[-1]] = value

    return change


DECEITS = {
    "a child beyond": at("left", 0, 10_000),
    "a child that is its parent": at("left", 0, 0),
    "a column beyond": at("feature_idx", 1, 4),
    "a category": at("is_categorical", 0, 1),
    "more nodes": of("sizes", value=lambda sizes: sizes + 1),
    "a node in pieces": of("sizes", value=lambda sizes: sizes + np.resize([1, -1], len(sizes))),
    "fewer columns": of("fitted", "n_features_in_", value=2),
    "no baseline": of("baseline", value=None),
    "a parameter": of("parameters", value={"nothing": 1}),
    "a leaf without a number": of("nodes", "value", value=lambda found: found * np.nan),
    "two classes": of("fitted", "classes_", value={"$tuple": ["no", "yes"]}),
}


@pytest.mark.parametrize("name", DECEITS)
def test_trees_made_to_deceive_are_refused(name, path):
    save(REGRESSORS["squares"].fit(X, Y), path)
    content, tensors = read_content(path)
    DECEITS[name](content["state"], tensors)
    write_content(path, content, tensors)
    with pytest.raises(hk.DataError, match="model") as refused:
        load(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a pipeline"])
def test_a_learner_of_another_package_is_saved_with_skops_and_loaded_if_trusted(inside, path):
    learner = make_pipeline(StandardScaler(), Ridge()) if inside else Ridge()
    frame = hk.datasets.make_controlled(200, rho=0.5, alpha=1.0, seed=0).frame
    table = frame[["x", "z"]]
    model = hk.HeckmanRegressor(["z"], learner=learner).fit(table, frame["y"])
    if importlib.util.find_spec("skops") is None:
        with pytest.raises(hk.HeckeselError, match=r"needs skops: pip install 'heckesel\[skops\]'"):
            model.save(path)
        return
    model.save(path)
    kind = f"{type(learner).__module__}.{type(learner).__qualname__}"
    with pytest.raises(hk.DataError, match=rf"another package, {kind}; if you trust the file"):
        load(path)
    loaded = load(path, trusted=[kind])
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    assert repr(loaded) == repr(model)


class Own(Ridge):
    """Of no module that could be imported from elsewhere."""


def test_a_learner_defined_on_the_spot_is_refused(path):
    Own.__module__ = "__main__"
    frame = hk.datasets.make_controlled(200, rho=0.5, alpha=1.0, seed=0).frame
    model = hk.HeckmanRegressor(["z"], learner=Own()).fit(frame[["x", "z"]], frame["y"])
    with pytest.raises(hk.DataError, match="learner is a Own, which cannot be saved"):
        model.save(path)
    assert not path.exists()
