"""Sinh-arcsinh errors against 40-digit arithmetic, integrals, differences and the normal."""

import itertools

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad

from heckesel.likelihoods import normal
from heckesel.likelihoods.shape import selected_units

mp.mp.dps = 40

# (index, e, atanh rho, epsilon, log delta): none special, some far into the tails
POINTS = [
    (0.7, -1.3, 0.4, 0.6, -0.3),
    (-2.1, 0.6, -1.7, -0.8, 0.2),
    (-9.0, 2.0, 0.9, 0.1, -0.9),
    (3.3, -6.9, 2.6, -0.4, 0.5),
    (0.2, 40.0, 0.5, 1.4, -0.6),
    (-1.0, -0.02, -3.0, 2.0, -1.2),
]
FAR_OUT = [(0.3, 1e8, 0.8, -0.3, 0.6), (-30.0, -1e200, 1.2, 0.5, -2.0), (5.0, 2.0, 20.0, 0.3, 0.1)]


def units_at(point):
    index, e, *shared = point
    return selected_units(np.array([index]), np.array([e]), *shared)


def exact(point):
    eta, e, a, epsilon, log_delta = map(mp.mpf, point)
    t = mp.exp(log_delta) * mp.asinh(e) - epsilon
    q = mp.sinh(t)
    argument = eta * mp.cosh(a) + q * mp.sinh(a)
    log_cdf = mp.log(mp.erfc(-argument / mp.sqrt(2)) / 2)
    density = -q * q / 2 - mp.log(2 * mp.pi) / 2 + mp.log(mp.cosh(t)) - mp.log(1 + e * e) / 2
    return density + log_delta + log_cdf


@pytest.mark.parametrize("point", POINTS + FAR_OUT)
def test_the_log_likelihood_has_twelve_digits_into_the_tails(point):
    # q = sinh t turns an error of 1e-16 in t, here up to 30, into one of 3e-15 in q
    assert units_at(point).value[0] == pytest.approx(float(exact(point)), rel=1e-12)


@pytest.mark.parametrize("point", POINTS)
def test_derivatives_equal_differences(point):
    here, step = units_at(point), 1e-5
    for axis in range(5):
        up, down = (
            units_at([value + sign * step * (k == axis) for k, value in enumerate(point)])
            for sign in (1, -1)
        )
        # central differences err by step^2 f''' and by rounding, 1e-16 |f| / step
        slope = (up.value - down.value) / (2 * step)
        np.testing.assert_allclose(slope, here.gradient[axis], rtol=1e-6, atol=1e-8)
        bend = (up.gradient - down.gradient) / (2 * step)
        np.testing.assert_allclose(bend, here.hessian[axis], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("point", FAR_OUT)
def test_derivatives_far_out_have_nine_digits(point):
    here = units_at(point)
    for axis in range(5):
        slope = mp.diff(
            lambda v, k=axis: exact([v if j == k else c for j, c in enumerate(point)]),
            mp.mpf(point[axis]),
            h=mp.mpf(10) ** -15 * max(1, abs(point[axis])),
        )
        assert here.gradient[axis, 0] == pytest.approx(float(slope), rel=1e-9, abs=1e-300)
    assert np.isfinite(here.hessian).all()
    np.testing.assert_array_equal(here.hessian, here.hessian.transpose(1, 0, 2))


@pytest.mark.parametrize(("epsilon", "log_delta"), [(0.0, 0.0), (0.7, -0.4), (-1.5, 0.3)])
def test_the_density_integrates_to_the_probability_of_selection(epsilon, log_delta):
    index, a = -0.4, 0.9

    def density(e):
        return np.exp(units_at((index, e, a, epsilon, log_delta)).value[0])

    pieces = [-np.inf, -5.0, 0.0, 5.0, np.inf]
    mass = sum(quad(density, *ends, epsabs=1e-12)[0] for ends in itertools.pairwise(pieces))
    assert mass == pytest.approx(np.exp(normal.unselected_units(np.array([-index])).value[0]))


def test_no_skewness_and_normal_tails_are_the_normal_model():
    rng = np.random.default_rng(5)
    index, e = 3 * rng.standard_normal((2, 200))
    for a in (-2.0, 0.0, 0.7, 9.0):
        shape, plain = selected_units(index, e, a, 0.0, 0.0), normal.selected_units(index, e, a)
        # sinh(asinh e) rounds to e within 1e-15, which exp(9) magnifies
        close = {"rtol": 1e-10, "atol": 1e-10}
        np.testing.assert_allclose(shape.value, plain.value, **close)
        np.testing.assert_allclose(shape.gradient[:3], plain.gradient, **close)
        size = 1 + np.abs(plain.hessian).max(axis=2)
        for i, j in np.ndindex(3, 3):
            np.testing.assert_allclose(
                shape.hessian[i, j], plain.hessian[i, j], rtol=1e-9, atol=1e-12 * size[i, j]
            )
