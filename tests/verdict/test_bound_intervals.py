"""Critical values of Imbens and Manski and of Stoye against their defining equations."""

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import multivariate_normal

from heckesel.verdict.bounds import imbens_manski_value, stoye_values

LEVEL = 0.95


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("width", [1e-6, 0.3, 1.0, 2.7])
def test_the_imbens_manski_value_solves_its_equation_in_40_digits(width, level):
    with mpmath.workdps(40):
        exact = mpmath.findroot(
            lambda c: mpmath.ncdf(c + mpmath.mpf(width) / 2) - mpmath.ncdf(-c) - mpmath.mpf(level),
            1.8,
        )
    # the normal distribution function errs by 1e-16, and its density there is above 0.02
    assert imbens_manski_value(width, 2.0, level) == pytest.approx(float(exact), rel=2e-14)


def test_the_imbens_manski_value_ends_in_two_sided_and_one_sided():
    assert imbens_manski_value(0.0, 1.0, LEVEL) == ndtri(0.975)
    for width, se in ((np.inf, 1.0), (50.0, 1.0), (1.0, 0.0)):
        assert imbens_manski_value(width, se, LEVEL) == pytest.approx(ndtri(0.95), rel=1e-14)


def probabilities(a, b, width, se_low, se_high, rho):
    """That an interval covers the lower and the upper bound."""
    joint = multivariate_normal([0, 0], [[1, -rho], [-rho, 1]])
    return joint.cdf([a, b + width / se_high]), joint.cdf([a + width / se_low, b])


@pytest.mark.parametrize(
    "case",
    [(0.5, 1.0, 1.0, 0.6), (0.3, 1.0, 2.0, 0.9), (1.5, 2.0, 0.7, -0.4), (0.0, 1.0, 3.0, 0.5)],
)
def test_no_pair_of_critical_values_makes_the_stoye_interval_shorter(case):
    _, se_low, se_high, _ = case  # width, standard errors, correlation
    a, b = stoye_values(*case, LEVEL)
    assert min(probabilities(a, b, *case)) == pytest.approx(LEVEL, abs=2e-5)  # error of the cdf
    found = a * se_low + b * se_high
    for other_a in np.linspace(1.65, 3.5, 19):
        for other_b in np.linspace(1.65, 3.5, 19):
            if min(probabilities(other_a, other_b, *case)) >= LEVEL:
                assert other_a * se_low + other_b * se_high >= found - 1e-3


def test_the_stoye_interval_of_a_point_is_two_sided_and_of_wide_bounds_one_sided():
    # one estimate of both ends: correlation one, width zero
    np.testing.assert_allclose(stoye_values(0.0, 1.0, 1.0, 1.0, LEVEL), ndtri(0.975), rtol=1e-4)
    # the minimum is found to 1e-4
    np.testing.assert_allclose(stoye_values(50.0, 1.0, 2.0, 0.3, LEVEL), ndtri(0.95), rtol=1e-4)
