"""Sensitivity to rho and to its prior: special cases, breakdown points and what is refused."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import heckesel as hk
from heckesel.verdict.sensitivity import Sensitivity


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


def learned(frame, **options):
    return hk.HeckmanRegressor(["z"], learner="linear", **options).fit(
        frame[["x", "z"]], frame["y"]
    )


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


def test_breakdown_is_the_crossing_nearest_to_zero():
    rho = np.linspace(-0.9, 0.9, 19)
    curves = {"line": 2 * rho - 0.5, "never": np.ones(19), "twice": rho**2 - 0.25}
    found = Sensitivity(rho, np.zeros(19), curves, np.zeros((19, 1)))
    assert found.breakdown("line") == pytest.approx(0.25)
    assert found.breakdown("line", threshold=0.5) == pytest.approx(0.5)
    assert found.breakdown("never") is None
    assert found.crossings("twice") == pytest.approx([-0.5, 0.5], abs=0.01)
    assert str(found).endswith("Sign changes closest to rho = 0: line at 0.250; twice at -0.500.")
    with pytest.raises(hk.DataError, match="there is no value named 'effect'"):
        found.breakdown("effect")


def test_rand_hie_loses_the_sign_of_logc_before_rho_is_minus_a_quarter():
    from reproduction.e0_gate import fit_rand_hie

    found = hk.sensitivity(fit_rand_hie("ml"), rho=[-0.3, -0.2, 0.0])
    assert -0.3 < found.breakdown("logc") < -0.2


def test_a_fit_without_rows_or_without_rho_is_refused(frame, fit, tmp_path):
    X, y = frame[["x", "z"]], frame["y"]
    hk.HeckmanRegressor(["z"], method="ml").fit(X, y).save(tmp_path / "model.heckesel")
    partial = hk.heckman("y ~ x", "~ w + z", frame.assign(x=X["x"].where(y.notna()), w=X["x"]))
    seen = frame.dropna()
    with pytest.warns(hk.IdentificationWarning):
        everyone = learned(seen)
    logs = hk.HeckmanRegressor(["z"], target_transform="log", method="ml").fit(X, np.exp(y))
    probit = hk.HeckmanClassifier(["z"], method="ml").fit(X, (y > 2).astype(float).where(y.notna()))
    for model, given, match in (
        (hk.load(tmp_path / "model.heckesel"), (), "was loaded or read from files"),
        (logs, (), "without target_transform"),
        (probit, (), "not for a HeckmanClassifier"),
        (partial, (), "no average over all rows"),
        (learned(frame), (), r"sensitivity\(model, X\)"),
        (everyone, (seen[["x", "z"]],), "nothing depends on rho"),
        (learned(frame), (X, y[1:]), "X has 1200 rows but y has 1199"),
    ):
        with pytest.raises(hk.DataError, match=match):
            hk.sensitivity(model, *given)
    with pytest.raises(hk.DataError, match="between -1 and 1"):
        hk.sensitivity(fit, rho=[1.0])
    assert hk.sensitivity(partial, frame, rho=[0.0]).predictions.shape == (1, len(frame))


@pytest.mark.parametrize("prior", [0.05, 0.3, "uniform"])
def test_the_answer_under_a_prior_is_that_of_a_fit_with_it(prior, frame):
    X, y = frame[["x", "z"]], frame["y"]
    found = hk.sensitivity(learned(frame), X, y).priors
    row = found.loc["uniform" if prior == "uniform" else f"scale {prior:g}"]
    model = learned(frame, rho_prior=prior)
    assert row["rho"] == pytest.approx(model.rho_, rel=1e-9)
    assert tuple(row[["rho_low", "rho_high"]]) == pytest.approx(model.rho_interval_)
    for target, names in {
        "population": ["mean", "low", "high"],
        "unselected": ["unselected", "unselected_low", "unselected_high"],
    }.items():
        rows = X if target == "population" else X[y.isna()]
        expected = model.average(rows, target).loc["all", ["mean", "low", "high"]]
        np.testing.assert_allclose(row[names].astype(float), expected.astype(float), rtol=1e-9)


def test_the_conclusion_turns_where_the_interval_reaches_the_naive_mean():
    """Averages of fits with priors just below and just above."""
    frame = hk.datasets.make_controlled(300, rho=0.4, alpha=1.0, seed=2).frame
    X = frame[["x", "z"]]
    found = hk.sensitivity(learned(frame), X, frame["y"])
    naive = learned(frame, rho_prior=1e-4).average(X).loc["all", "mean"]
    assert found.naive == pytest.approx(naive, abs=1e-3)
    for factor, inside in ((0.9, True), (1.1, False)):
        model = learned(frame, rho_prior=found.turns_at * factor)
        _, _, _, low, high = model.average(X).loc["all"]
        assert (low <= found.naive <= high) == inside
    assert f"a scale of {found.turns_at:.2g} or more" in str(found)
    worst = found.to_frame().loc["no assumption", ["low", "high"]]
    assert tuple(worst) == tuple(hk.bounds(frame["y"], frame["y"].min(), frame["y"].max()))


def test_probabilities_have_several_priors():
    loans = hk.datasets.make_loans(1000, seed=0).frame
    X, y = loans.drop(columns=["default"]), loans["default"]
    model = hk.HeckmanClassifier(["leniency"], learner="linear").fit(X, y)
    found = hk.sensitivity(model, X, y).priors
    row = model.average(X).loc["all", ["mean", "low", "high"]].astype(float)
    np.testing.assert_allclose(
        found.loc["of this fit", row.index].astype(float), row.to_numpy(), rtol=1e-9
    )
    assert tuple(found.loc["no assumption", ["low", "high"]]) == tuple(
        hk.bounds(pd.to_numeric(y), 0.0, 1.0)
    )
