"""Corners of the classic fit: weights of zero, thresholds, the boundary, subsamples, constants."""

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from reproduction.e0_gate import draw_linear

RNG = np.random.default_rng(0)
FRAME = draw_linear(600, rho=0.5, seed=1).assign(
    group=RNG.integers(0, 30, 600), count=RNG.integers(0, 3, 600), share=RNG.uniform(0.2, 2, 600)
)
REPEATED = FRAME.loc[FRAME.index.repeat(FRAME["count"])]


def fit(data=FRAME, **options):
    return hk.heckman("y ~ x", "~ x + z", data, **options)


@pytest.mark.parametrize("options", [{"covariance": "robust"}, {"groups": "group"}])
def test_rows_of_weight_zero_count_nowhere(options):
    weights = np.where(FRAME.group < 10, 0.0, FRAME.share)
    zeroed = fit(weights=weights, weight_kind="probability", **options)
    without = fit(FRAME[FRAME.group >= 10], weights="share", weight_kind="probability", **options)
    np.testing.assert_allclose(zeroed.cov, without.cov, rtol=1e-8, atol=1e-14)


def test_frequencies_reach_likelihood_bic_and_margins():
    short, long = fit(weights="count"), fit(REPEATED)
    assert short.loglik == pytest.approx(long.loglik, rel=1e-10)
    assert short.bic == pytest.approx(np.log(FRAME["count"].sum()) * 7 - 2 * short.loglik)
    np.testing.assert_allclose(short.margins("selected"), long.margins("selected"), rtol=1e-6)


def test_a_negative_two_step_variance_gives_no_wald_test():
    """With rho beyond one the model's variance turns negative, and so must not be used."""
    rng = np.random.default_rng(126)
    x, u, v = rng.standard_normal((3, 150))
    y = np.where(0.2 + 0.6 * x + u > 0, x + 0.95 * u + 0.3 * v, np.nan)
    found = hk.heckman("y ~ x", "~ x", pd.DataFrame({"x": x, "y": y}), method="two-step")
    assert abs(found.rho) > 1
    assert found.near_boundary
    assert np.isnan(found.test_rho_zero("wald").statistic)
    assert 0 < found.test_rho_zero().p_value < 1  # needs no variance of the correction
    assert not (found.predict().epistemic < 0).any()


def test_shifted_and_nearly_collinear_columns_are_fitted():
    shifted = fit(FRAME.assign(x=FRAME.x + 1e6))
    slope = ("outcome", "x")
    assert shifted.params[slope] == pytest.approx(fit().params[slope], rel=1e-6)
    close = FRAME.assign(close=FRAME.x + 1e-4 * np.random.default_rng(9).standard_normal(600))
    assert np.isfinite(hk.heckman("y ~ x + close", "~ x + z", close).se).all()


def test_rows_in_clusters_have_no_likelihood_of_their_own():
    found = fit(groups="group")
    for ask in (found.test_rho_zero, lambda how: found.interval("rho", method=how)):
        with pytest.raises(hk.DataError, match="with clustered rows there is no"):
            ask("lr" if ask == found.test_rho_zero else "profile")
    assert "assumes independent rows" in found.summary()
    assert "independent" not in fit().summary()


def test_wald_intervals_undercover_without_an_instrument_and_profiles_do_not():
    """The model is right, rho 0; a nominal 95 %, 60 draws: 51 or more, but once in a thousand."""
    held = {"wald": 0, "profile": 0}
    for seed in range(60):
        x, u, e = np.random.default_rng(seed).normal(size=(3, 300))
        frame = pd.DataFrame({"x": x, "y": np.where(0.2 + 0.8 * x + u > 0, 1 + x + e, np.nan)})
        found = hk.heckman("y ~ x", "~ x", frame)
        if found.status == "converged":
            for method in held:
                low, high = found.interval("rho", method=method)
                held[method] += low <= 0 <= high
    assert held["wald"] < 51 <= held["profile"]


def test_faults_of_a_long_table_are_found_wherever_they_are():
    long = draw_linear(40_000, rho=0.5, seed=2)
    late = long.assign(k=np.where(long.index < 39_000, 1.0, 2.0))  # constant at first sight only
    assert hk.heckman("y ~ x + k", "~ x + z", late).status == "converged"
    with pytest.raises(hk.DataError, match="'k' is constant"):
        hk.heckman("y ~ x + k", "~ x + z", long.assign(k=1.0))
    sorted_rows = long.sort_values("y", na_position="last").assign(
        d=lambda f: f.y.notna().astype(float)
    )
    with pytest.raises(hk.DataError, match="'d' predicts selection perfectly"):
        hk.heckman("y ~ x", "~ x + d", sorted_rows)
