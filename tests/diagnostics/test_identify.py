"""`hk.identify`: the evidence against other programs and simulations, and the verdict from it."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import heckesel as hk
from heckesel.diagnostics.profile_curve import profile_curve
from heckesel.diagnostics.smooth_columns import smooth_columns
from heckesel.math.special import inverse_mills


@pytest.fixture(scope="module")
def linear():
    """A straight line, an instrument, rho .6."""
    rng = np.random.default_rng(3)
    n = 1500
    x, z, u, v = rng.normal(size=(4, n))
    y = 1 + x + 0.7 * (0.6 * u + 0.8 * v)
    seen = 0.2 + 0.5 * x + 0.8 * z + u > 0
    return pd.DataFrame({"x": x, "z": z, "y": np.where(seen, y, np.nan)})


@pytest.fixture(scope="module")
def found(linear):
    return hk.identify(linear[["x", "z"]], linear["y"], instruments=["z"])


def test_instrument_strength_is_that_of_statsmodels_probit(linear, found):
    s = linear["y"].notna().astype(float)
    full = sm.Probit(s, sm.add_constant(linear[["x", "z"]])).fit(disp=0, tol=1e-12)
    reduced = sm.Probit(s, sm.add_constant(linear[["x"]])).fit(disp=0, tol=1e-12)
    assert found.evidence["wald"] == pytest.approx(full.tvalues["z"] ** 2, rel=1e-6)
    assert found.evidence["likelihood_ratio"] == pytest.approx(2 * (full.llf - reduced.llf))


def test_the_share_of_the_mills_ratio_is_one_minus_r_squared(linear, found):
    s = linear["y"].notna()
    probit = sm.Probit(s.astype(float), sm.add_constant(linear[["x", "z"]])).fit(disp=0)
    index = (sm.add_constant(linear[["x", "z"]]) @ probit.params)[s]
    columns = smooth_columns(linear.loc[s, ["x"]].to_numpy())
    fit = sm.OLS(inverse_mills(index.to_numpy()), sm.add_constant(columns)).fit()
    assert found.evidence["mills_share"] == pytest.approx(1 - fit.rsquared, abs=1e-6)


def test_an_irrelevant_instrument_gives_the_mills_ratio_next_to_nothing():
    draw = hk.datasets.make_controlled(2000, rho=0.5, alpha=0.0, seed=1)
    found = hk.identify(draw.frame[["x", "z"]], draw.frame["y"], instruments=["z"])
    assert found.verdict == "weak instrument"
    assert found.evidence["mills_share"] < 0.05


@pytest.mark.parametrize("curved", [True, False])
def test_an_instrument_that_is_a_function_of_x_is_weak(curved):
    rng = np.random.default_rng(5)
    x, u, v, other = rng.normal(size=(4, 3000))
    z = x**2 if curved else other
    y = np.where(0.5 * x + 0.3 * z + u > 0, 1 + x + 0.6 * u + 0.8 * v, np.nan)
    found = hk.identify(pd.DataFrame({"x": x, "z": z}), y, instruments=["z"])
    assert found.evidence["wald"] > 100  # strong by the test alone
    if curved:
        assert found.verdict == "weak instrument"
        assert "explain all but 0.0 % of its effect" in found.sentence
    else:
        assert found.verdict == "identified by an instrument"
        assert found.evidence["share_beyond_smooth"] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("door", ["probit", "identify"])
def test_columns_that_separate_together_are_refused(door):
    a, b = np.random.default_rng(3).normal(size=(2, 200))
    s = a + b > 0
    frame, y = pd.DataFrame({"a": a, "b": b, "s": s.astype(float)}), np.where(s, 1 + a, np.nan)
    doors = {
        "probit": lambda: hk.probit("s ~ a + b", frame),
        "identify": lambda: hk.identify(frame[["a", "b"]], y, instruments=["b"]),
    }
    with pytest.raises(hk.DataError, match="'a', 'b' together predict selection perfectly"):
        doors[door]()


def test_an_outcome_far_out_leaves_the_residual_evidence_finite(linear):
    y = linear["y"].copy()
    y.iloc[int(np.flatnonzero(y.notna())[0])] = 60.0
    evidence = hk.identify(linear[["x", "z"]], y, instruments=["z"]).evidence
    assert np.isfinite(evidence["residual_excess_kurtosis"])
    assert evidence["residual_excess_kurtosis"] > 100
    assert evidence["residual_normality_p"] < 1e-6


def test_the_sentence_reports_a_maximum_at_the_boundary(found):
    assert "end of its range" not in found.sentence
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    u = rng.normal(size=60)
    y = np.where(table.a + table.b + u > 0, 1 + table.a + 2 * u, np.nan)
    with pytest.warns(hk.IdentificationWarning, match="end of its range"):
        model = hk.HeckmanRegressor(["b"], method="ml").fit(table, y)
    assert model.result_.status == "boundary"
    assert "largest at rho = +1, the end of its range" in model.identification_.sentence


def test_the_interval_from_the_grid_is_the_exact_profile_interval(linear):
    fit = hk.heckman("y ~ x", "~ x + z", linear)
    curve = profile_curve(fit.scan)
    exact = fit.interval("rho", level=0.9, method="profile")
    # cubics between grid values half an interval apart, read off at 4001 points
    np.testing.assert_allclose(curve.interval, exact, atol=4e-3)
    assert curve.modes[0][0] == pytest.approx(fit.rho)


def test_the_profile_of_scanned_rows_is_scaled_to_all_rows(linear):
    fit = hk.heckman("y ~ x", "~ x + z", linear)
    short = profile_curve(fit.scan).interval
    long = profile_curve(replace(fit.scan, stretch=16.0)).interval
    width = np.diff(np.arctanh(long)) / np.diff(np.arctanh(short))
    assert width == pytest.approx(0.25, abs=0.04)  # a sixteenth of the variance


@pytest.mark.parametrize(("errors", "rejected"), [("normal", False), ("chi2", True)])
def test_residuals_are_called_normal_when_they_are(errors, rejected):
    draw = hk.datasets.make_controlled(3000, rho=0.5, alpha=1.0, seed=4, errors=errors)
    found = hk.identify(draw.frame[["x", "z"]], draw.frame["y"], instruments=["z"])
    assert (found.evidence["residual_normality_p"] < 0.001) == rejected


def test_without_an_instrument_the_profile_decides_whether_rho_is_identified():
    strong, faint = (
        hk.datasets.make_controlled(2000, rho=rho, alpha=0.0, seed=0).frame for rho in (0.9, 0.3)
    )
    assert hk.identify(strong[["x"]], strong["y"]).verdict == "functional form only"
    nothing = hk.identify(faint[["x"]], faint["y"])
    assert nothing.verdict == "not identified"
    assert "rejects no rho between" in nothing.sentence
    assert "sensor, site, annotator" in nothing.sentence


def test_evidence_is_json_and_the_same_every_time(linear, found):
    again = hk.identify(linear[["x", "z"]], linear["y"], instruments=["z"])
    assert json.dumps(found.evidence) == json.dumps(again.evidence)
    assert (
        found.evidence["tau_low"] <= 2 / np.pi * np.arcsin(0.6) <= found.evidence["tau_high"] + 0.1
    )
    assert {form["name"] for form in found.evidence["forms"]} >= {"Gaussian", "Frank", "Student t"}


def test_the_repr_says_the_verdict_and_every_piece_of_evidence(found):
    text = repr(found)
    for piece in ("identified by an instrument", "Wald", "Mills", "90 % profile interval", "tau"):
        assert piece in text


def test_a_long_table_is_cut_to_ten_thousand_rows():
    rng = np.random.default_rng(0)
    n = 30_000
    x, z, u, v = rng.normal(size=(4, n))
    y = np.where(x + z + u > 0, x + 0.6 * u + 0.8 * v, np.nan)
    found = hk.identify(np.column_stack([x, z]), y, instruments=[1])
    assert found.evidence["rows"] == n
    assert found.evidence["rows_profiled"] == 10_000
    assert found.evidence["rho_low"] < 0.6 < found.evidence["rho_high"]


def test_few_rows_have_a_verdict_but_no_curve():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(24, 2))
    y = np.where(rng.normal(size=24) > 0, x[:, 0], np.nan)
    found = hk.identify(x, y, instruments=[1])
    assert found.profile is None
    assert found.evidence["rows_profiled"] == 0


def test_nothing_selected_has_its_own_verdict(linear):
    seen = linear.dropna()
    assert hk.identify(seen[["x", "z"]], seen["y"], instruments=["z"]).verdict == "no selection"


def test_the_curve_can_be_drawn(found):
    axes = found.profile.plot()
    assert axes.get_xlabel() == "rho"
    assert len(axes.lines) == 1 + len(found.profile.modes)


def test_the_regressor_carries_the_evidence_and_the_range_of_its_members(linear):
    model = hk.DeepHeckmanRegressor(
        ["z"], epochs=40, n_members=2, progress=False, method="two-step"
    )
    evidence = model.fit(linear[["x", "z"]], linear["y"]).identification_.evidence
    assert evidence["rho_low"] < 0.6 < evidence["rho_high"]
    assert evidence["member_rho_low"] == pytest.approx(model.rho_.min())
    assert evidence["member_rho_high"] == pytest.approx(model.rho_.max())


def test_curves_of_a_straight_line_and_of_its_bends_agree_where_the_line_is_right(linear, found):
    fit = hk.heckman("y ~ x", "~ x + z", linear)
    assert found.evidence["rho"] == pytest.approx(fit.rho, abs=0.05)


def test_the_mode_in_use_is_not_among_the_other_modes(linear):
    """An interior mode is used, though one at the boundary is a little higher."""
    found = hk.heckman("y ~ x", "~ x + z", linear).identification
    modes = [{"rho": 0.99999, "loglik": 0.0}, {"rho": found.evidence["rho"], "loglik": -2.0}]
    listed = replace(found, evidence=found.evidence | {"modes": modes}).details()
    (line,) = [line for line in listed if "other modes" in line]
    assert line.endswith("other modes 1.00 (0.0)")
