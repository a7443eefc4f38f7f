"""Sensitivity to rho: what must come out at rho-hat and at zero, breakdown points and bounds."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import heckesel as hk
from heckesel.classical.spline_profile import fit_profile, means_over_rho
from heckesel.data import DataScale, selection_data
from heckesel.verdict.sensitivity import Sensitivity

FAST = {"epochs": 60, "n_members": 2, "progress": False}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    n = 1200
    x, z, u, v = rng.normal(size=(4, n))
    y = 2 + 0.3 * x + 0.7 * (0.6 * u + 0.8 * v)
    return pd.DataFrame({"x": x, "z": z, "y": np.where(0.5 * x + z + u > 0, y, np.nan)})


@pytest.fixture(scope="module")
def fit(frame):
    return hk.heckman("y ~ x", "~ x + z", frame)


def test_at_the_estimated_rho_the_curves_equal_the_estimates(fit):
    here = hk.sensitivity(fit, rho=[fit.rho])
    assert here.values["x"][0] == pytest.approx(fit.params["outcome", "x"], rel=1e-9)
    assert here.values["mean"][0] == pytest.approx(fit.predict().mean.mean(), rel=1e-9)


def test_at_zero_it_is_least_squares_on_the_selected(frame, fit):
    seen = frame.dropna()
    plain = sm.OLS(seen["y"], sm.add_constant(seen[["x"]])).fit()
    naive = hk.sensitivity(fit, rho=[0.0])
    np.testing.assert_allclose(naive.values["x"], plain.params["x"], rtol=1e-9)
    np.testing.assert_allclose(naive.values["Intercept"], plain.params["const"], rtol=1e-9)


def test_likelihoods_are_the_profile_likelihood(fit):
    found = hk.sensitivity(fit, rho=[0.0, fit.rho])
    assert found.loglik[0] == pytest.approx(fit.loglik_independent - fit.loglik, abs=1e-6)


def test_breakdown_is_the_crossing_nearest_to_zero():
    rho = np.linspace(-0.9, 0.9, 19)
    curves = {"line": 2 * rho - 0.5, "never": np.ones(19), "twice": rho**2 - 0.25}
    found = Sensitivity(rho, np.zeros(19), curves, np.zeros((19, 1)))
    assert found.breakdown("line") == pytest.approx(0.25)
    assert found.breakdown("line", threshold=0.5) == pytest.approx(0.5)
    assert found.breakdown("never") is None
    assert found.crossings("twice") == pytest.approx([-0.5, 0.5], abs=0.01)
    with pytest.raises(hk.DataError, match="there is no value named 'effect'"):
        found.breakdown("effect")


def test_the_printed_table_has_one_row_for_each_rho_and_the_breakdown_points():
    rho, slope = np.array([-0.5, 0.0, 0.5]), np.array([-1.0, 0.5, 1.0])
    _, head, *rows, last = str(
        Sensitivity(rho, np.array([-3.0, 0.0, -1.0]), {"slope": slope}, np.empty((3, 0)))
    ).splitlines()
    assert head.split() == ["rho", "loglik", "slope"]
    assert [[float(value) for value in row.split()] for row in rows] == [
        [-0.5, -3.0, -1.0],
        [0.0, 0.0, 0.5],
        [0.5, -1.0, 1.0],
    ]
    assert last == "Sign changes closest to rho = 0: slope at -0.167."  # -0.5 + 0.5 * 2 / 3


def test_rand_hie_loses_the_sign_of_logc_before_rho_is_minus_a_quarter():
    from reproduction.e0_gate import fit_rand_hie

    found = hk.sensitivity(fit_rand_hie("ml"), rho=[-0.3, -0.2, 0.0])
    assert -0.3 < found.breakdown("logc") < -0.2


def test_last_layers_at_a_fixed_rho_agree_with_the_classic_fit(frame, fit):
    data = selection_data(frame[["x"]], frame[["x", "z"]], frame["y"])
    rho, scaling = np.array([-0.5, 0.0, 0.6]), DataScale.of(data)
    new = np.array([[-1.0], [0.5]])
    # x and a constant as the columns of one network
    columns, at = (np.column_stack([scaling.x(x), np.ones(len(x))]) for x in (data.x[data.s], new))
    ridge = np.array([[1.0], [0.0]])
    means, _ = means_over_rho(data, scaling, [columns], [at], [ridge], rho)
    classic = hk.sensitivity(fit, rho=rho)
    expected = classic.values["Intercept"][:, None] + classic.values["x"][:, None] * new[:, 0]
    # the ridge on the slope shrinks it by about its variance over its square
    np.testing.assert_allclose(means, expected, atol=5e-3)


@pytest.mark.parametrize(
    "model",
    [
        hk.DeepHeckmanRegressor(["z"], **{"method": "two-step"} | FAST),
        hk.DeepHeckmanRegressor(["z"], method="joint", **FAST),
        hk.DeepEnsembleRegressor(["z"], **FAST),
        hk.HeckmanRegressor(["z"], method="ml"),
    ],
    ids=["two-step", "joint", "ensemble", "linear"],
)
def test_every_regressor_has_a_curve(model, frame):
    X, y = frame[["x", "z"]], frame["y"]
    found = hk.sensitivity(model.fit(X, y), X, y, effects=["x"], rho=[-0.8, 0.0, 0.6])
    assert found.predictions.shape == (3, len(frame))
    # units with large u were selected: the larger rho, the more the seen outcomes overstate
    assert (np.diff(found.values["mean"]) < 0).all()
    assert np.argmax(found.loglik) == 2
    assert found.values["x"][2] == pytest.approx(0.3, abs=0.15)
    assert list(found.to_frame().columns[:2]) == ["loglik", "mean"]


@pytest.mark.parametrize("a", [-1.0, 0.6, 1.4])
def test_splines_at_a_fixed_rho_are_those_of_a_fit_with_a_prior_on_it_alone(a, frame):
    # A ridge for each column: one bends often, the other once.
    X = frame[["x", "z"]].assign(v=np.random.default_rng(0).uniform(-1, 1, len(frame)))
    y = frame["y"] + np.sin(2 * X["x"]) + 2 * X["v"] ** 2
    data = selection_data(X[["x", "v"]], X, y)
    model = hk.DeepHeckmanRegressor(
        ["z"], epochs=1, n_members=1, progress=False, method="two-step"
    ).fit(X, y)
    model.fitted_ = fit_profile(data, interactions=())
    found = hk.sensitivity(model, X, y, rho=[np.tanh(a)])
    # An interval around a value of the grid: the curve is near linear in it.
    low, high = np.tanh([a - 0.005, a + 0.005])
    there = fit_profile(data, interactions=(), prior=lambda rho: ((low < rho) & (rho < high)) * 1.0)
    np.testing.assert_allclose(found.predictions[0], there.predict(data.x).mean, atol=1e-3)


def test_networks_need_the_rows_of_their_fit(frame):
    model = hk.DeepHeckmanRegressor(["z"], **{"method": "two-step"} | FAST).fit(
        frame[["x", "z"]], frame["y"]
    )
    with pytest.raises(hk.DataError, match=r"sensitivity\(model, X, y\)"):
        hk.sensitivity(model)
    with pytest.raises(hk.DataError, match="no outcome column 'z'"):
        hk.sensitivity(model, frame[["x", "z"]], frame["y"], effects=["z"])
    with pytest.raises(hk.DataError, match="between -1 and 1"):
        hk.sensitivity(model, frame[["x", "z"]], frame["y"], rho=[1.0])


@pytest.mark.parametrize("kind", ["formula", "arrays", "regressor", "networks"])
def test_the_average_is_over_the_rows_asked_for(kind, frame):
    X, y, few = frame[["x", "z"]], frame["y"], frame[["x", "z"]][frame["x"] > 1]
    if kind == "formula":
        model, at = hk.heckman("y ~ x", "~ x + z", frame), few
    elif kind == "arrays":
        model, at = hk.heckman(y=y, x=X[["x"]], w=X), few[["x"]]
    else:
        linear, deep = (
            hk.HeckmanRegressor(["z"], method="ml"),
            hk.DeepHeckmanRegressor(["z"], **{"method": "two-step"} | FAST),
        )
        model, at = (linear if kind == "regressor" else deep).fit(X, y), few
    rows = {"X": X, "y": y} if kind == "networks" else {}
    found = hk.sensitivity(model, **rows, at=at, rho=[0.6])
    assert found.predictions.shape == (1, len(few))
    assert found.values["mean"][0] == pytest.approx(found.predictions.mean())
    everyone = hk.sensitivity(model, **rows, rho=[0.6]).values["mean"][0]
    assert found.values["mean"][0] > everyone + 0.2


def test_networks_count_rows_as_their_fit_did(frame):
    X, y = frame[["x", "z"]], frame["y"]
    weight = np.where(frame["x"] > 0, 2.0, 1.0)
    twice = np.repeat(np.arange(len(frame)), weight.astype(int))
    model = hk.DeepHeckmanRegressor(["z"], **{"method": "two-step"} | FAST).fit(
        X, y, sample_weight=weight
    )
    weighed = hk.sensitivity(model, X, y, sample_weight=weight, rho=[0.3])
    copied = hk.sensitivity(model, X.iloc[twice], y.iloc[twice], rho=[0.3])
    assert weighed.values["mean"][0] == pytest.approx(copied.values["mean"][0], rel=1e-6)
    marked = hk.sensitivity(model, X, y.fillna(9.0), selected=y.notna(), rho=[0.3])
    plain = hk.sensitivity(model, X, y, rho=[0.3])
    np.testing.assert_array_equal(marked.values["mean"], plain.values["mean"])


def test_fits_without_a_sensitivity_are_refused(frame, tmp_path):
    X, y = frame[["x", "z"]], frame["y"]
    linear = hk.HeckmanRegressor(["z"], method="ml").fit(X, y)
    linear.save(tmp_path / "model.heckesel")
    with pytest.raises(hk.DataError, match="was loaded or read from files"):
        hk.sensitivity(hk.load(tmp_path / "model.heckesel"))
    with pytest.raises(hk.DataError, match="no outcome column 'educ'"):
        hk.sensitivity(linear, effects=["educ"])
    logs = hk.HeckmanRegressor(["z"], target_transform="log", method="ml").fit(X, np.exp(y))
    with pytest.raises(hk.DataError, match="without target_transform"):
        hk.sensitivity(logs)
    classes = hk.HeckmanClassifier(["z"], method="ml").fit(
        X, (y > 2).astype(float).where(y.notna())
    )
    with pytest.raises(hk.DataError, match="not for a HeckmanClassifier"):
        hk.sensitivity(classes)
    unseen = frame.assign(x=frame["x"].where(y.notna()), w=frame["x"])
    partial = hk.heckman("y ~ x", "~ w + z", unseen)
    with pytest.raises(hk.DataError, match="no average over all rows"):
        hk.sensitivity(partial)
    assert hk.sensitivity(partial, at=frame, rho=[0.0]).predictions.shape == (1, len(frame))


def test_bounds_are_what_filling_in_the_extremes_gives():
    y = np.array([1.0, 2.0, np.nan, np.nan, 3.0])
    assert hk.bounds(y, 0, 4) == pytest.approx((6 / 5, 14 / 5))
    weights = np.array([1, 1, 3, 1, 2])
    filled = [np.average(np.where(np.isnan(y), end, y), weights=weights) for end in (0, 4)]
    assert hk.bounds(y, 0, 4, sample_weight=weights) == pytest.approx(tuple(filled))
    with pytest.raises(hk.DataError, match="beyond the bounds"):
        hk.bounds(y, 0, 2)
    with pytest.raises(hk.DataError, match="low must be below high"):
        hk.bounds(y, 4, 0)


def test_the_default_method_moves_the_mean_by_the_mills_term_of_each_rho():
    frame = hk.datasets.make_controlled(600, rho=0.6, alpha=1.0, seed=0).frame
    X, y = frame[["x", "z"]], frame["y"]
    model = hk.HeckmanRegressor(["z"], learner="linear", rho_prior=lambda rho: rho > 0.5)
    model.fit(X, y)
    found = hk.sensitivity(model, X, rho=[-0.5, 0.0, 0.3, 0.7])
    assert (np.diff(found.values["mean"]) < 0).all()  # the selected have the larger errors
    weight = np.arange(len(X)) % 3 + 1.0
    weighted = hk.sensitivity(model, X, rho=[0.3], sample_weight=weight)
    expected = np.average(weighted.predictions[0], weights=weight)
    assert weighted.values["mean"][0] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(weighted.predictions[0], found.predictions[2], rtol=1e-12)
    assert found.loglik[3] == 0
    assert (found.loglik[:3] < -50).all()  # the prior excludes them
    with pytest.raises(hk.DataError, match=r"sensitivity\(model, X\)"):
        hk.sensitivity(model)
