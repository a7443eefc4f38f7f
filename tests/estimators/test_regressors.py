"""The common interface of the regressors: frames, pipelines, routing, missing x."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import heckesel as hk

SMALL = hk.Networks(n_members=2, hidden=(8,), epochs=30, device="cpu")
MODELS = {
    "ml": hk.HeckmanRegressor(["z"], method="ml"),
    "two-step": hk.HeckmanRegressor(["z"], method="two-step"),
    "deep": hk.DeepHeckmanRegressor(["z"], networks=SMALL),
    "ensemble": hk.DeepEnsembleRegressor(["z"], networks=SMALL),
}
LINEAR = MODELS["ml"]
DRAW = hk.datasets.make_controlled(400, rho=0.6, alpha=1.0, seed=0)
X, Y = DRAW.frame[["x", "z"]], DRAW.frame["y"]
each_model = pytest.mark.parametrize("name", MODELS)


def fitted(name, **changes):
    return clone(MODELS[name]).set_params(**changes).fit(X, Y)


@each_model
def test_all_regressors_have_the_same_methods(name):
    model = fitted(name)
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(X))
    assert mean.shape == std.shape == (400,)
    assert (std > 0).all()
    for target in ("population", "selected", "unselected"):
        mean, std = model.predict(X, return_std=True, target=target)
        np.testing.assert_array_equal(mean, model.predict_distribution(X, target).mean)
        np.testing.assert_array_equal(std, model.predict_distribution(X, target).std)
        np.testing.assert_array_equal(model.predict(X, target=target), mean)
        distribution = model.predict_distribution(X, target=target)
        interval = model.predict_interval(X, level=0.8, target=target)
        assert interval.shape == (400, 2)
        np.testing.assert_allclose(distribution.cdf(interval[:, 1]), 0.9, rtol=1e-8)
    assert 0 < model.score(X, Y) < 1
    assert np.isfinite(model.log_likelihood(X, Y))
    line = name in ("ml", "two-step")  # it lacks the curve of the outcome
    expected = "mostly prior" if line else "supported by the instrument"
    assert model.identification_.verdict == expected
    assert type(model).__name__ in repr(model)


def test_the_linear_regressor_equals_hk_heckman():
    table = hk.datasets.load_mroz()
    outcome = ["educ", "exper", "expersq"]
    excluded = ["nwifeinc", "age", "kidslt6", "kidsge6"]
    classic = hk.heckman(
        f"lwage ~ {' + '.join(outcome)}", f"~ {' + '.join(outcome + excluded)}", table
    )
    model = hk.HeckmanRegressor(excluded, method="ml").fit(
        table[outcome + excluded], table["lwage"]
    )
    expected = classic.params["outcome"]
    np.testing.assert_allclose(model.coef_, expected[outcome], rtol=1e-8)
    assert model.intercept_ == pytest.approx(expected["Intercept"], rel=1e-8)
    assert (model.rho_, model.sigma_) == pytest.approx((classic.rho, classic.sigma), rel=1e-8)
    np.testing.assert_allclose(
        model.result_.se["outcome"][outcome], classic.se["outcome"][outcome], rtol=1e-6
    )
    np.testing.assert_allclose(
        model.predict_distribution(table, "unselected").mean,
        classic.predict(table, target="unselected").mean,
        rtol=1e-8,
    )
    assert model.coef_names_ == tuple(outcome)


def test_a_fit_at_the_boundary_predicts_and_can_be_scored():
    rng = np.random.default_rng(0)
    x, z, u = rng.standard_normal((3, 300))
    table = pd.DataFrame({"x": x, "z": z})
    y = pd.Series(np.where(0.3 * x + z + u > 0, x + u, np.nan))  # the two errors are one
    model = clone(LINEAR).fit(table, y)
    assert model.result_.status == "boundary"
    mean, std = model.predict(table, return_std=True)
    np.testing.assert_allclose(mean, model.intercept_ + model.coef_[0] * x, rtol=1e-6, atol=1e-6)
    assert (std >= model.sigma_).all()
    with pytest.warns(hk.IdentificationWarning, match="given selection use 0.999"):
        assert np.isfinite(model.log_likelihood(table, y))


def test_a_two_step_rho_beyond_one_is_kept_and_the_nearest_possible_predicts():
    rng = np.random.default_rng(1)
    x, z, u = rng.standard_normal((3, 300))
    table = pd.DataFrame({"x": x, "z": z})
    y = pd.Series(np.where(0.3 * x + z + u > 0, x + u, np.nan))
    model = clone(MODELS["two-step"]).fit(table, y)
    assert model.rho_ > 1
    with pytest.warns(hk.IdentificationWarning, match="given selection use 0.999"):
        selected = model.predict_distribution(table, "selected")
    lam, index = 0.999 * model.sigma_, model.fitted_.index(table.to_numpy())
    mills = stats.norm.pdf(index) / stats.norm.cdf(index)
    np.testing.assert_allclose(selected.mean, model.predict(table) + lam * mills, rtol=1e-8)
    assert 0 < model.score(table, y) < 1


@each_model
def test_a_weight_of_two_equals_the_row_twice(name):
    # Rows are split into folds, so two copies of a row may be in different folds.
    changes = (
        {}
        if name in ("ml", "two-step")
        else {"networks__dtype": "float64", "networks__folds": None}
    )
    model = clone(MODELS[name]).set_params(**changes)
    weight = np.random.default_rng(0).integers(0, 3, 400)
    rows = np.repeat(np.arange(400), weight)
    weighted = clone(model).fit(X, Y, sample_weight=weight).predict(X)
    repeated = clone(model).fit(X.iloc[rows], Y.iloc[rows]).predict(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6)


def test_an_error_explains_that_a_pipeline_lost_the_column_names():
    with pytest.raises(hk.DataError, match=r"set_output\(transform='pandas'\) keeps names"):
        make_pipeline(StandardScaler(), clone(LINEAR)).fit(X, Y)
    transformer = ColumnTransformer([("scale", StandardScaler(), ["x"])], remainder="passthrough")
    transformer.set_output(transform="pandas")
    with pytest.raises(hk.DataError, match="'remainder__z', set verbose_feature_names_out=False"):
        make_pipeline(transformer, clone(LINEAR)).fit(X, Y)
    transformer.set_params(verbose_feature_names_out=False)
    model = make_pipeline(transformer, clone(LINEAR)).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), clone(LINEAR).fit(X, Y).predict(X), rtol=1e-8)


@each_model
def test_without_selection_a_fit_warns_and_is_a_plain_regression(name):
    with pytest.warns(hk.IdentificationWarning, match="every unit was selected"):
        model = clone(MODELS[name]).fit(X, DRAW.truth.y)
    assert model.identification_.verdict == "nothing to correct"
    np.testing.assert_array_equal(model.predict_distribution(X, "selected").mean, model.predict(X))
    with pytest.raises(hk.DataError, match="no unselected unit"):
        model.predict_distribution(X, "unselected")
    assert np.isfinite(model.log_likelihood(X, DRAW.truth.y))
    assert model.log_likelihood(X, Y) == -np.inf  # it holds the unselected for impossible


def with_gaps():
    rng = np.random.default_rng(1)
    table = X.assign(
        a=rng.standard_normal(400), b=rng.standard_normal(400), c=rng.choice(["u", "v"], 400)
    )
    gap, other = rng.random(400) < 0.2, rng.random(400) < 0.1
    table.loc[gap, ["a", "b"]] = np.nan  # missing together
    table.loc[other, "c"] = None
    table.loc[rng.random(400) < 0.1, "z"] = np.nan
    return table


@each_model
def test_missing_x_is_an_error_or_is_imputed_with_an_indicator(name):
    table = with_gaps()
    said = r"'a' is missing \(NaN\) in .* or fit with missing='indicator'"
    with pytest.raises(hk.DataError, match=said):
        clone(MODELS[name]).fit(table, Y)
    model = clone(MODELS[name]).set_params(missing="indicator").fit(table, Y)
    linear = name in ("ml", "two-step")
    levels = ["c[v]"] if linear else ["c[u]", "c[v]"]
    assert model.columns_.x_names == ("x", "a", "b", *levels, "a[missing]", "c[missing]")
    assert model.columns_.w_names[-2:] == ("c[missing]", "z[missing]")
    by_hand = table.assign(
        **{column: table[column].fillna(table[column].mean()) for column in ("a", "b", "z")}
    )
    np.testing.assert_allclose(
        model.columns_.w(table)[:, :3], by_hand[["x", "a", "b"]].to_numpy(), rtol=1e-12
    )
    np.testing.assert_array_equal(
        model.columns_.x(table)[:, -2:], table[["a", "c"]].isna().to_numpy()
    )
    assert np.isfinite(model.predict(table)).all()
    with pytest.raises(hk.DataError, match=r"'x' is missing .* had no missing value"):
        model.predict(table.assign(x=np.nan))


def test_missing_values_of_pandas_extension_types_are_missing():
    table, y = X.convert_dtypes(), Y.convert_dtypes()
    np.testing.assert_array_equal(
        clone(LINEAR).fit(table, y).predict(table), clone(LINEAR).fit(X, Y).predict(X)
    )
    gaps = with_gaps()
    model = clone(LINEAR).set_params(missing="indicator").fit(gaps, Y)
    again = clone(model).fit(gaps.convert_dtypes(), y)
    np.testing.assert_allclose(again.predict(gaps), model.predict(gaps), rtol=1e-12)


@pytest.mark.parametrize("name", ["deep", "ensemble"])
def test_a_prediction_does_not_depend_on_the_rows_beside_it(name):
    model = fitted(name, networks__hidden=(64, 64))
    alone = [model.predict(X.iloc[[row]]).item() for row in range(20)]
    np.testing.assert_allclose(alone, model.predict(X)[:20], rtol=1e-12)


@each_model
def test_a_log_target_fits_the_log_and_predicts_the_level(name):
    level = np.exp(Y)
    model = clone(MODELS[name]).set_params(target_transform="log").fit(X, level)
    of_log = fitted(name).predict_distribution(X)
    expected = np.exp(of_log.mean + of_log.std**2 / 2)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6)
    interval = model.predict_interval(X, 0.9)
    np.testing.assert_allclose(interval, np.exp(of_log.interval(0.9)), rtol=1e-6)
    pair = clone(model).set_params(target_transform=(np.log, np.exp)).fit(X, level)
    np.testing.assert_allclose(pair.predict(X), expected, rtol=1e-6)
    with pytest.raises(hk.DataError, match=r"'y' is -1 in row \d+, .* needs positive values"):
        clone(model).fit(X, level.where(level.isna() | (level > level.min()), -1.0))


def test_categories_enter_the_linear_outcome_without_their_first_level():
    table = X.assign(site=np.random.default_rng(0).choice(["n", "s", "w"], 400))
    model = clone(LINEAR).fit(table, Y)
    assert model.coef_names_ == ("x", "site[s]", "site[w]")
    dummies = pd.get_dummies(table, columns=["site"], drop_first=True, dtype=float)
    np.testing.assert_allclose(model.predict(table), clone(LINEAR).fit(dummies, Y).predict(dummies))
