"""Moments of sinh-arcsinh errors against closed forms, adaptive integrals and differences."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import kv, log_ndtr

from heckesel.math.sinh_arcsinh import moments_given_selection, population_moments, stretch
from heckesel.math.special import inverse_mills, mills_delta

SHAPES = [(0.5, -0.3), (3.0, -1.0), (-1.0, 0.5), (0.3, -1.6)]
# index, atanh rho, skewness, log tail: rare and common selection, weak and strong dependence
GIVEN = [
    (-0.5, 0.6, 0.4, -0.3),
    (2.0, -1.2, 1.0, -0.6),
    (-4.0, 2.0, -0.5, 0.3),
    (0.3, 3.0, 0.8, -0.9),
    (-9.0, 1.0, 0.2, 0.1),
]


def bessel(power):
    """E[exp(power asinh q)] = E[cosh(power asinh q)], a known integral."""
    return (
        np.exp(0.25) / np.sqrt(8 * np.pi) * (kv((power + 1) / 2, 0.25) + kv((power - 1) / 2, 0.25))
    )


@pytest.mark.parametrize(("skewness", "log_tail"), SHAPES)
def test_population_moments_equal_the_closed_form(skewness, log_tail):
    tail, found = np.exp(log_tail), population_moments(skewness, log_tail)
    mean = np.sinh(skewness / tail) * bessel(1 / tail)
    square = 0.5 * (np.cosh(2 * skewness / tail) * bessel(2 / tail) - 1)
    assert found.mean == pytest.approx(mean, rel=1e-9)
    assert found.variance == pytest.approx(square - mean**2, rel=1e-8)


@pytest.mark.parametrize("point", GIVEN)
def test_moments_given_selection_equal_the_integral(point):
    index, a, skewness, log_tail = point

    def integral(power):
        def integrand(q):
            log_share = log_ndtr(index * np.cosh(a) + q * np.sinh(a)) - log_ndtr(index)
            density = np.exp(-0.5 * q * q + log_share) / np.sqrt(2 * np.pi)
            return stretch(q, skewness, log_tail) ** power * density

        middle = np.tanh(a) * inverse_mills(index)
        ends = [-16.0, middle - 1, middle, middle + 1, 16.0]
        options = {"epsabs": 1e-12, "epsrel": 1e-11, "limit": 300}
        return sum(quad(integrand, *ends[i : i + 2], **options)[0] for i in range(4))

    found = moments_given_selection(np.array([index]), a, skewness, log_tail)
    assert found.mean[0] == pytest.approx(integral(1), rel=1e-9)
    assert found.variance[0] == pytest.approx(integral(2) - integral(1) ** 2, rel=1e-8)


@pytest.mark.parametrize("point", GIVEN)
def test_derivatives_of_the_mean_equal_differences(point):
    here, step = moments_given_selection(np.array(point[:1]), *point[1:]), 1e-4
    derivatives = here.d_index, here.d_atanh_rho, here.d_skewness, here.d_log_tail
    for axis, derivative in enumerate(derivatives):
        up, down = (
            [value + sign * step * (k == axis) for k, value in enumerate(point)] for sign in (1, -1)
        )
        means = [moments_given_selection(np.array(p[:1]), *p[1:]).mean for p in (up, down)]
        # the third derivative in log tail is a few hundred times the first
        np.testing.assert_allclose(
            (means[0] - means[1]) / (2 * step), derivative, rtol=1e-6, atol=1e-9
        )


def test_normal_errors_have_the_moments_of_a_truncated_normal():
    index = np.linspace(-30.0, 8.0, 50)
    found, rho = moments_given_selection(index, 0.7, 0.0, 0.0), np.tanh(0.7)
    np.testing.assert_allclose(found.mean, rho * inverse_mills(index), rtol=1e-9, atol=1e-14)
    # mean^2 is a thousand times the variance at index -30
    np.testing.assert_allclose(found.variance, 1 - rho**2 * mills_delta(index), rtol=1e-8)


def test_many_units_are_interpolated_and_agree_with_few():
    index = 3 * np.random.default_rng(1).standard_normal(1000)
    many = moments_given_selection(index, 0.9, 0.6, -0.5)
    few = moments_given_selection(index[:50], 0.9, 0.6, -0.5)
    for all_of_them, some in zip(many, few, strict=True):
        size = np.abs(some).max()
        np.testing.assert_allclose(all_of_them[:50], some, rtol=1e-8, atol=1e-9 * size)
