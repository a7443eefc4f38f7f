"""Formulas, frames and arrays lead to the same fit; missing values are treated as promised."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import heckesel as hk
from reproduction.e0_gate import draw_linear

FRAME = draw_linear(800, rho=0.5, seed=21)


def test_formula_arrays_and_frames_agree():
    by_formula = hk.heckman("y ~ x", "~ x + z", FRAME)
    by_frame = hk.heckman(y=FRAME.y, x=FRAME[["x"]], w=FRAME[["x", "z"]])
    by_array = hk.heckman(
        y=FRAME.y.to_numpy(), x=FRAME.x.to_numpy(), w=FRAME[["x", "z"]].to_numpy()
    )
    for other in (by_frame, by_array):
        np.testing.assert_allclose(other.params, by_formula.params, rtol=1e-9)
        np.testing.assert_allclose(other.cov, by_formula.cov, rtol=1e-7, atol=1e-14)
    assert by_frame.params.index.equals(by_formula.params.index)
    assert by_array.data.instruments == ("w1",)
    assert by_array.identification.verdict == "supported by the instrument"


def test_polars_and_dicts_are_frames_too():
    expected = hk.heckman("y ~ x", "~ x + z", FRAME).params
    as_polars = pl.DataFrame({name: FRAME[name].to_numpy() for name in FRAME})
    for data in (as_polars, FRAME.to_dict("list")):
        np.testing.assert_allclose(
            hk.heckman("y ~ x", "~ x + z", data).params, expected, rtol=1e-10
        )


def test_an_explicit_indicator_equals_missing_outcomes():
    expected = hk.heckman("y ~ x", "~ x + z", FRAME).params
    filled = FRAME.assign(s=FRAME.y.notna().astype(int), y=FRAME.y.fillna(0.0))
    np.testing.assert_allclose(
        hk.heckman("y ~ x", "s ~ x + z", filled).params, expected, rtol=1e-10
    )
    np.testing.assert_allclose(
        hk.heckman("y ~ x", "~ x + z", filled, selected=filled.s).params, expected, rtol=1e-10
    )


def test_outcome_columns_may_be_missing_where_the_outcome_is():
    rng = np.random.default_rng(0)
    frame = FRAME.assign(hours=rng.uniform(1, 9, len(FRAME)))
    expected = hk.heckman("y ~ x + np.log(hours)", "~ x + z", frame)
    holes = frame.assign(hours=frame.hours.where(frame.y.notna()))
    fit = hk.heckman("y ~ x + np.log(hours)", "~ x + z", holes)
    assert fit.n == len(frame)
    np.testing.assert_allclose(fit.params, expected.params, rtol=1e-10)
    with pytest.raises(hk.DataError, match="'hours' is missing"):
        fit.predict(holes)


def test_a_missing_column_that_is_needed_is_counted_and_named():
    holes = FRAME.assign(z=FRAME.z.where(FRAME.index > 6))
    with pytest.raises(hk.DataError, match=r"7 rows \(first: row 0\) lack a value in 'z'"):
        hk.heckman("y ~ x", "~ x + z", holes)
    chosen = FRAME.index[FRAME.y.notna()][:3]
    holes = FRAME.assign(a=FRAME.x**2)
    holes.loc[chosen, "a"] = np.nan
    with pytest.raises(hk.DataError, match=r"3 rows .* lack a value in 'a'.*outcome equation"):
        hk.heckman("y ~ x + a", "~ x + z", holes)


def test_categories_interactions_and_transformations_survive_into_prediction():
    rng = np.random.default_rng(1)
    frame = FRAME.assign(g=rng.choice(["a", "b", "c"], len(FRAME)), h=rng.uniform(1, 5, len(FRAME)))
    fit = hk.heckman("y ~ x * g + np.log(h) + center(h)", "~ x + z + g", frame)
    one = frame.iloc[[3]]
    np.testing.assert_allclose(fit.predict(one).mean, fit.predict(frame).mean[[3]], rtol=1e-12)
    with pytest.raises(hk.DataError, match="category that did not occur in the fit"):
        fit.predict(one.assign(g="d"))


def test_predicting_the_population_needs_no_instrument():
    fit = hk.heckman("y ~ x", "~ x + z", FRAME)
    assert len(fit.predict(FRAME[["x"]]).mean) == len(FRAME)
    with pytest.raises(hk.DataError, match="no column 'z'"):
        fit.predict(FRAME[["x"]], target="selected")
    by_array = hk.heckman(y=FRAME.y, x=FRAME[["x"]], w=FRAME[["x", "z"]])
    np.testing.assert_allclose(by_array.predict(x=FRAME[["x"]]).mean, fit.predict(FRAME).mean)
    with pytest.raises(hk.DataError, match="pass w="):
        by_array.predict(x=FRAME[["x"]], target="selected")


def test_rescaling_and_shifting_columns_maps_back():
    fit = hk.heckman("y ~ x", "~ x + z", FRAME)
    moved = FRAME.assign(x=1e6 * FRAME.x + 3e6, y=1e-3 * FRAME.y - 5)
    other = hk.heckman("y ~ x", "~ x + z", moved)
    assert other.params["outcome", "x"] == pytest.approx(
        fit.params["outcome", "x"] * 1e-9, rel=1e-7
    )
    assert other.se["outcome", "x"] == pytest.approx(fit.se["outcome", "x"] * 1e-9, rel=1e-6)
    assert other.rho == pytest.approx(fit.rho, abs=1e-8)
    assert other.loglik == pytest.approx(fit.loglik + FRAME.y.notna().sum() * np.log(1e3), abs=1e-6)


def test_row_order_does_not_matter():
    fit = hk.heckman("y ~ x", "~ x + z", FRAME)
    shuffled = hk.heckman("y ~ x", "~ x + z", FRAME.sample(frac=1, random_state=0))
    np.testing.assert_allclose(shuffled.params, fit.params, rtol=1e-8)


def test_an_equation_without_intercept_keeps_none():
    fit = hk.heckman("y ~ 0 + x", "~ x + z", FRAME)
    assert list(fit.params["outcome"].index) == ["x"]
    assert fit.status == "converged"


@pytest.mark.parametrize(
    ("select", "verdict"),
    [
        ("~ x + z", "supported by the instrument"),
        ("~ x + noise", "mostly prior"),
        ("~ x", "mostly prior"),  # its likelihood allows a large rho of either sign
        ("~ 1", "mostly prior"),
    ],
)
def test_the_verdict_follows_the_excluded_columns(select, verdict):
    frame = FRAME.assign(noise=np.random.default_rng(3).standard_normal(len(FRAME)))
    fit = hk.heckman("y ~ x", select, frame)
    assert fit.identification.verdict == verdict
    assert verdict in fit.summary()
    assert verdict in repr(fit)


def test_a_fit_at_the_boundary_is_an_answer_without_standard_errors():
    rng = np.random.default_rng(0)
    x, u = rng.standard_normal((2, 120))
    y = np.where(0.3 + x + u > 0, 1 + x + u, np.nan)  # rho is one
    fit = hk.heckman("y ~ x", "~ x", pd.DataFrame({"x": x, "y": y}))
    assert fit.status == "boundary"
    assert abs(fit.rho) > 1 - 1e-9
    assert fit.se.isna().all()
    assert "Status: boundary" in fit.summary()
    assert np.isfinite(fit.predict().mean).all()


def test_splines_keep_their_variable_for_margins_and_instruments():
    outcome = "y ~ bs(x, df=4, extrapolation='extend')"  # effects step beyond the outermost rows
    fit = hk.heckman(outcome, "~ x + scale(z)", FRAME, instruments=["z"])
    assert list(fit.margins().index) == ["x"]
    assert fit.data.instruments == ("scale(z)",)
