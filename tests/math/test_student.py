"""Student's t: log T and its derivatives against 40-digit arithmetic and differences."""

import mpmath as mp
import numpy as np
import pytest
from scipy.special import stdtr

from heckesel.math import student
from heckesel.math.student import log_cdf, log_constant, log_density

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


def test_density_derivatives_in_t_equal_differences():
    t, nu, step = np.array([-3.1, 0.4, 1.7]), 4.3, 1e-5
    up, down, here = (log_density(t + d, nu) for d in (step, -step, 0.0))
    for value, slope in (("value", "d_t"), ("d_t", "d_t_t"), ("d_nu", "d_t_nu")):
        difference = (getattr(up, value) - getattr(down, value)) / (2 * step)
        np.testing.assert_allclose(difference, getattr(here, slope), rtol=1e-7, atol=1e-9)


def test_the_closed_form_for_four_degrees_of_freedom_is_the_distribution_function():
    t = np.concatenate([np.linspace(-40, 40, 801), [-1e8, 1e8]])
    np.testing.assert_allclose(student.cdf(t, 4.0), stdtr(4.0, t), rtol=1e-10)
    np.testing.assert_array_equal(student.cdf(t, 5.0), stdtr(5.0, t))
