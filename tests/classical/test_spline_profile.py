"""Splines averaged over rho: derivatives, special cases, and what other estimators find."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

import heckesel as hk
from heckesel.classical.spline_profile import (
    PRIORS,
    Problem,
    fit_profile,
    spline_basis,
)
from heckesel.data import DataScale, selection_data
from heckesel.errors import DataError
from heckesel.math.sinh_arcsinh import population_moments, stretch

MODELS = [(errors, scale) for errors in PRIORS for scale in ((), (0,))]


def _draw(n=400, seed=0, rho=0.7, alpha=1.0, errors="normal", f=np.sin):
    """Two columns, an instrument, and errors of the outcome with sd .5 from an error model."""
    rng = np.random.default_rng(seed)
    x, z, u = rng.uniform(-2, 2, (n, 2)), rng.normal(size=n), rng.normal(size=n)
    e = rho * u + np.sqrt(1 - rho**2) * rng.normal(size=n)
    if errors == "shape":
        moments = population_moments(0.5, -0.1)
        e = (stretch(e, 0.5, -0.1) - moments.mean) / np.sqrt(moments.variance)
    elif errors == "t":
        root = np.sqrt(rng.chisquare(6, n) / 6)
        u, e = u / root, e / root / np.sqrt(6 / 4)
    y = 3 + f(x[:, 0]) + 0.5 * x[:, 1] + 0.5 * e
    seen = np.where(0.3 - 0.5 * x[:, 0] + alpha * z + u > 0, y, np.nan)
    names = {"x_names": ["a", "b"], "w_names": ["a", "b", "z"]}
    return selection_data(x, np.column_stack([x, z]), seen, **names)


def _problem(data, errors="normal", scale=(), basis=None):
    scaling = DataScale.of(data)
    x = scaling.x(data.x[data.s])
    basis = basis or spline_basis(x, (), knots=3)
    return Problem(data, scaling, basis.columns(x), basis.membership, errors=errors, scale=scale)


@pytest.mark.parametrize(("errors", "scale"), MODELS)
def test_score_and_information_are_differences_of_the_likelihood(errors, scale):
    data = replace(_draw(60), weight=np.random.default_rng(1).uniform(0.5, 2, 60))
    problem, a, step = _problem(data, errors, scale), 0.6, 1e-5
    v = problem.start()[0] + np.random.default_rng(2).normal(0, 0.15, problem.size)
    _, score, information = problem.surface(v, a)
    for j, unit in enumerate(np.eye(problem.size)):
        up, down = (problem.surface(v + side * step * unit, a) for side in (1, -1))
        # central differences at this step err by 1e-9 of the size of the derivatives
        np.testing.assert_allclose((up[0] - down[0]) / (2 * step), score[j], rtol=1e-6, atol=1e-6)
        slope = (up[1] - down[1]) / (2 * step)
        np.testing.assert_allclose(-slope, information[:, j], rtol=1e-5, atol=1e-5)


def test_straight_lines_at_the_ml_rho_are_the_ml_fit():
    frame = hk.datasets.make_controlled(800, rho=0.6, alpha=1.0, seed=2).frame
    ml = hk.heckman("y ~ x", "~ x + z", frame, method="ml")
    names = {"x_names": ["x"], "w_names": ["x", "z"]}
    data = selection_data(frame[["x"]], frame[["x", "z"]], frame["y"], **names)
    scaling = DataScale.of(data)
    basis = spline_basis(scaling.x(data.x[data.s]), (), knots=0)
    straight = replace(basis, curves=(None,), membership=np.zeros((2, 0)))
    problem = _problem(data, basis=straight)
    found = problem.optimum(float(np.arctanh(ml.rho)), *problem.start())
    sigma = scaling.y_scale / found.v[problem.theta]
    np.testing.assert_allclose(sigma, ml.sigma, rtol=1e-6)
    slope = sigma * found.v[problem.delta][1] / scaling.x_scale[0]
    np.testing.assert_allclose(slope, ml.params["outcome"]["x"], rtol=1e-5)
    unit = data.s.sum() * np.log(scaling.y_scale)
    value = problem.surface(found.v, float(np.arctanh(ml.rho)))[0] - unit
    np.testing.assert_allclose(value, ml.loglik, rtol=1e-9)
    for a in np.arctanh(ml.rho) + np.array([-0.1, 0.1]):
        other = problem.optimum(a, found.v, found.ridge)
        assert problem.surface(other.v, a)[0] - unit < value


@pytest.mark.parametrize("errors", PRIORS)
def test_an_instrument_finds_rho_and_the_curve(errors):
    data = _draw(1500, seed=3, errors=errors)
    fit = fit_profile(data, errors=errors)
    low, high = fit.info.rho_interval
    # 90 % intervals widened by half of their length, and as narrow as 750 outcomes allow
    assert low - 0.5 * (high - low) < 0.7 < high + 0.5 * (high - low)
    assert high - low < 0.4
    assert sum(mode.weight for mode in fit.info.modes) == pytest.approx(1.0)
    at = np.column_stack([np.linspace(-1.8, 1.8, 9), np.zeros(9)])
    found = fit.predict(at)
    # the error of a curve through 750 units with an sd of .5, and of rho
    np.testing.assert_allclose(found.mean, 3 + np.sin(at[:, 0]), atol=0.25)
    assert (np.abs(found.mean - 3 - np.sin(at[:, 0])) < 4 * np.sqrt(found.epistemic)).all()
    np.testing.assert_allclose(np.sqrt(found.aleatoric), 0.5, rtol=0.2)
    w = np.column_stack([at, np.zeros(9)])
    one, other = (fit.predict(at, w, target).mean for target in ("selected", "unselected"))
    assert (one > found.mean).all()
    assert (other < found.mean).all()
    # the law of total expectation; a mixture over rho holds it for each of its points
    p = ndtr(fit.index(w))
    np.testing.assert_allclose(p * one + (1 - p) * other, found.mean, atol=0.01)


def test_intervals_for_rho_cover_without_an_instrument():
    covered = []
    for seed in range(12):
        data = _draw(400, seed=100 + seed, alpha=0.0, rho=0.6)
        low, high = fit_profile(replace(data, w=data.x, w_names=("a", "b"))).info.rho_interval
        covered.append(low < 0.6 < high)
    # 12 draws at 90 %: fewer than 8 have a probability below .005
    assert sum(covered) >= 8


@pytest.mark.parametrize(("errors", "scale"), MODELS)
def test_gradients_of_the_mean_are_differences_over_the_coefficients(errors, scale):
    data = _draw(300, seed=5)
    fit = fit_profile(data, errors=errors, scale=scale, interactions=(), knots=3)
    at, w = data.x[:4], data.w[:4]
    points = fit.points
    for target in ("population", "unselected"):
        (first, *_) = fit.component_means(at, w, target)
        for name in ("delta", "theta", "scale", *(("extra",) if errors == "shape" else ())):
            values = getattr(points, name)
            for column in range(values.shape[1] if values.ndim > 1 else 1):
                moved = []
                for step in (1e-5, -1e-5):
                    other = values.copy()
                    other[(0, column) if values.ndim > 1 else 0] += step
                    again = replace(fit, points=replace(points, **{name: other}))
                    moved.append(next(iter(again.component_means(at, w, target))).mean)
                place = {"delta": 0, "theta": points.delta.shape[1]}
                place["scale"] = place["theta"] + 1
                place["extra"] = place["scale"] + points.scale.shape[1]
                slope = first.gradient[:, place[name] + column]
                difference = (moved[0] - moved[1]) / 2e-5
                np.testing.assert_allclose(difference, slope, rtol=1e-5, atol=1e-7)


def test_a_prior_moves_the_posterior_and_zero_is_zero():
    data = replace(_draw(300, alpha=0.0, rho=0.0, seed=7), w_names=("a", "b", "z"))
    low, high = fit_profile(data, prior=lambda rho: (rho < 0) * 1.0).info.rho_interval
    assert low < high <= 0.0 + 0.01
    free = fit_profile(data).info
    flat = fit_profile(data, prior=np.ones_like).info
    np.testing.assert_allclose(flat.rho_interval, free.rho_interval, rtol=1e-12)
    for bad in (lambda rho: 1.0, lambda rho: -np.ones_like(rho), np.zeros_like):
        with pytest.raises(DataError, match="rho_prior function must take an array"):
            fit_profile(data, prior=bad)


def test_the_basis_is_as_flexible_as_the_rows_support():
    rng = np.random.default_rng(0)
    rich, poor = spline_basis(rng.normal(size=(2000, 3))), spline_basis(rng.normal(size=(60, 3)))
    assert len(rich.surfaces) == 3
    assert not poor.surfaces
    assert poor.membership.shape[0] <= 60 / 4
    assert spline_basis(rng.normal(size=(12, 3))).curves == (None,) * 3
    assert spline_basis(np.array([[0.0], [1.0]] * 50)).curves == (None,)
    with pytest.raises(DataError, match="an interaction is two different columns below 3"):
        spline_basis(rng.normal(size=(99, 3)), [(0, 3)])


def test_the_scale_of_the_public_method_widens_where_the_noise_does():
    rng = np.random.default_rng(8)
    x, z, u, v = rng.normal(size=(4, 900))
    y = np.where(0.3 + z + u > 0, x + np.exp(0.7 * x) * v, np.nan)
    X = pd.DataFrame({"x": x, "z": z})
    model = hk.HeckmanRegressor(["z"], method="profile", scale=["x"]).fit(X, y)
    low, high = model.predict_distribution(pd.DataFrame({"x": [-1.0, 1.0]})).aleatoric ** 0.5
    assert high / low == pytest.approx(np.exp(1.4), rel=0.3)  # four standard errors
