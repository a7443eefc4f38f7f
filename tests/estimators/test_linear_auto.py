"""`HeckmanRegressor`: error models, and the one that held-out rows prefer."""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import heckesel as hk
from heckesel.methods.linear_auto import preferred
from tests.classical.test_shape_fit import TARGETS, draw, exponential, outliers, varying

COLUMNS = ["x", "z"]
MODELS = {
    "normal": {},
    "t": {"errors": "t"},
    "shape": {"errors": "shape"},
    "sigma(x)": {"scale": ["x"]},
    "shape and sigma(x)": {"errors": "shape", "scale": ["x"]},
}


def normal(q, x, rng):
    return q


def lognormal(q, x, rng):
    return np.exp(q) - np.exp(0.5)


def shifted(q, x, rng):
    return q + np.where(rng.random(len(q)) < 0.1, 5.0, 0.0)


@pytest.fixture(scope="module")
def frame():
    return draw(600, 8)


def fitted(frame, **options):
    return hk.HeckmanRegressor(["z"], **options).fit(frame[COLUMNS], frame["y"])


@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
def test_ml_gives_the_numbers_of_hk_heckman(frame, options):
    model = fitted(frame, method="ml", **options)
    scale = "~ x" if "scale" in options else None
    fit = hk.heckman("y ~ x", "~ x + z", frame, **options | {"scale": scale})
    np.testing.assert_allclose(model.result_.params, fit.params, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.result_.se, fit.se, rtol=1e-6)
    for target in TARGETS:
        here, there = model.predict_distribution(frame, target), fit.predict(frame, target=target)
        np.testing.assert_allclose(here.mean, there.mean, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(here.interval(0.9), there.interval(0.9), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
def test_the_mean_log_likelihood_is_that_of_the_fit(frame, options):
    """Without the variance that predictions add for the estimates, it is equal at large n."""
    model = fitted(frame, method="ml", **options)
    mean = model.log_likelihood(frame[COLUMNS], frame["y"])
    assert mean == pytest.approx(model.result_.loglik / len(frame), abs=3e-3)


@pytest.mark.parametrize("options", [*MODELS.values(), {"method": "auto"}], ids=[*MODELS, "auto"])
def test_a_saved_model_predicts_the_same(frame, options, tmp_path):
    model = fitted(frame, **{"method": "ml"} | options)
    model.save(tmp_path / "m")
    loaded = hk.load(tmp_path / "m")
    for target in TARGETS:
        here, there = (each.predict_distribution(frame, target) for each in (model, loaded))
        np.testing.assert_array_equal(here.mean, there.mean)
        np.testing.assert_array_equal(here.interval(0.8), there.interval(0.8))
    assert loaded.result_.params.equals(model.result_.params)
    if model.method == "auto":
        assert loaded.explanation_ == model.explanation_
        pd.testing.assert_frame_equal(loaded.candidates_, model.candidates_)


def test_sigma_depends_on_every_level_of_a_category():
    rng = np.random.default_rng(3)
    table = draw(900, 4, varying)
    site = rng.choice(list("abc"), len(table))
    table["y"] += np.where(site == "b", 2.0, 0.5) * rng.normal(size=len(table))
    X = table[COLUMNS].assign(site=site)
    model = hk.HeckmanRegressor(["z"], method="ml", scale=["site"]).fit(X, table["y"])
    assert list(model.result_.params["scale"].index) == ["site[b]", "site[c]"]
    assert model.result_.params["scale"]["site[b]"] > 0.3
    by_position = hk.HeckmanRegressor(["z"], method="ml", scale=2).fit(X, table["y"])
    assert by_position.result_.params.equals(model.result_.params)


REFUSED = {
    "errors of auto": ({"errors": "shape"}, "method='auto' chooses the error model"),
    "scale of auto": ({"scale": ["x"]}, "method='auto' chooses the error model"),
    "unknown errors": ({"method": "ml", "errors": "cauchy"}, "errors must be"),
    "unknown method": ({"method": "mle"}, "method must be 'auto', 'ml' or 'two-step'"),
    "scale of an instrument": ({"method": "ml", "scale": "z"}, "names the instrument 'z'"),
    "scale of no column": ({"method": "ml", "scale": ["age"]}, "X has no column 'age'"),
    "scale in two steps": ({"method": "two-step", "scale": ["x"]}, "a constant sigma"),
}


@pytest.mark.parametrize(("options", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_had_is_refused(frame, options, sentence):
    with pytest.raises(hk.DataError, match=sentence):
        fitted(frame, **options)


def test_a_shape_at_the_boundary_has_intervals_given_rho(tmp_path):
    """y is a function of u, so rho is 1; the other parameters keep a variance."""
    rng = np.random.default_rng(0)
    x, z, u = rng.normal(size=(3, 300))
    y = 1 + x + np.sinh(u)
    table = pd.DataFrame({"x": x, "z": z, "y": np.where(x + z + u > 0, y, np.nan)})
    model = fitted(table, method="ml", errors="shape", scale=["x"])
    assert abs(model.rho_) > 0.999
    assert np.isnan(model.result_.se["outcome", "x"])
    model.save(tmp_path / "m")
    for target in TARGETS:
        interval = model.predict_interval(table, target=target)
        assert np.isfinite(interval).all()
        np.testing.assert_array_equal(
            interval, hk.load(tmp_path / "m").predict_interval(table, target=target)
        )


@pytest.mark.parametrize(
    ("kind", "errors", "scale"),
    [(normal, "normal", "constant"), (exponential, "shape", "constant"), (varying, "normal", "x")],
)
def test_held_out_rows_choose_the_error_model(kind, errors, scale):
    table = draw(1000, 1, kind)
    model = fitted(table)
    chosen = model.candidates_[model.candidates_["chosen"]]
    assert chosen[["estimator", "errors", "scale"]].to_numpy().tolist() == [["ml", errors, scale]]
    ml = hk.HeckmanRegressor(["z"], method="ml", errors=errors)
    ml.set_params(scale=None if scale == "constant" else [scale], covariance="robust")
    np.testing.assert_allclose(model.coef_, ml.fit(table[COLUMNS], table["y"]).coef_)
    assert model.result_.se.equals(ml.result_.se)
    assert model.explanation_.startswith("Maximum likelihood with")
    assert model.explanation_.count(".") == 1


def test_candidates_are_a_table(frame):
    found = fitted(frame).candidates_
    assert list(found["estimator"]) == ["ml"] * 4 + ["two-step"]
    assert found["chosen"].sum() == 1
    likelihoods = found.dropna()
    np.testing.assert_allclose(
        likelihoods["difference"],
        likelihoods["held_out_loglik"] - likelihoods["held_out_loglik"].max(),
        atol=1e-8,
    )
    # on average held-out rows lose half a unit for each parameter against the rows of the fit,
    # and as much again against the truth
    assert (likelihoods["held_out_loglik"] < likelihoods["loglik"]).all()


def test_units_of_y_change_neither_choice_nor_differences(frame):
    changed = frame.assign(y=100 * frame["y"] + 7)
    here, there = (fitted(each).candidates_ for each in (frame, changed))
    assert list(here["chosen"]) == list(there["chosen"])
    np.testing.assert_allclose(here["difference"], there["difference"], atol=1e-4)
    moved = np.log(100) * frame["y"].notna().sum()
    np.testing.assert_allclose(
        here["held_out_loglik"][:4] - there["held_out_loglik"][:4], moved, atol=1e-4
    )


@pytest.mark.parametrize("few", [True, False])
def test_few_values_and_spikes_are_fitted_in_two_steps(frame, few):
    y = frame["y"].round().clip(-2, 4) if few else frame["y"].clip(lower=0.5)
    model = fitted(frame.assign(y=y))
    reason = "distinct values" if few else "of the outcomes equal 0.5"
    assert model.explanation_.startswith("The two-step was used, because")
    assert reason in model.explanation_
    assert model.result_.method == "two-step"
    assert model.result_.covariance == "robust"


def test_a_perfect_dependence_is_fitted_in_two_steps():
    rng = np.random.default_rng(0)
    x, z, u = rng.normal(size=(3, 400))
    table = pd.DataFrame({"x": x, "z": z, "y": np.where(x + z + u > 0, 1 + x + 2 * u, np.nan)})
    model = fitted(table)
    assert model.explanation_.endswith("every likelihood is highest at rho = -1 or 1.")
    assert model.result_.method == "two-step"
    assert np.isfinite(model.predict_interval(table, target="unselected")).all()


def test_few_rows_are_not_split_into_folds():
    model = fitted(draw(70, 3, normal))
    assert "too few rows" in model.explanation_
    assert list(model.candidates_["estimator"]) == ["ml", "two-step"]


def test_without_selection_it_is_least_squares(frame):
    with pytest.warns(hk.IdentificationWarning):
        model = hk.HeckmanRegressor(["z"]).fit(frame[COLUMNS], frame["hidden"])
    assert model.explanation_ == "Least squares was used, because every unit was selected."
    assert list(model.candidates_["estimator"]) == ["least squares"]


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        ([(0.5, 1.0, False), (0.0, 0.0, False)], 0),  # the simpler within a standard error
        ([(2.0, 1.0, False), (0.0, 0.0, False)], 1),
        ([(30.0, 40.0, False), (0.0, 0.0, False)], 1),  # a few units make a large standard error
        ([(0.0, 0.0, True), (3.0, 1.0, False)], 1),  # the interior one is about as good
        ([(0.0, 0.0, True), (5.0, 1.0, False)], 0),  # the boundary clearly wins
        ([(0.5, 1.0, True), (0.0, 0.0, False)], 1),
        ([(0.0, 0.0, True), (0.5, 1.0, True)], None),
    ],
)
def test_the_interior_goes_before_the_boundary(candidates, chosen):
    made = tuple(
        SimpleNamespace(
            behind=behind, standard_error=error, at_boundary=at_boundary, usable=True, name="other"
        )
        for behind, error, at_boundary in candidates
    )
    found, reason = preferred(made)
    assert found is (None if chosen is None else made[chosen])
    assert (found is None) == (reason == "")


@pytest.mark.parametrize("kind", [exponential, lognormal, shifted, outliers, varying, normal])
def test_a_slope_is_covered_whatever_the_errors(kind):
    """20 draws each: fewer than 15 hits of a 90 % interval have a probability of 1 %."""
    hits = 0
    for seed in range(20):
        fit = fitted(draw(600, 7000 + seed, kind)).result_
        hits += abs(fit.params["outcome", "x"] - 1) < 1.96 * fit.se["outcome", "x"]
    assert hits >= 15


DATA = Path(os.environ.get("HECKESEL_DATA", "nowhere")) / "thornton" / "thornton_hiv.csv"
THORNTON = {"educ2004": (4.39, 0.48), "age": (32.0, 1.9), "hiv2004": (0.070, 0.026)}


@pytest.mark.skipif(not DATA.exists(), reason="needs the data of Thornton (2008)")
@pytest.mark.parametrize("outcome", THORNTON)
def test_people_whose_outcome_was_hidden_are_predicted(outcome):
    """Real people, a randomised instrument and known truth; 2.5 bootstrap standard errors."""
    truth, error = THORNTON[outcome]
    x = ["male", "rumphi", "balaka", "simaverage", "distvct"]
    people = pd.read_csv(DATA).replace({"hiv2004": {-1: np.nan}})
    people = people.dropna(subset=["got", "any", "tinc", *x, outcome])
    X, hidden = people[[*x, "any", "tinc"]], people["got"] == 0
    model = hk.HeckmanRegressor(["any", "tinc"]).fit(X, people[outcome].mask(hidden))
    found = model.predict(X[hidden], target="unselected").mean()
    assert abs(found - truth) < 2.5 * error
    assert people[outcome][hidden].mean() == pytest.approx(truth, abs=0.05)


def test_a_transformed_outcome_has_normal_errors():
    """The mean of exp(y) need not exist if y has heavier tails."""
    table = draw(500, 1, outliers)
    y = np.exp(table["y"].clip(upper=20.0))
    model = hk.HeckmanRegressor(["z"], target_transform="log").fit(table[COLUMNS], y)
    assert list(model.candidates_["errors"]) == ["normal"] * 3


def test_weights_and_clones_work(frame):
    weight = np.where(np.arange(len(frame)) % 3 == 0, 2.0, 1.0)
    model = clone(fitted(frame)).fit(frame[COLUMNS], frame["y"], sample_weight=weight)
    shares = clone(model).fit(frame[COLUMNS], frame["y"], sample_weight=weight / 7)
    np.testing.assert_allclose(model.coef_, shares.coef_, rtol=1e-6)
    assert shares.result_.weight_kind == "probability"
