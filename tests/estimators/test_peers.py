"""What scikit-learn, MAPIE and notebooks do with an estimator, on one small table."""

import inspect

import numpy as np
import pytest
from scipy import sparse
from sklearn import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import heckesel as hk

pytestmark = pytest.mark.filterwarnings("ignore")
DRAW = hk.datasets.make_controlled(400, rho=0.5, alpha=1.5, seed=3).frame
X, Y = DRAW[["x", "z"]], DRAW["y"]
SEEN = Y.notna()
CLASSES = (Y > 0).astype(float).where(SEEN)
SMALL = hk.Networks(n_members=2, hidden=(4,), epochs=3, folds=None)
MODELS = {
    "auto": hk.HeckmanRegressor(["z"], learner="linear"),
    "ml": hk.HeckmanRegressor(["z"], method="ml"),
    "two-step": hk.HeckmanRegressor(["z"], method="two-step"),
    "profile": hk.HeckmanRegressor(["z"], method="profile"),
    "networks": hk.DeepHeckmanRegressor(["z"], networks=SMALL),
    "naive": hk.DeepEnsembleRegressor(["z"], networks=SMALL),
    "classes": hk.HeckmanClassifier(["z"], learner="linear"),
    "classes ml": hk.HeckmanClassifier(["z"], method="ml"),
}
POSITIONS = {"instruments": [1]}


def outcome_of(model):
    return CLASSES if hasattr(model, "predict_proba") else Y


@pytest.fixture(scope="module")
def fitted():
    return {name: clone(model).fit(X, outcome_of(model)) for name, model in MODELS.items()}


def tables():
    polars = pytest.importorskip("polars")
    yield "frame", X, Y, CLASSES
    yield "arrays", X.to_numpy(), Y.to_numpy(), CLASSES.to_numpy()
    yield "sparse", sparse.csr_array(X.to_numpy()), Y, CLASSES
    series = (polars.Series("y", each.to_numpy()) for each in (Y, CLASSES))
    yield "polars", polars.from_pandas(X), *series


@pytest.mark.parametrize("name", MODELS)
def test_every_prediction_is_an_array_whatever_goes_in(name):
    model, expected = clone(MODELS[name]), None
    for kind, table, y, classes in tables():
        if kind in ("arrays", "sparse"):
            model.set_params(**POSITIONS)
        own = clone(model).fit(table, classes if hasattr(model, "predict_proba") else y)
        model.set_params(instruments=["z"])
        calls = ["predict", "predict_proba", "predict_interval", "predict_proba_interval"]
        found = {call: getattr(own, call)(table) for call in calls if hasattr(own, call)}
        assert {type(each) for each in found.values()} == {np.ndarray}, kind
        assert {each.shape for each in found.values()} <= {(400,), (400, 2)}
        expected = expected or found
        for call, each in found.items():
            np.testing.assert_allclose(each, expected[call], rtol=1e-10, err_msg=kind)


@pytest.mark.parametrize("name", MODELS)
def test_a_summary_and_html_say_what_was_fitted(name, fitted):
    model = fitted[name]
    assert model.identification_.verdict in str(model.summary())
    shown = model._repr_mimebundle_()
    assert model.identification_.verdict in shown["text/html"]
    assert model.identification_.verdict in model._repr_html_()
    assert len(repr(model)) < 200
    assert model.identification_.verdict not in clone(model)._repr_html_()


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_predicts_and_summarises_the_same(name, fitted, tmp_path):
    model = fitted[name]
    model.save(tmp_path / "model.heckesel")
    loaded = hk.load(tmp_path / "model.heckesel")
    assert type(loaded) is type(model)
    assert loaded.get_params().keys() == model.get_params().keys()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    if hasattr(model, "predict_proba"):
        for target in ("population", "selected", "unselected"):
            before, after = (
                each.predict_proba_interval(X, 0.8, target) for each in (model, loaded)
            )
            np.testing.assert_array_equal(after, before)
    assert loaded.summary() == model.summary()
    assert loaded.average(X).equals(model.average(X))


def test_networks_alone_are_saved(tmp_path):
    model = clone(SMALL).fit(X[SEEN], Y[SEEN])
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(hk.load(tmp_path / "m").predict(X), model.predict(X))


