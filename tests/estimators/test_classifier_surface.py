"""The interface of the classifier: labels, frames, weights, searches and errors."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import heckesel as hk

DRAW = hk.datasets.make_loans(700, rho=-0.5, seed=3)
X, Y = DRAW.frame.drop(columns="default"), DRAW.frame["default"]
GRANTED = Y.notna().to_numpy()
PLAIN = hk.HeckmanClassifier(["leniency"], method="ml")
MODEL = clone(PLAIN).fit(X, Y)


@pytest.mark.parametrize(("zero", "one"), [(False, True), ("bad", "good"), (0, 1), (1, 2)], ids=str)
def test_labels_may_be_numbers_booleans_or_strings(zero, one):
    labels = pd.Series(
        [None if np.isnan(code) else (zero, one)[int(code)] for code in Y],
        dtype=object,
        name="paid",
    )
    model = clone(PLAIN).fit(X, labels)
    assert model.classes_.tolist() == [zero, one]
    np.testing.assert_allclose(model.coef_, MODEL.coef_, rtol=1e-12)
    for target in ("population", "selected", "unselected"):
        second = model.predict_proba(X, target)[:, 1] > 0.5
        assert (model.predict(X, target=target) == model.classes_[second.astype(int)]).all()
    predicted = model.predict(X)
    assert set(predicted) <= {zero, one}
    assert model.score(X, labels) == MODEL.score(X, Y)
    assert model.log_likelihood(X, labels) == pytest.approx(MODEL.log_likelihood(X, Y))


def test_pandas_and_polars_keep_their_missing_labels():
    nullable = Y.astype("boolean")
    assert clone(PLAIN).fit(X, nullable).rho_ == MODEL.rho_
    text = Y.map({0.0: "repaid", 1.0: "default"}).astype("category")
    assert clone(PLAIN).fit(X, text).rho_ == pytest.approx(-MODEL.rho_, rel=1e-6)  # default first
    frame = pl.DataFrame({name: X[name].to_numpy() for name in X})
    column = pl.Series("default", [None if np.isnan(value) else int(value) for value in Y])
    model = clone(PLAIN).fit(frame, column)
    assert isinstance(model.predict(frame), np.ndarray)
    np.testing.assert_allclose(model.predict_proba(frame), MODEL.predict_proba(X), rtol=1e-10)


def test_the_population_needs_no_instruments():
    without = X.drop(columns="leniency")
    np.testing.assert_array_equal(MODEL.predict_proba(without), MODEL.predict_proba(X))
    with pytest.raises(hk.DataError, match="lacks the instrument 'leniency'"):
        MODEL.predict_proba(without, "unselected")
    with pytest.raises(hk.DataError, match="target must be"):
        MODEL.predict_proba(X, "everyone")


def test_a_mask_hides_the_labels_of_the_unselected():
    filled = Y.fillna(0.0)
    model = clone(PLAIN).fit(X, filled, selected=GRANTED)
    np.testing.assert_array_equal(model.coef_, MODEL.coef_)
    assert model.score(X, filled, selected=GRANTED) == MODEL.score(X, Y)
    assert model.log_likelihood(X, filled, selected=GRANTED) == MODEL.log_likelihood(X, Y)
    odd = filled.where(GRANTED, 7.0)  # not a label, and not looked at
    np.testing.assert_array_equal(clone(PLAIN).fit(X, odd, selected=GRANTED).coef_, MODEL.coef_)


def test_the_score_is_the_accuracy_given_selection():
    rng = np.random.default_rng(4)
    x, z, u, v = rng.standard_normal((4, 400))
    table = pd.DataFrame({"x": x, "z": z})
    y = np.where(z + u > 0, x + 0.8 * u + 0.6 * v > 0, np.nan)
    model, seen = hk.HeckmanClassifier(["z"], method="ml").fit(table, y), ~np.isnan(y)
    accuracy = {
        target: np.mean((model.predict_proba(table, target)[:, 1] > 0.5)[seen] == y[seen])
        for target in ("selected", "population")
    }
    assert model.score(table, y) == accuracy["selected"] != accuracy["population"]


def test_the_log_likelihood_of_the_fit_is_that_of_its_data():
    assert MODEL.log_likelihood(X, Y) * 700 == pytest.approx(MODEL.result_.loglik, rel=1e-10)
    weight = np.arange(700) % 3
    assert MODEL.log_likelihood(X, Y, sample_weight=weight) == pytest.approx(
        MODEL.log_likelihood(X.iloc[np.repeat(np.arange(700), weight)], Y.repeat(weight)), rel=1e-10
    )


def test_a_weight_of_two_equals_the_row_twice():
    weight = np.random.default_rng(0).integers(0, 3, 700)
    rows = np.repeat(np.arange(700), weight)
    weighted = clone(PLAIN).fit(X, Y, sample_weight=weight)
    repeated = clone(PLAIN).fit(X.iloc[rows], Y.iloc[rows])
    np.testing.assert_allclose(weighted.result_.params, repeated.result_.params, rtol=1e-6)
    np.testing.assert_allclose(weighted.result_.se, repeated.result_.se, rtol=1e-6)
    assert weighted.result_.n == len(rows)
    half = clone(PLAIN).fit(X, Y, sample_weight=weight / 2).result_
    assert (half.weight_kind, half.covariance) == ("probability", "robust")


def test_without_an_instrument_it_warns():
    with pytest.warns(hk.IdentificationWarning, match="the likelihood rejects no rho between"):
        model = hk.HeckmanClassifier(method="ml").fit(X.drop(columns="leniency"), Y)
    assert model.identification_.verdict == "mostly prior"
    found = model.identification_.evidence
    assert found["rho_low"] < -0.5 < 0.5 < found["rho_high"]


def test_a_fit_at_the_boundary_warns_and_still_predicts():
    rng = np.random.default_rng(2)
    x, z, u = rng.standard_normal((3, 500))
    table = pd.DataFrame({"x": x, "z": z})
    y = np.where(0.3 * x + z + u > 0, x + u > 0, np.nan)  # the two errors are one
    model = hk.HeckmanClassifier(["z"], method="ml").fit(table, y)
    assert model.result_.status == "boundary"
    assert model.rho_ == pytest.approx(1.0, abs=1e-4)
    assert model.result_.se.isna().all()
    assert np.isfinite(model.predict_proba(table, "unselected")).all()
    interval = model.predict_proba_interval(table)  # over all rho that the data allow
    robust = hk.HeckmanClassifier(["z"], covariance="robust", method="ml").fit(table, y)
    with pytest.warns(hk.IdentificationWarning, match="treat rho as known"):
        given_rho = robust.predict_proba_interval(table)
    assert (given_rho[:, 0] < given_rho[:, 1]).all()
    assert np.diff(interval, axis=1).mean() > np.diff(given_rho, axis=1).mean()
    assert np.isfinite(model.log_likelihood(table, y))
    assert "nan" in model.result_.summary()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda y: y * 0, "has one class only, .*0.0.*, among the"),
        (lambda y: y + X.debt.round(1), "Unknown label type"),
        (lambda y: y.where(Y.index % 5 > 0, y + 3), "Only binary classification .* 4 classes"),
        (lambda y: y * np.nan, "missing in all 700 rows"),
        (lambda y: y.astype(object).where(Y.index % 2 > 0, "a"), "mixes strings with other labels"),
        (lambda y: np.column_stack([y, y]), "one column of labels"),
    ],
)
def test_labels_other_than_two_classes_are_refused(labels, message):
    with pytest.raises(hk.DataError, match=message):
        clone(PLAIN).fit(X, labels(Y))


def test_perfect_prediction_is_named_before_the_fit():
    leak = X.assign(late=np.where(Y == 1, 1.0, 0.0))
    with pytest.raises(hk.DataError, match=r"'late' predicts selection perfectly"):
        clone(PLAIN).fit(leak, Y)  # a default is known of the granted alone
    noise = np.random.default_rng(0).standard_normal(700)
    pair = X.assign(a=noise + np.where(DRAW.truth.y == 1, 1.0, -1.0), b=noise)
    message = r"'a', 'b'.* together predict the outcome 'default'"
    with pytest.warns(hk.IdentificationWarning, match=message):
        assert clone(PLAIN).fit(pair, Y).result_.status == "separated"
