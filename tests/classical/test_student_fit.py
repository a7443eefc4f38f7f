"""`hk.heckman(errors="t")`: against a second optimiser, simulation and its limits."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import t as student

import heckesel as hk


def draw(n, seed, *, rho=0.5, df=5.0, instrument=0.8):
    rng = np.random.default_rng(seed)
    x, z, u, v = rng.standard_normal((4, n))
    e = rho * u + np.sqrt(1 - rho**2) * v
    if np.isfinite(df):
        mixing = np.sqrt(rng.chisquare(df, n) / df)
        u, e = u / mixing, e / mixing
    y = 1 + x + 1.5 * e
    observed = 0.3 + x + instrument * z + u > 0
    return pd.DataFrame({"x": x, "z": z, "y": np.where(observed, y, np.nan), "hidden": y})


@pytest.fixture(scope="module")
def frame():
    return draw(1500, 4)


@pytest.fixture(scope="module")
def fit(frame):
    return hk.heckman("y ~ x", "~ x + z", frame, errors="t")


def textbook(parameters, frame):
    """Minus the log-likelihood as the model is written, through scipy.stats."""
    beta, gamma, rho = parameters[:2], parameters[2:5], np.tanh(parameters[5])
    sigma, nu = np.exp(parameters[6:])
    index = gamma[0] + gamma[1] * frame.x.to_numpy() + gamma[2] * frame.z.to_numpy()
    s = frame.y.notna().to_numpy()
    e = (frame.y.to_numpy()[s] - beta[0] - beta[1] * frame.x.to_numpy()[s]) / sigma
    argument = (index[s] + rho * e) / np.sqrt(1 - rho**2) * np.sqrt((nu + 1) / (nu + e**2))
    selected = student.logpdf(e, nu) - np.log(sigma) + student.logcdf(argument, nu + 1)
    return -(selected.sum() + student.logcdf(-index[~s], nu).sum())


def test_another_optimiser_finds_the_same_maximum(frame, fit):
    start = np.array([0.5, 0.5, 0.0, 0.5, 0.5, 0.0, 0.2, 2.0])
    found = minimize(textbook, start, (frame,), "BFGS", options={"gtol": 1e-4})
    assert fit.loglik == pytest.approx(-found.fun, abs=1e-5)
    np.testing.assert_allclose(fit.params, found.x, atol=2e-4)  # BFGS stops at a slope of 1e-4
    assert fit.loglik == pytest.approx(-textbook(fit.params.to_numpy(), frame), abs=1e-8)


def test_normal_errors_end_as_the_normal_fit():
    data = draw(3000, 3, df=np.inf)
    flat = hk.heckman("y ~ x", "~ x + z", data)
    heavy = hk.heckman("y ~ x", "~ x + z", data, errors="t")
    assert heavy.status == "boundary"
    assert heavy.df == pytest.approx(1e5)
    assert "nearly normal errors" in heavy.summary()
    shared = flat.params.index
    np.testing.assert_allclose(heavy.params[shared], flat.params, atol=1e-3)
    np.testing.assert_allclose(heavy.se[shared], flat.se, rtol=1e-3)
    assert np.isnan(heavy.se["ancillary", "log_df"])
    for target in ("population", "selected", "unselected"):
        ours, known = heavy.predict(target=target), flat.predict(target=target)
        np.testing.assert_allclose(ours.mean, known.mean, atol=2e-3)
        np.testing.assert_allclose(ours.std, known.std, rtol=1e-3)


def test_without_a_variance_the_prediction_says_so():
    data = draw(1500, 31, df=1.4)
    fitted = hk.heckman("y ~ x", "~ x + z", data, errors="t")
    assert 1 < fitted.df < 2
    assert "no finite variance" in fitted.summary()
    with pytest.warns(hk.IdentificationWarning, match="variance of the errors is infinite"):
        predictive = fitted.predict(data.head(2))
    assert np.isinf(predictive.std).all()
    np.testing.assert_allclose(predictive.cdf(predictive.quantile(0.8)), 0.8, atol=1e-9)
    with pytest.warns(hk.IdentificationWarning):
        assert np.isfinite(fitted.predict(data.head(2), target="unselected").interval()).all()
