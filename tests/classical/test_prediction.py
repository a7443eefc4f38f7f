"""Predictions for the three targets and marginal effects."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import heckesel as hk
from reproduction.e0_gate import draw_linear, fit_rand_hie
from reproduction.result_files import read_reference

STATA_NAMES = {"ml": "hml", "two-step": "h2s"}


@pytest.mark.parametrize("method", ["ml", "two-step"])
@pytest.mark.parametrize(("target", "prefix"), [("population", "ystar"), ("selected", "ypos")])
def test_means_equal_those_of_stata(method, target, prefix):
    printed = read_reference("rand_hie")["predictions"][prefix + STATA_NAMES[method]]
    mean = fit_rand_hie(method).predict(target=target).mean
    ours = [mean.mean(), mean.std(ddof=1), mean.min(), mean.max()]
    stata = [float(printed[key]) for key in ("mean", "sd", "min", "max")]
    np.testing.assert_allclose(ours, stata, rtol=2e-6)


@pytest.fixture(scope="module")
def linear():
    return hk.heckman("y ~ x", "~ x + z", draw_linear(3000, rho=0.7, seed=11))


def test_selected_and_unselected_average_to_the_population(linear):
    """E[y] = P(s) E[y | s] + P(not s) E[y | not s], for every row."""
    frame = linear.design.frame
    chance = ndtr(linear.design.selection_matrix(frame) @ linear.params["select"].to_numpy())
    parts = [linear.predict(frame, target=t).mean for t in ("selected", "unselected")]
    whole = linear.predict(frame).mean
    np.testing.assert_allclose(chance * parts[0] + (1 - chance) * parts[1], whole, atol=1e-10)


def test_intervals_cover_the_outcomes_of_each_group():
    """Fit on one sample, check on the true outcomes of another, hidden ones included."""
    rng = np.random.default_rng(5)
    x, z, u, v = rng.standard_normal((4, 20_000))
    y = 1 + 2 * x + 1.5 * (0.7 * u + np.sqrt(0.51) * v)
    s = 0.3 - 0.5 * x + z + u > 0
    fresh = pd.DataFrame({"x": x, "z": z})
    fit = hk.heckman("y ~ x", "~ x + z", draw_linear(20_000, rho=0.7, seed=12))
    for target, rows in (("population", s | ~s), ("selected", s), ("unselected", ~s)):
        low, high = fit.predict(fresh[rows], target=target).interval(0.9).T
        inside = np.mean((y[rows] > low) & (y[rows] < high))
        assert abs(inside - 0.9) < 4 * np.sqrt(0.09 / rows.sum()), target


def test_a_two_step_rho_beyond_one_cannot_predict_the_selected():
    rng = np.random.default_rng(8)
    x, u, v = rng.standard_normal((3, 200))
    y = np.where(x + u > 0, x + 3 * u + 0.1 * v, np.nan)
    fit = hk.heckman("y ~ x", "~ x", pd.DataFrame({"x": x, "y": y}), method="two-step")
    if abs(fit.rho) <= 1:
        pytest.fail("the draw no longer has rho beyond one; choose another seed")
    assert "outside [-1, 1]" in fit.summary()
    with pytest.raises(hk.HeckeselError, match="not a possible correlation"):
        fit.predict(target="selected")
    assert np.isfinite(fit.predict().mean).all()


def test_margins_follow_transformations_and_categories():
    frame = draw_linear(1500, rho=0.5, seed=14)
    frame["g"] = np.random.default_rng(2).choice(["a", "b", "c"], len(frame))
    frame["y"] += 0.5 * (frame.g == "b")
    fit = hk.heckman("y ~ x + I(x**2) + g", "~ x + z + g", frame)
    beta = fit.params["outcome"]
    effects = fit.margins()
    slope = beta["x"] + 2 * beta["I(x ** 2)"] * frame.x.mean()
    assert effects.loc["x", "effect"] == pytest.approx(slope, rel=1e-6)
    assert effects.loc["g[b]", "effect"] == pytest.approx(beta["g[T.b]"], rel=1e-9)
    assert effects.loc["g[b]", "se"] == pytest.approx(fit.se["outcome", "g[T.b]"], rel=1e-9)
