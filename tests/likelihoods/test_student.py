"""Bivariate t errors against 40-digit arithmetic, integrals and finite differences."""

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad

from heckesel.likelihoods import normal
from heckesel.likelihoods.student import selected_units, unselected_units
from heckesel.numerics.student import log_cdf, log_constant, log_density

mp.mp.dps = 40
POINTS = [-60.0, -9.3, -2.001, -1.999, -0.1, 0.3, 1.9, 2.1, 7.0]
DEGREES = [1.0, 1.5, 3.0, 7.3, 49.9, 50.1, 200.0, 1e4]


def exact_log_cdf(t, nu):
    t, nu = mp.mpf(t), mp.mpf(nu)
    tail = mp.betainc(nu / 2, mp.mpf(1) / 2, 0, nu / (nu + t * t), regularized=True) / 2
    return mp.log(tail if t < 0 else 1 - tail)


@pytest.mark.parametrize("nu", DEGREES)
def test_log_t_has_thirteen_digits_into_the_tail(nu):
    exact = [float(exact_log_cdf(t, nu)) for t in POINTS]
    np.testing.assert_allclose(log_cdf(np.array(POINTS), nu).value, exact, rtol=1e-13)


def test_log_t_survives_where_t_itself_underflows():
    assert log_cdf(np.array([-60.0]), 1e5).value[0] == pytest.approx(
        float(exact_log_cdf(-60, 1e5)), rel=1e-13
    )


@pytest.mark.parametrize("nu", DEGREES)
def test_derivatives_in_the_degrees_of_freedom_have_nine_digits(nu):
    at = log_cdf(np.array(POINTS), nu)
    first = [float(mp.diff(lambda v, t=t: exact_log_cdf(t, v), nu)) for t in POINTS]
    second = [float(mp.diff(lambda v, t=t: exact_log_cdf(t, v), nu, 2)) for t in POINTS]
    # what is left of them is of order 1/nu^2, after terms of order 1/nu have cancelled
    np.testing.assert_allclose(at.d_nu, first, rtol=1e-9)
    np.testing.assert_allclose(at.d_nu_nu, second, rtol=1e-9)


def test_the_constant_and_its_derivatives_do_not_jump_where_the_series_starts():
    def exact(nu):
        return mp.loggamma((nu + 1) / 2) - mp.loggamma(nu / 2) - mp.log(mp.pi * nu) / 2

    for nu in (2.2, 49.99, 50.01, 3e5):
        value = [float(mp.diff(exact, mp.mpf(nu), order)) for order in range(3)]
        np.testing.assert_allclose(log_constant(nu), value, rtol=1e-10)


def moved(function, point, axis, step):
    here = list(point)
    here[axis] += step
    return function(np.array([here[0]]), *here[1:]) if len(here) < 4 else _selected(here)


def _selected(point):
    return selected_units(np.array([point[0]]), np.array([point[1]]), point[2], point[3])


SELECTED = [
    (0.7, -1.3, 0.4, 1.1),
    (-2.1, 0.6, -1.7, 2.3),
    (-9.0, 2.0, 0.9, 3.9),
    (3.3, -6.9, 2.6, 0.3),
]


@pytest.mark.parametrize("point", SELECTED)
def test_selected_derivatives_equal_differences(point):
    here, step = _selected(point), 1e-5
    for axis in range(4):
        up, down = (moved(None, point, axis, sign * step) for sign in (1, -1))
        # central differences err by step^2 f''' and by rounding, 1e-16 |f| / step
        slope = (up.value - down.value) / (2 * step)
        np.testing.assert_allclose(slope, here.gradient[axis], rtol=1e-6, atol=1e-8)
        bend = (up.gradient - down.gradient) / (2 * step)
        np.testing.assert_allclose(bend, here.hessian[axis], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("point", [(0.7, 0.3, 1.1), (-5.0, 0.0, 0.4), (2.6, -1.2, 3.0)])
def test_unselected_derivatives_equal_differences(point):
    here, step = unselected_units(np.array([point[0]]), *point[1:]), 1e-5
    for axis in range(3):
        up, down = (moved(unselected_units, point, axis, sign * step) for sign in (1, -1))
        slope = (up.value - down.value) / (2 * step)
        np.testing.assert_allclose(slope, here.gradient[axis], rtol=1e-6, atol=1e-8)
        bend = (up.gradient - down.gradient) / (2 * step)
        np.testing.assert_allclose(bend, here.hessian[axis], rtol=1e-6, atol=1e-8)


def test_density_derivatives_in_t_equal_differences():
    t, nu, step = np.array([-3.1, 0.4, 1.7]), 4.3, 1e-5
    up, down, here = (log_density(t + d, nu) for d in (step, -step, 0.0))
    for value, slope in (("value", "d_t"), ("d_t", "d_t_t"), ("d_nu", "d_t_nu")):
        difference = (getattr(up, value) - getattr(down, value)) / (2 * step)
        np.testing.assert_allclose(difference, getattr(here, slope), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("index", [-1.4, 0.6])
@pytest.mark.parametrize("rho", [-0.8, 0.5])
@pytest.mark.parametrize("nu", [2.5, 9.0])
def test_selected_and_unselected_are_one_distribution(index, rho, nu):
    """The density of a selected outcome integrates to the chance of selection."""

    def density(e):
        unit = selected_units(np.array([index]), np.array([e]), np.arctanh(rho), np.log(nu))
        return float(np.exp(unit.value[0]))

    selected = quad(density, -np.inf, np.inf, limit=200)[0]
    unselected = float(np.exp(unselected_units(np.array([index]), 0.0, np.log(nu)).value[0]))
    assert selected + unselected == pytest.approx(1.0, abs=1e-8)  # quad promises 1.5e-8


def test_many_degrees_of_freedom_are_the_normal_model():
    rng = np.random.default_rng(3)
    index, e = rng.normal(0, 1.5, (2, 200))
    t, flat = selected_units(index, e, -0.7, np.log(1e8)), normal.selected_units(index, e, -0.7)
    # they differ by terms of order e^4/nu
    np.testing.assert_allclose(t.value, flat.value, atol=1e-5)
    np.testing.assert_allclose(t.gradient[:3], flat.gradient, atol=1e-4)
    np.testing.assert_allclose(t.hessian[0, 1], flat.hessian[0, 1], atol=1e-4)
    np.testing.assert_allclose(t.gradient[3], 0.0, atol=1e-4)
