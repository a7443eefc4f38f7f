"""The outcome error given selection under t errors, against integrals of the density."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import t as student

from heckesel.math import truncated
from heckesel.math.truncated import (
    cdf_given_selection,
    log_density_given_selection,
    mean_of_selection,
    variance_given_selection,
)


def density(e, index, rho, nu):
    """As the model says it: the density of E times the chance of selection given E."""
    argument = (index + rho * e) / np.sqrt(1 - rho**2) * np.sqrt((nu + 1) / (nu + e * e))
    return student.pdf(e, nu) * student.cdf(argument, nu + 1) / student.cdf(index, nu)


def integral(function, low, high, index, rho):
    """In three pieces; around e = -index/rho the density turns quickly when |rho| is large."""
    turn = -index / rho if rho else 0.0
    cuts = sorted({low, high, *(c for c in (turn - 0.2, turn + 0.2) if low < c < high)})
    return sum(
        quad(function, a, b, epsabs=1e-12, limit=400)[0]
        for a, b in zip(cuts[:-1], cuts[1:], strict=True)
    )


@pytest.mark.parametrize("nu", [1.5, 7.3, 60.0])
@pytest.mark.parametrize("rho", [0.0, 0.3, -0.6, 0.95, -0.999])
@pytest.mark.parametrize("index", [-3.0, 0.2, 4.0])
def test_the_distribution_function_is_the_integral_of_the_density(nu, rho, index):
    for e in (-4.0, -0.2, 0.20001, 3.0):
        expected = integral(lambda t: density(t, index, rho, nu), -np.inf, e, index, rho)
        assert cdf_given_selection(e, index, rho, nu) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("nu", [2.5, 6.0])
@pytest.mark.parametrize(("index", "rho"), [(-1.0, 0.6), (0.4, -0.8)])
def test_moments_are_those_of_the_density(nu, index, rho):
    def moment(power):
        return integral(
            lambda t: t**power * density(t, index, rho, nu), -np.inf, np.inf, index, rho
        )

    at = np.array([index])
    mean = rho * mean_of_selection(at, nu)[0][0]
    assert mean == pytest.approx(moment(1), abs=1e-8)
    assert variance_given_selection(at, rho, nu)[0] == pytest.approx(moment(2) - mean**2, rel=1e-6)


def test_derivatives_of_the_mean_equal_differences():
    index, nu, step = np.array([-2.3, 0.7]), 4.4, 1e-6
    _, d_index, d_log_nu = mean_of_selection(index, nu)
    up, down = (mean_of_selection(index + d, nu)[0] for d in (step, -step))
    np.testing.assert_allclose((up - down) / (2 * step), d_index, rtol=1e-7)
    up, down = (mean_of_selection(index, nu * np.exp(d))[0] for d in (step, -step))
    np.testing.assert_allclose((up - down) / (2 * step), d_log_nu, rtol=1e-7)


def test_many_degrees_of_freedom_are_the_normal_twin():
    index = np.array([-2.0, 0.3, 2.0])
    flat = truncated.cdf_given_selection(0.4, index, 0.7)
    np.testing.assert_allclose(cdf_given_selection(0.4, index, 0.7, 1e8), flat, atol=1e-7)
    log_flat = truncated.log_density_given_selection(0.4, index, 0.7)
    log_t = log_density_given_selection(0.4, index, 0.7, 1e8)
    np.testing.assert_allclose(log_t, log_flat, atol=1e-6)