def test_probabilities_are_calibrated_on_the_rows_with_a_class(fitted):
    model = fitted["classes"]
    prefit = CalibratedClassifierCV(FrozenEstimator(model)).fit(X[SEEN], CLASSES[SEEN])
    found = prefit.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    order = np.argsort(model.predict_proba(X)[:, 1])
    assert (np.diff(found[order, 1]) >= -1e-12).all()  # Platt's sigmoid keeps the order
    refit = CalibratedClassifierCV(MODELS["classes"], cv=3).fit(X[SEEN], CLASSES[SEEN])
    assert refit.predict_proba(X).shape == (400, 2)


@pytest.mark.parametrize("table", [X, X.to_numpy()], ids=["frame", "array"])
def test_mapie_conformalises_a_fitted_and_an_unfitted_model(table):
    regression = pytest.importorskip("mapie.regression")
    unfitted = clone(MODELS["auto"]).set_params(**POSITIONS)
    fitted, rows = clone(unfitted).fit(table, Y), SEEN.to_numpy()
    split = regression.SplitConformalRegressor(fitted, confidence_level=0.9, prefit=True)
    mean, ends = split.conformalize(table[rows], Y[rows]).predict_interval(table)
    np.testing.assert_array_equal(mean, fitted.predict(table))
    assert np.mean((ends[rows, 0, 0] <= Y[rows]) & (Y[rows] <= ends[rows, 1, 0])) >= 0.9
    cross = regression.CrossConformalRegressor(unfitted, confidence_level=0.9, cv=3)
    _, ends = cross.fit_conformalize(table[rows], Y[rows]).predict_interval(table)
    assert ends.shape == (400, 2, 1)


def test_mapie_makes_sets_of_classes(fitted):
    classification = pytest.importorskip("mapie.classification")
    model = fitted["classes"]
    split = classification.SplitConformalClassifier(model, confidence_level=0.9, prefit=True)
    split.conformalize(X[SEEN], CLASSES[SEEN].astype(int))
    classes, sets = split.predict_set(X)
    np.testing.assert_array_equal(classes, model.predict(X))
    assert sets.shape == (400, 2, 1)


def test_an_imputer_returns_the_frames_that_are_asked_for():
    table = X.assign(y=Y)
    imputer = hk.HeckmanImputer("y", instruments=["z"])
    for kind, library in (("pandas", "pandas"), ("polars", "polars")):
        pytest.importorskip(library)
        found = clone(imputer).set_output(transform=kind).fit_transform(table)
        assert type(found).__module__.partition(".")[0] == library
        assert list(found.columns) == ["x", "z", "y"]


class NoWeights(Ridge):
    def fit(self, X, y):
        return super().fit(X, y)


class Missing(Ridge):
    def predict(self, X):
        return np.full(len(X), np.nan)


class Failing(Ridge):
    def fit(self, X, y, sample_weight=None):
        raise RuntimeError("the disk is full")


class OneNumber(Ridge):
    def predict(self, X):
        return 0.0


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a pipeline"])
@pytest.mark.parametrize(
    ("learner", "reason"),
    [
        (NoWeights(), "does not take sample_weight"),
        (Missing(), "predicted values that are missing"),
        (Failing(), "the disk is full"),
        (OneNumber(), "not one per row"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_learner_that_cannot_be_used_is_named(learner, reason, inside):
    name = type(learner).__name__
    learner = make_pipeline(StandardScaler(), learner) if inside else learner
    model = hk.HeckmanRegressor(["z"], learner=learner)
    with pytest.raises(hk.DataError, match=rf"the learner {name}.*{reason}"):
        model.fit(X, Y, sample_weight=1.0 + np.arange(400) % 2)


def test_the_namespace_holds_public_names_alone():
    assert set(dir(hk)) == {*hk.__all__, "__version__"}


@pytest.mark.parametrize("kind", [*map(type, MODELS.values()), hk.Networks, hk.HeckmanImputer])
def test_no_estimator_has_more_than_fifteen_parameters(kind):
    assert len(inspect.signature(kind).parameters) <= 15
