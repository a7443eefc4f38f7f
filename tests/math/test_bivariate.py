"""The bivariate normal distribution function against brute force, in 30 digits."""

import mpmath as mp
import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from heckesel.math.bivariate import log_bivariate_cdf, log_conditional_cdf

mp.mp.dps = 30
# h, k, atanh rho: the middle, tails on both sides, limits that agree or cancel, rho near +-1
POINTS = [
    (0.3, -0.7, 0.4),
    (-1.2, 0.9, -1.1),
    (-9.0, -7.5, 0.8),
    (-9.0, -7.5, -0.8),
    (-25.0, 3.0, -0.5),
    (5.0, -12.0, 1.7),
    (6.0, 7.0, -1.3),
    (0.4, -0.4, -0.02),
    (-2.0, -2.0, 3.0),
    (-8.0, 8.01, -4.0),
    (1.0, 1.000001, 6.0),
    (-1.3, 1.2999, -6.0),
    (-0.5, -0.6, -2.5),
]


def brute_force(h, k, a):
    """log of the integral over t < h of phi(t) P(K <= k | H = t), a log-concave function."""
    h, k, a = (mp.mpf(value) for value in (h, k, a))
    rho, spread = mp.tanh(a), mp.sech(a)

    def log_integrand(t):
        return mp.log(mp.erfc(-(k - rho * t) / spread / mp.sqrt(2)) / 2) - t * t / 2

    low, high = h - 100, h  # golden section for the peak
    golden = (mp.sqrt(5) - 1) / 2
    for _ in range(100):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (left, high) if log_integrand(left) < log_integrand(right) else (low, right)
    peak = (low + high) / 2
    top = log_integrand(peak)

    def reach(sign):
        x = mp.mpf("1e-9")
        while x < 100 and top - log_integrand(peak + sign * x) < 70:
            x *= 2
        return x

    back, ahead = reach(-1), min(reach(1), h - peak)
    cuts = [peak - back * j / 12 for j in range(12, 0, -1)] + [peak]
    cuts += [peak + ahead * j / 12 for j in range(1, 13)] if ahead > 0 else []
    total = mp.quad(lambda t: mp.exp(log_integrand(t) - top), cuts, method="gauss-legendre")
    return top + mp.log(total / mp.sqrt(2 * mp.pi))


@pytest.mark.parametrize("point", POINTS)
def test_the_logarithm_has_thirteen_digits_in_every_tail(point):
    exact = float(brute_force(*point))
    # rounding of the arguments' squares, up to 600 here, comes before any method
    np.testing.assert_allclose(log_bivariate_cdf(*point), exact, rtol=1e-13, atol=1e-14)


def test_quadrants_have_the_arc_sine_and_sum_to_one():
    rng = np.random.default_rng(0)
    rho = rng.uniform(-1, 1, 400)
    at_zero = np.exp(log_bivariate_cdf(0.0, 0.0, np.arctanh(rho)))
    np.testing.assert_allclose(at_zero, 0.25 + np.arcsin(rho) / (2 * np.pi), rtol=1e-13)
    h, k = 3 * rng.standard_normal((2, 400))
    a = 3 * rng.standard_normal(400)
    quadrants = [(h, k, a), (h, -k, -a), (-h, k, -a), (-h, -k, a)]
    total = sum(np.exp(log_bivariate_cdf(*quadrant)) for quadrant in quadrants)
    np.testing.assert_allclose(total, 1.0, atol=1e-13)


def test_special_correlations_collapse():
    rng = np.random.default_rng(1)
    h, k = 4 * rng.standard_normal((2, 300))
    np.testing.assert_allclose(log_bivariate_cdf(h, k, 0.0), log_ndtr(h) + log_ndtr(k), rtol=1e-14)
    together, against = (np.exp(log_bivariate_cdf(h, k, a)) for a in (np.inf, -np.inf))
    np.testing.assert_allclose(together, ndtr(np.minimum(h, k)), rtol=1e-12)
    np.testing.assert_allclose(against, np.maximum(0, ndtr(h) - ndtr(-k)), atol=1e-15)


def test_the_condition_may_be_as_rare_as_it_likes():
    # given H <= h, far out, H + |h| is exponential with rate |h|: K <= k is a question about noise
    h, rho, z = -1e4, 0.6, 0.3
    k = rho * h + np.sqrt(1 - rho**2) * z
    below = np.exp(log_conditional_cdf(k, h, np.arctanh(rho)))
    assert below == pytest.approx(ndtr(z), abs=1e-4)  # the exponential's mean is 1e-4
    assert log_conditional_cdf(k, h, np.arctanh(rho)).shape == ()
