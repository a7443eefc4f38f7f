"""`hk.heckman(errors="shape", scale=...)`: a second optimiser, nested fits, simulation, limits."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr

import heckesel as hk

NEAR_95 = 0.95 - 3 * np.sqrt(0.95 * 0.05 / 40)  # three Monte Carlo standard errors of 40 draws


def exponential(q, x, rng):
    return -np.log(ndtr(-q)) - 1


def varying(q, x, rng):
    return q * np.exp(0.5 * x)


def shaped(q, x, rng):
    return np.exp(0.3 * x) * np.sinh((np.arcsinh(q) + 0.5) / 0.8)


def draw(n, seed, errors=shaped, rho=0.5):
    """y = 1 + x + e, e a function of a normal q with corr(u, q) = rho; z moves selection alone."""
    rng = np.random.default_rng(seed)
    x, z, u, v = rng.standard_normal((4, n))
    y = 1 + x + errors(rho * u + np.sqrt(1 - rho**2) * v, x, rng)
    observed = 0.3 + 0.5 * x + z + u > 0
    return pd.DataFrame({"x": x, "z": z, "y": np.where(observed, y, np.nan), "hidden": y})


@pytest.fixture(scope="module")
def frame():
    return draw(1200, 8)


@pytest.fixture(scope="module")
def fit(frame):
    return hk.heckman("y ~ x", "~ x + z", frame, errors="shape", scale="~ x")


def textbook(parameters, frame):
    """Minus the log-likelihood as the model is written."""
    beta, gamma, rho = parameters[:2], parameters[2:5], np.tanh(parameters[5])
    log_sigma, skewness, log_tail, slope = parameters[6:]
    x, s = frame.x.to_numpy(), frame.y.notna().to_numpy()
    index = gamma[0] + gamma[1] * x + gamma[2] * frame.z.to_numpy()
    log_sigma = log_sigma + slope * x[s]
    e = (frame.y.to_numpy()[s] - beta[0] - beta[1] * x[s]) / np.exp(log_sigma)
    t = np.exp(log_tail) * np.arcsinh(e) - skewness
    q = np.sinh(t)
    density = -0.5 * q**2 - 0.5 * np.log(2 * np.pi) + log_tail + np.log(np.cosh(t))
    selected = density - 0.5 * np.log1p(e**2) - log_sigma
    selected += log_ndtr((index[s] + rho * q) / np.sqrt(1 - rho**2))
    return -(selected.sum() + log_ndtr(-index[~s]).sum())


def test_another_optimiser_finds_the_same_maximum(frame, fit):
    start = np.array([0.5, 0.5, 0.0, 0.5, 0.5, 0.0, 0.2, 0.0, 0.0, 0.0])
    found = minimize(textbook, start, (frame,), "BFGS", options={"gtol": 1e-4})
    assert fit.status == "converged"
    assert fit.loglik == pytest.approx(-found.fun, abs=1e-5)
    np.testing.assert_allclose(fit.params, found.x, atol=5e-4)  # BFGS stops at a slope of 1e-4
    assert fit.loglik == pytest.approx(-textbook(fit.params.to_numpy(), frame), abs=1e-8)


def test_standard_errors_are_those_of_the_textbook_likelihood(frame, fit):
    """The information in the user's units, by differences."""
    at, step = fit.params.to_numpy(), 1e-3
    size = len(at)
    moves = step * np.eye(size)
    hessian = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            corners = [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]
            hessian[i, j] = sum(
                sign * textbook(at + a * moves[i] + b * moves[j], frame) for a, b, sign in corners
            ) / (4 * step**2)
    np.testing.assert_allclose(fit.cov, np.linalg.inv(hessian), rtol=1e-3, atol=1e-6)


def test_likelihood_ratios_are_those_of_the_nested_fits(frame, fit):
    found = fit.test_errors("lr")
    normal = hk.heckman("y ~ x", "~ x + z", frame, scale="~ x")
    constant = hk.heckman("y ~ x", "~ x + z", frame, errors="shape")
    assert found["normal errors"].statistic == pytest.approx(2 * (fit.loglik - normal.loglik))
    assert found["normal errors"].degrees_of_freedom == 2
    assert found["constant sigma"].statistic == pytest.approx(2 * (fit.loglik - constant.loglik))
    wald = fit.test_errors()
    assert list(wald) == ["no skewness", "normal tails", "normal errors", "constant sigma"]
    z = fit.params["scale", "x"] / fit.se["scale", "x"]
    assert wald["constant sigma"].statistic == pytest.approx(z**2)
    text = fit.summary()
    for line in ("shape errors", "log sigma:", "Test of normal errors", "Test of constant sigma"):
        assert line in text
    assert fit.to_dict()["tail"] == fit.tail


def covered(kind, draws, n, seed=5000, **options):
    """How often a 95 % interval of the slope holds 1."""
    hits = 0
    for k in range(draws):
        fit = hk.heckman("y ~ x", "~ x + z", draw(n, seed + k, kind), **options)
        hits += abs(fit.params["outcome", "x"] - 1) < 1.96 * fit.se["outcome", "x"]
    return hits / draws


def test_exponential_errors_are_covered_and_normal_ones_are_not():
    assert covered(exponential, 60, 1000, errors="shape") >= 0.88
    assert covered(exponential, 60, 1000) < 0.6


@pytest.mark.parametrize("errors", ["normal", "shape"])
def test_a_sigma_that_varies_is_covered_with_its_column(errors):
    assert covered(varying, 40, 600, errors=errors, scale="~ x") > NEAR_95


def test_skewness_at_its_limit_leaves_the_other_standard_errors():
    fit = hk.heckman("y ~ x", "~ x + z", draw(1000, 3, exponential), errors="shape")
    assert fit.skewness == pytest.approx(3.0)
    assert fit.status == "boundary"
    assert np.isnan(fit.se["ancillary", "skewness"])
    assert np.isfinite(fit.se.drop(("ancillary", "skewness"))).all()
    assert "skewness is at a limit of its range" in fit.summary()
    assert np.isfinite(fit.predict(target="unselected").std).all()


def test_impossible_options_of_these_errors_are_refused(frame):
    def ask(**options):
        return hk.heckman("y ~ x", "~ x + z", frame, **options)

    for options, sentence in (
        ({"errors": "shape", "method": "two-step"}, "method='two-step' assumes normal errors"),
        ({"scale": "~ x", "method": "two-step"}, "method='two-step' assumes a constant sigma"),
        ({"scale": "~ age"}, "no column 'age'"),
        ({"scale": "~ x + I(2 * x)"}, "linear combination of 'x'"),
    ):
        with pytest.raises(hk.DataError, match=sentence):
            ask(**options)
    with pytest.raises(hk.DataError, match="x has no such column"):
        hk.heckman(y=frame.y, x=frame[["x"]], w=frame[["x", "z"]], scale=["z"])
    with pytest.raises(hk.DataError, match="every unit has an outcome"):
        hk.heckman("hidden ~ x", "~ x + z", frame, scale="~ x")
