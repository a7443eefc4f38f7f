"""`average` and `margins` of estimators: predictions, coverage, saved models and real people."""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import heckesel as hk

SMALL = hk.Networks(hidden=(8,), n_members=10, epochs=30)
DEEP = {
    "two-step": {"method": "two-step"},
    "joint": {"method": "joint"},
    "two-step of logs": {"method": "two-step", "target_transform": "log"},
}


def table(n=400, seed=1):
    rng = np.random.default_rng(seed)
    x, z, u, v = rng.standard_normal((4, n))
    kind = rng.choice(["a", "b"], n)
    flag = rng.integers(0, 2, n)
    s = 0.3 + 0.5 * x + z + u > 0
    y = 9 + x + 0.5 * (kind == "b") + 0.3 * flag + 0.6 * u + 0.8 * v
    columns = {"x": x, "kind": kind, "flag": flag, "z": z}
    X = pd.DataFrame(columns).assign(place=rng.choice(["n", "s"], n))
    return X, pd.Series(np.where(s, y, np.nan), name="y")


X, Y = table()
COLUMNS = ["x", "kind", "flag", "z"]
ROWS = X.head(40)


def fitted(model, y=Y, columns=X[COLUMNS]):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(columns, y)


@pytest.fixture(scope="module", params=[*DEEP, "linear", "linear of logs", "ensemble"])
def model(request):
    name = request.param
    if name in DEEP:
        return fitted(hk.DeepHeckmanRegressor(["z"], networks=SMALL, **DEEP[name]))
    if name == "ensemble":
        return fitted(hk.DeepEnsembleRegressor(["z"], networks=SMALL))
    logs = {"method": "ml", "target_transform": "log"} if name == "linear of logs" else {}
    return fitted(hk.HeckmanRegressor(["z"], **logs))


@pytest.fixture(scope="module")
def classifier():
    label = Y.map(lambda y: None if np.isnan(y) else ("high" if y > 9.3 else "low")).astype(object)
    return fitted(hk.HeckmanClassifier(["z"], method="ml"), label)


@pytest.mark.parametrize("target", ["population", "unselected"])
def test_averages_are_means_of_predictions(model, target):
    """A linear fit of logs is evaluated at its estimates, where predictions average over them."""
    found = model.average(ROWS, target, by="place")
    groups = pd.Series(model.predict(ROWS, target=target)).groupby(ROWS["place"])
    on_estimates = isinstance(model, hk.HeckmanRegressor) and model.transform_ is not None
    np.testing.assert_allclose(found["mean"], groups.mean(), rtol=0.01 if on_estimates else 1e-9)
    np.testing.assert_array_equal(found["n"], groups.size())
    assert (found["low"] < found["mean"]).all()
    assert (found["mean"] < found["high"]).all()
    assert found.index.name == "place"
    assert list(found.index) == ["n", "s"]


@pytest.mark.parametrize("target", ["population", "unselected"])
def test_effects_are_differences_of_predictions(model, target):
    found = model.margins(ROWS, target, at={"kind": "b"}, by="place")
    held = ROWS.assign(kind="b")
    up, down = (model.predict(held.assign(flag=flag), target=target) for flag in (1, 0))
    expected = pd.Series(up - down).groupby(ROWS["place"]).mean()
    ours = found.xs("flag[1]", level="variable").droplevel(0)["effect"]
    is_linear = isinstance(model, hk.HeckmanRegressor)
    np.testing.assert_allclose(ours, expected, rtol=0.02 if is_linear else 1e-8, atol=1e-9)
    up, down = (
        model.predict(held.assign(x=ROWS["x"] + move), target=target) for move in (1e-3, -1e-3)
    )
    slope = pd.Series((up - down) / 2e-3).groupby(ROWS["place"]).mean()
    ours = found.xs("x", level="variable").droplevel(0)["effect"]
    np.testing.assert_allclose(ours, slope, rtol=0.03)  # ReLU-like kinks within a step
    assert {"kind[b]", "x", "flag[1]"} <= set(found.index.get_level_values("variable"))


