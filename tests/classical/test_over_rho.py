"""Inference that does not need rho to be well identified."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from scipy.optimize import minimize

import heckesel as hk
from heckesel.classical.probit_results import fit_binary
from heckesel.classical.profile import MEAN_OF_STATISTIC
from heckesel.classical.rows import standardised_sample
from reproduction.inference_coverage import Setting, draw, run_binary
from tests.classical.test_modes import plain_loglik


def frame_of(n=300, rho=0.5, seed=0, strength=0.0):
    x, z, u, v = np.random.default_rng(seed).standard_normal((4, n))
    y = 1 + x + rho * u + np.sqrt(1 - rho**2) * v
    y = np.where(0.2 + x + strength * z + u > 0, y, np.nan)
    return pd.DataFrame({"x": x, "z": z, "y": y, "group": np.arange(n) % 30})


@pytest.fixture(scope="module")
def weak():
    return hk.heckman("y ~ x", "~ x", frame_of())


def least_squares_on_mills(frame, **covariance):
    """statsmodels: a probit of selection, then least squares with the Mills ratio."""
    s = frame.y.notna().to_numpy()
    x = sm.add_constant(frame[["x"]].to_numpy())
    w = sm.add_constant(frame[["x", "z"]].to_numpy())
    index = w[s] @ sm.Probit(s * 1.0, w).fit(disp=0).params
    mills = stats.norm.pdf(index) / stats.norm.cdf(index)
    return sm.OLS(frame.y[s].to_numpy(), np.column_stack([x[s], mills])).fit(**covariance)


@pytest.mark.parametrize("method", ["ml", "two-step"])
def test_the_score_test_is_the_t_test_of_the_mills_ratio(method):
    frame = frame_of(strength=0.5)
    found = hk.heckman("y ~ x", "~ x + z", frame, method=method).test_rho_zero()
    peer = least_squares_on_mills(frame)
    assert found.statistic == pytest.approx(peer.tvalues[2] ** 2, rel=1e-6)
    assert found.p_value == pytest.approx(peer.pvalues[2], rel=1e-6)
    assert found.denominator == peer.df_resid


def test_the_score_test_follows_the_covariance():
    frame = frame_of(strength=0.5)
    s = frame.y.notna()
    robust = hk.heckman("y ~ x", "~ x + z", frame, covariance="robust").test_rho_zero()
    peer = least_squares_on_mills(frame, cov_type="HC0")
    # of a factor n / (n - 1), n counts all rows
    assert robust.statistic == pytest.approx(peer.tvalues[2] ** 2 * 299 / 300, rel=1e-6)
    cluster = hk.heckman("y ~ x", "~ x + z", frame, groups="group").test_rho_zero()
    groups = {"groups": frame.group[s], "use_correction": False}
    peer = least_squares_on_mills(frame, cov_type="cluster", cov_kwds=groups)
    assert cluster.statistic == pytest.approx(peer.tvalues[2] ** 2 * 29 / 30, rel=1e-6)
    assert cluster.denominator == 29


def test_the_score_test_of_a_binary_outcome_is_that_of_statsmodels():
    """`score_test` of a probit without the Mills ratio, with the expected information."""
    data = draw(np.random.default_rng(3), Setting("binary", 400, "weak", 0.5))
    s = data.s
    index = data.w[s] @ sm.Probit(s * 1.0, data.w).fit(disp=0).params
    mills = stats.norm.pdf(index) / stats.norm.cdf(index)
    model = sm.GLM(data.y[s], data.x[s], sm.families.Binomial(sm.families.links.Probit()))
    statistic, p_value, _ = model.score_test(
        model.fit(tol=1e-12).params, exog_extra=mills[:, None], observed=False
    )
    found = fit_binary(data, np.array([0, 1])).test_rho_zero("score")
    assert found.statistic == pytest.approx(np.squeeze(statistic), rel=1e-5)
    assert found.p_value == pytest.approx(np.squeeze(p_value), rel=1e-5)


def test_coefficient_intervals_end_where_the_likelihood_ratio_says(weak):
    """The likelihood with the slope held, maximised over all else by brute force from several
    starts, has dropped by the critical value at both ends."""
    sample, scalings = standardised_sample(weak.data)
    slope = weak.to_frame(0.9).loc[("outcome", "x")]
    best = weak.scan.modes[weak.selected]
    for end in (slope.low, slope.high):
        # standardised: y = (y - centre) / y_scale, x = (x - centre) / x_scale
        held = end * scalings.x.scale[1] / scalings.y_scale
        top = max(
            _profile_of_slope(sample, best, held, a) for a in np.arctanh([-0.9, -0.4, 0.4, 0.9])
        )
        drop = 2 * (best.value - top) / MEAN_OF_STATISTIC
        # given rho the likelihood is taken as normal, and rho moves on a grid
        assert drop == pytest.approx(2.7055, rel=0.05)


def _profile_of_slope(sample, best, held, a):
    q, theta = sample.q, best.v[-1]
    start = np.concatenate([best.v[:q], best.v[q:-1] / theta, [-np.log(theta), a]])
    kept = np.delete(np.arange(len(start)), q + 1)

    def objective(rest):
        full = start.copy()
        full[kept], full[q + 1] = rest, held
        f, g = plain_loglik(full, sample)
        return f, g[kept]

    return -minimize(objective, start[kept], method="BFGS", jac=True).fun


def test_well_identified_fits_have_wald_inference():
    fit = hk.heckman("y ~ x", "~ x + z", frame_of(2000, strength=1.0))
    assert fit.inference == "wald"
    assert fit.over_rho is None
    pd.testing.assert_frame_equal(fit.to_frame(), fit.to_frame(method="wald"))
    with pytest.raises(hk.DataError, match="use method='wald'"):
        fit.to_frame(method="profile")


def test_weak_fits_have_profile_inference(weak):
    assert weak.inference == "profile"
    default, wald = weak.to_frame(), weak.to_frame(method="wald")
    columns = ["coef", "se", "z"]
    pd.testing.assert_frame_equal(default[columns], wald[columns])
    pd.testing.assert_frame_equal(default.loc[["select"]], wald.loc[["select"]])
    assert (default.low < wald.low)["outcome", "x"] or (default.high > wald.high)["outcome", "x"]
    np.testing.assert_allclose(
        np.tanh(default.loc[("ancillary", "atanh_rho"), ["low", "high"]].astype(float)),
        weak.interval("rho"),
        atol=0.01,  # between the nodes by linear interpolation
    )
    for method in ("likelihood", pd.NA, pd.DataFrame()):
        with pytest.raises(hk.DataError, match="method must be 'wald' or 'profile'"):
            weak.to_frame(method=method)
    with pytest.raises(hk.DataError, match="level must be at most"):
        weak.to_frame(0.99999)


def test_averages_and_margins_use_the_same_intervals(weak):
    slope = weak.to_frame(0.9).loc[("outcome", "x")]
    effect = weak.margins(level=0.9).loc["x"]
    np.testing.assert_allclose(effect[["low", "high"]], slope[["low", "high"]], rtol=1e-6)
    assert effect.se == pytest.approx(slope.se)
    for target in ("population", "selected", "unselected"):
        found = weak.average(target)
        assert found["mean"] == pytest.approx(weak.predict(target=target).mean.mean())
        assert found.low < found["mean"] < found.high
    wald = hk.heckman("y ~ x", "~ x + z", frame_of(2000, strength=1.0))
    found = wald.average(level=0.9)
    assert found.high - found.low == pytest.approx(2 * 1.644854 * found.se)


def test_intervals_of_probabilities_cover_without_an_instrument():
    """90 % intervals at rho = 0, three points in each of 15 draws; those of the delta method cover
    about half of them. Three standard errors, as if the points of a draw were one."""
    setting = Setting("binary", 300, "none", 0.0)
    found = [run_binary(draw(np.random.default_rng(seed), setting), 0.0) for seed in range(15)]
    default, wald = (
        np.mean([row[f"{name}_probability90"] for row in found]) for name in ("default", "wald")
    )
    assert default > 0.86 - 3 * np.sqrt(0.86 * 0.14 / 15)
    assert wald < default - 0.1
