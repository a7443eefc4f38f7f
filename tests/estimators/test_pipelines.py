"""Pipelines, searches and polars frames, as users of scikit-learn and polars write them."""

import numpy as np
import pandas as pd
import pytest
from sklearn import clone, config_context
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import heckesel as hk

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = 200
SMALL = hk.Networks(n_members=2, folds=2, hidden=(4,), epochs=3, device="cpu")
MODELS = {
    "linear": hk.HeckmanRegressor([-1], method="ml"),
    "linear ml": hk.HeckmanRegressor([-1], method="ml"),
    "two-step": hk.DeepHeckmanRegressor([-1], networks=SMALL),
    "joint": hk.DeepHeckmanRegressor([-1], method="joint", networks=SMALL),
    "ensemble": hk.DeepEnsembleRegressor([-1], networks=SMALL),
    "classes": hk.HeckmanClassifier([-1], method="ml"),
}


def table():
    frame = hk.datasets.make_controlled(ROWS, rho=0.5, alpha=1.5, seed=3).frame[["x", "z", "y"]]
    frame = frame.assign(town=np.array(list("abcd"))[np.arange(ROWS) % 4])
    return frame[["town", "x", "z"]], frame["y"]


def encoder(**options):
    columns = [("town", OneHotEncoder(**options), ["town"]), ("rest", "passthrough", ["x", "z"])]
    return ColumnTransformer(columns, sparse_threshold=1.0, verbose_feature_names_out=False)


def outcome_for(model, y):
    return (y > 0).astype(float).where(y.notna()) if is_classifier(model) else y


def test_columns_that_add_up_to_one_are_refused_with_both_ways_out():
    X, y = table()
    pipeline = make_pipeline(encoder(), hk.HeckmanRegressor([-1], method="ml"))
    with pytest.raises(hk.DataError, match=r"drop one of them, or set on_problem='fix'$"):
        pipeline.fit(X, y)
    first = make_pipeline(encoder(drop="first"), hk.HeckmanRegressor([-1], method="ml")).fit(X, y)
    fixed = make_pipeline(encoder(), hk.HeckmanRegressor([-1], method="ml", on_problem="fix"))
    np.testing.assert_allclose(fixed.fit(X, y).predict(X), first.predict(X), rtol=1e-8)


def routed():
    model = hk.HeckmanRegressor([-1], method="ml")
    model.set_fit_request(selected=True, sample_weight=True, groups=True)
    model.set_score_request(selected=True, sample_weight=True)
    model.set_predict_request(target=True, return_std=True)
    return make_pipeline(encoder(drop="first"), model)


def test_masks_weights_and_groups_pass_through_pipelines_and_searches():
    X, y = table()
    sides = {"selected": y.notna().to_numpy(), "groups": np.arange(ROWS) // 4}
    sides["sample_weight"] = 1.0 + np.arange(ROWS) % 2
    filled, folds = y.fillna(99.0), GroupKFold(3)
    with config_context(enable_metadata_routing=True):
        fitted = routed().fit(X, filled, **sides)
        Z = fitted[:-1].transform(X)
        alone = hk.HeckmanRegressor([-1], method="ml").fit(Z, y, **sides)
        pd.testing.assert_frame_equal(fitted[-1].result_.to_frame(), alone.result_.to_frame())
        assert fitted[-1].result_.covariance == "cluster"
        for target in ("population", "unselected"):
            found = fitted.predict(X, target=target, return_std=True)
            np.testing.assert_array_equal(found, alone.predict(Z, True, target=target))
        scores = cross_validate(routed(), X, filled, cv=folds, params=sides)["test_score"]
        by_hand = []
        for train, test in folds.split(X, groups=sides["groups"]):
            own, held = ({k: v[rows] for k, v in sides.items()} for rows in (train, test))
            held.pop("groups")
            model = routed().fit(X.iloc[train], filled.iloc[train], **own)[-1]
            by_hand.append(model.score(Z[test], y.iloc[test], **held))
        np.testing.assert_allclose(scores, by_hand, rtol=1e-9)
        scorer = clone(hk.joint_log_likelihood_scorer)
        scorer.set_score_request(selected=True, sample_weight=True)
        search = GridSearchCV(
            routed(), {"heckmanregressor__method": ["ml", "two-step"]}, cv=folds, scoring=scorer
        )
        found = search.fit(X, filled, **sides).cv_results_["mean_test_score"]
    assert np.isfinite(found).all()


def test_polars_in_is_polars_out():
    polars = pytest.importorskip("polars")
    X, y = table()
    frame, outcome = polars.from_pandas(X), polars.Series("y", y.to_numpy())
    model = hk.HeckmanRegressor(["z"], method="ml").fit(frame, outcome)
    expected = hk.HeckmanRegressor(["z"], method="ml").fit(X, y)
    mean, std = model.predict(frame, return_std=True)
    assert type(mean) is type(std) is np.ndarray
    np.testing.assert_array_equal(mean, expected.predict(X))
    predictive = model.predict_distribution(frame)
    found = predictive.to_frame(0.8)
    assert isinstance(found, polars.DataFrame)
    shown = expected.predict_distribution(X).to_frame(0.8)
    pd.testing.assert_frame_equal(found.to_pandas(), shown.reset_index(drop=True))


NETWORKS = ["two-step", "joint", "ensemble"]


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_that_did_not_converge_warn(name):
    X, y = table()
    model = clone(MODELS[name])
    with pytest.warns(ConvergenceWarning, match=r"3 epochs.*; raise epochs"):
        model.fit(X[["x", "z"]].to_numpy(), outcome_for(model, y))
