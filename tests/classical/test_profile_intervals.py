"""Tests and intervals of rho and sigma."""

import numpy as np
import pytest
from scipy.optimize import minimize

import heckesel as hk
from heckesel.classical.rows import standardised_sample
from reproduction.e0_gate import draw_linear, fit_mroz_greene, fit_rand_hie
from reproduction.result_files import read_reference
from tests.classical.test_modes import plain_loglik


@pytest.fixture(scope="module")
def rand():
    return fit_rand_hie("ml")


def test_wald_intervals_equal_those_of_stata(rand):
    printed = read_reference("rand_hie")["mle"]
    for name in ("rho", "sigma"):
        stata = [float(v) for v in printed[name]["ci"]]
        np.testing.assert_allclose(rand.interval(name, method="wald"), stata, rtol=2e-6)


def test_tests_of_rho_equal_those_of_stata(rand):
    printed = read_reference("rand_hie")["mle"]
    assert rand.test_rho_zero("lr").statistic == pytest.approx(
        float(printed["lr_test_rho0_chi2_1"]), abs=0.006
    )
    athrho = printed["athrho"]
    z = float(athrho["coef"]) / float(athrho["se"])
    assert rand.test_rho_zero("wald").statistic == pytest.approx(z**2, rel=1e-5)
    slopes = [("outcome", name) for name in rand.params["outcome"].index if name != "Intercept"]
    assert rand.wald_test(slopes).statistic == pytest.approx(805.17, abs=0.006)


def brute_force_profile(sample, position, value, start):
    """The likelihood with one parameter held, maximised by a quasi-Newton method."""
    kept = np.delete(np.arange(len(start)), position)

    def objective(rest):
        full = start.copy()
        full[kept], full[position] = rest, value
        f, g = plain_loglik(full, sample)
        return f, g[kept]

    found = minimize(objective, start[kept], method="BFGS", jac=True, options={"gtol": 1e-8})
    return -found.fun


@pytest.mark.parametrize("name", ["rho", "sigma"])
def test_the_profile_drops_by_the_chi_squared_quantile_at_the_ends(name):
    fit = hk.heckman("y ~ x", "~ x + z", draw_linear(800, rho=0.6, seed=3))
    sample, scalings = standardised_sample(fit.data)
    best = fit.scan.modes[0]
    theta = best.v[-1]
    start = np.concatenate(
        [best.v[: sample.q], best.v[sample.q : -1] / theta, [-np.log(theta), best.a]]
    )
    for end in fit.interval(name, 0.9, method="profile"):
        held = np.arctanh(end) if name == "rho" else np.log(end / scalings.y_scale)
        value = brute_force_profile(sample, -1 if name == "rho" else -2, held, start)
        assert best.value - value == pytest.approx(2.705543 / 2, abs=2e-5)  # chi2(1) at .9


def test_a_flat_likelihood_has_a_wide_interval_that_may_reach_one():
    greene = fit_mroz_greene()
    low, high = greene.interval("rho", method="profile")
    assert 0.9 < low < greene.rho < high <= 1.0


def test_profile_intervals_cover(capsys):
    """Over 200 samples a 90 % interval of rho covers as often, within Monte Carlo error."""
    hits = 0
    for seed in range(200):
        fit = hk.heckman("y ~ x", "~ x + z", draw_linear(300, rho=0.6, seed=1000 + seed))
        low, high = fit.interval("rho", 0.9, method="profile")
        hits += low <= 0.6 <= high
    assert abs(hits / 200 - 0.9) < 3 * np.sqrt(0.09 / 200)  # three standard errors: .064


def test_two_step_has_no_likelihood_and_says_what_to_do():
    fit = fit_rand_hie("two-step")
    with pytest.raises(hk.DataError, match=r"use bootstrap\(\)"):
        fit.interval("rho")
    with pytest.raises(hk.DataError, match="needs maximum likelihood"):
        fit.test_rho_zero("lr")
    slopes = [t for t in fit.params.index if t[1] != "Intercept" and t[0] != "mills"]
    assert len(slopes) == 34
    # Stata's own figure, 944.44, treats the two equations' estimates as independent
    cov = fit.cov.loc[slopes, slopes].to_numpy().copy()
    cov[:17, 17:] = cov[17:, :17] = 0
    estimate = fit.params[slopes].to_numpy()
    assert estimate @ np.linalg.solve(cov, estimate) == pytest.approx(944.44, abs=0.01)


def test_every_converged_mode_is_a_maximum_even_if_the_likelihood_is_flat():
    """Every interior mode of tiny samples without an instrument is one: slope zero, concave."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, u, v = rng.standard_normal((3, 40))
        y = np.where(x + u > 0, x + 0.3 * u + v, np.nan)
        fit = hk.heckman(y=y, x=x, w=x)
        for mode in fit.scan.modes:
            assert mode.status in ("converged", "boundary"), seed
            if mode.status == "converged":
                assert np.abs(mode.score).max() < 1e-5
                assert np.linalg.eigvalsh(mode.hessian).max() < 0