def test_classifiers_average_probabilities(classifier):
    for target in ("population", "unselected"):
        found = classifier.average(ROWS, target, by="place")
        p = pd.Series(classifier.predict_proba(ROWS, target)[:, 1]).groupby(ROWS["place"])
        np.testing.assert_allclose(found["mean"], p.mean(), rtol=1e-9)
        assert (found["low"] > 0).all()
        assert (found["high"] < 1).all()
        effect = classifier.margins(ROWS, target).loc["kind[b]", "effect"]
        ends = [classifier.predict_proba(ROWS.assign(kind=k), target)[:, 1].mean() for k in "ba"]
        assert effect == pytest.approx(ends[0] - ends[1], rel=1e-8)


def test_the_probability_of_selection_has_effects(classifier):
    found = classifier.margins(X, "selection")
    assert list(found.index) == ["x", "kind[b]", "flag[1]", "z"]
    assert found.loc["z", "effect"] > 0.1
    ours = classifier.result_.margins("selection").loc["z"]
    np.testing.assert_allclose(found.loc["z"], ours, rtol=1e-6)


def test_the_probability_of_selection_under_networks_has_no_standard_errors():
    model = fitted(hk.DeepHeckmanRegressor(["z"], networks=SMALL))
    with pytest.warns(UserWarning, match="hk.probit computes those of a probit"):
        found = model.margins(ROWS, "selection")
    assert found["se"].isna().all()
    assert found.loc["z", "effect"] > 0.1


def test_members_without_folds_have_no_standard_error():
    model = fitted(hk.DeepHeckmanRegressor(["z"], networks=clone(SMALL).set_params(folds=None)))
    with pytest.warns(UserWarning, match=r"refit with networks=hk.Networks\(folds=5\)"):
        found = model.average(ROWS)
    assert found.loc["all", "mean"] == pytest.approx(model.predict(ROWS).mean())
    assert found[["se", "low", "high"]].isna().all(axis=None)


def test_arrays_and_other_columns(model):
    assert list(model.average(ROWS[COLUMNS], by="kind").index) == ["a", "b"]
    with pytest.raises(hk.DataError, match="by names 'town'"):
        model.average(ROWS, by="town")
    with pytest.raises(hk.DataError, match="level must lie between 0 and 1"):
        model.average(ROWS, level=90)
    with pytest.raises(hk.DataError, match="X lacks the column 'x'"):
        model.margins(ROWS.drop(columns="x"))
    Z = X[["x", "z"]].to_numpy()
    plain = hk.HeckmanRegressor([1], method="two-step").fit(Z, Y)
    assert list(plain.margins(Z, "selection").index) == ["x0", "x1"]


DATA = Path(os.environ.get("HECKESEL_DATA", "nowhere")) / "thornton" / "thornton_hiv.csv"


@pytest.mark.skipif(not DATA.exists(), reason="needs the data of Thornton (2008)")
@pytest.mark.parametrize("outcome", ["educ2004", "age", "hiv2004"])
def test_hidden_averages_of_real_people_are_within_two_and_a_half_standard_errors(outcome):
    """A randomised instrument and known truth. The standard error is that of the expected mean;
    the noise of the outcomes that were in fact hidden adds to it."""
    x = ["male", "rumphi", "balaka", "simaverage", "distvct"]
    people = pd.read_csv(DATA).replace({"hiv2004": {-1: np.nan}})
    people = people.dropna(subset=["got", "any", "tinc", *x, outcome])
    features, hidden = people[[*x, "any", "tinc"]], people["got"] == 0
    model = hk.HeckmanRegressor(["any", "tinc"]).fit(features, people[outcome].mask(hidden))
    truth = people[outcome][hidden]
    found = model.average(features[hidden], "unselected").loc["all"]
    assert found["n"] == hidden.sum()
    error = np.hypot(found["se"], truth.std() / np.sqrt(len(truth)))
    assert abs(found["mean"] - truth.mean()) < 2.5 * error
    by_sex = model.average(features[hidden], "unselected", by="male")
    share = by_sex["n"] / by_sex["n"].sum()
    assert (share * by_sex["mean"]).sum() == pytest.approx(found["mean"])
