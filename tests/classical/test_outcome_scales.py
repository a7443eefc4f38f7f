"""`target_transform` and `unobserved` of `hk.heckman`, against computations by hand."""

import numpy as np
import pytest
from scipy.stats import norm

import heckesel as hk

FORMULAS = "wage ~ x", "~ x + z"
NODES, HEIGHTS = np.polynomial.hermite_e.hermegauss(80)
HEIGHTS = HEIGHTS / HEIGHTS.sum()


@pytest.fixture(scope="module")
def wages():
    frame = hk.datasets.make_controlled(800, rho=0.6, alpha=1.5, seed=4).frame
    return frame[["x", "z"]].assign(wage=np.exp(1 + 0.3 * frame["y"]))


def inverse_yeo_johnson(z, power):
    """Of positive y."""
    return (power * z + 1) ** (1 / power) - 1


def backward(fit):
    power = fit.transform.parameter
    return {
        "log": np.exp,
        "log1p": np.expm1,
        "sqrt": lambda z: z * np.abs(z),
        "yeo-johnson": lambda z: inverse_yeo_johnson(np.maximum(z, -0.99 / power), power),
    }[fit.transform.name]


def mean_of_y(fit, x, shift=0.0):
    """E[inverse(x'beta + shift + sigma e)] by quadrature over a normal e."""
    beta = fit.params["outcome"]
    location = beta["Intercept"] + beta["x"] * np.asarray(x) + shift
    return backward(fit)(location[:, None] + fit.sigma * NODES) @ HEIGHTS


@pytest.mark.parametrize("method", ["ml", "two-step"])
@pytest.mark.parametrize(
    ("name", "by_hand"), [("log", "log(wage)"), ("log1p", "np.log1p(wage)"), ("sqrt", "wage**0.5")]
)
@pytest.mark.filterwarnings("ignore::heckesel.IdentificationWarning")
def test_the_fit_is_that_of_the_transformed_outcome(wages, method, name, by_hand):
    fit = hk.heckman(*FORMULAS, wages, method=method, target_transform=name)
    z = wages.assign(wage=wages.eval(by_hand.replace("np.", "")))
    expected = hk.heckman(*FORMULAS, z, method=method)
    np.testing.assert_allclose(fit.params, expected.params, rtol=1e-12)
    assert f"{name}(wage)" in str(fit.summary())
    level = fit.predict(wages.head(3), target="selected").interval(0.9)
    scaled = expected.predict(wages.head(3), target="selected").interval(0.9)
    np.testing.assert_allclose(level, backward(fit)(scaled), rtol=1e-9)


@pytest.mark.parametrize("name", ["log", "log1p", "sqrt", "yeo-johnson"])
@pytest.mark.filterwarnings("ignore::heckesel.IdentificationWarning")
def test_averages_and_margins_are_on_the_scale_of_the_outcome(wages, name):
    fit = hk.heckman(*FORMULAS, wages, target_transform=name)
    x, step = wages["x"].to_numpy(), 1e-5
    expected = mean_of_y(fit, x).mean()
    assert fit.average()["mean"] == pytest.approx(expected, rel=1e-6)
    slope = (mean_of_y(fit, x + step) - mean_of_y(fit, x - step)).mean() / (2 * step)
    assert fit.margins().loc["x", "effect"] == pytest.approx(slope, rel=1e-5)
    predicted = fit.predict(wages).mean  # also averages over the uncertainty of the estimates
    assert predicted.mean() == pytest.approx(expected, rel=0.01)


@pytest.mark.filterwarnings("ignore::heckesel.IdentificationWarning")
def test_a_lognormal_mean_given_selection_has_a_closed_form(wages):
    """E[exp(a + sigma e) | u > -t] = exp(a + sigma^2/2) Phi(t + rho sigma) / Phi(t)."""
    fit = hk.heckman(*FORMULAS, wages, target_transform="log")
    beta, gamma = fit.params["outcome"], fit.params["select"]
    a = beta["Intercept"] + beta["x"] * wages["x"]
    t = gamma["Intercept"] + gamma["x"] * wages["x"] + gamma["z"] * wages["z"]
    every = np.exp(a + fit.sigma**2 / 2)
    expected = every * norm.cdf(t + fit.rho * fit.sigma) / norm.cdf(t)
    assert fit.average(target="selected")["mean"] == pytest.approx(expected.mean(), rel=1e-9)


def test_what_has_no_meaning_on_another_scale_is_refused(wages, tmp_path):
    fit = hk.heckman(*FORMULAS, wages, target_transform="log")
    with pytest.raises(hk.DataError, match="sensitivity is on the scale of the fit"):
        hk.sensitivity(fit)
    with pytest.raises(hk.DataError, match=r"is on the scale log\(wage\)"):
        fit.augment(wages)
    with pytest.raises(hk.DataError, match="unobserved= needs one column as the outcome"):
        hk.heckman("wage + x ~ x", "~ x + z", wages, unobserved=0)
    wages.to_parquet(tmp_path / "w.parquet")
    for options in ({"unobserved": 0}, {"target_transform": "log"}):
        with pytest.raises(hk.DataError, match=f"{next(iter(options))}= needs a frame"):
            hk.heckman(*FORMULAS, str(tmp_path / "w.parquet"), **options)
