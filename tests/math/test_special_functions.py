"""Tail formulas against 40-digit arithmetic and brute force."""

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad

from heckesel.math.special import (
    erfcx_upper,
    inverse_mills,
    log_ndtr_and_mills,
    mills_delta,
    mills_excess,
)
from heckesel.math.truncated import (
    cdf_given_selection,
    moments_given_selection,
    quantile_given_selection,
)

pytestmark = pytest.mark.arithmetic

mp.mp.dps = 40
POINTS = np.array([-40.0, -30.3, -12.1, -5.01, -4.99, -2.2, -0.3, 0.0, 0.7, 3.1, 8.0, 36.0])


def exact_log_cdf(t):
    t = mp.mpf(float(t))
    if t < 0:
        return mp.log(mp.erfc(-t / mp.sqrt(2)) / 2)
    return mp.log1p(-mp.erfc(t / mp.sqrt(2)) / 2)


def exact_mills(t):
    t = mp.mpf(float(t))
    return mp.npdf(t) / (mp.erfc(-t / mp.sqrt(2)) / 2)


def test_log_cdf_and_mills_have_twelve_digits_from_minus_40_to_36():
    log_cdf, mills = log_ndtr_and_mills(POINTS)
    np.testing.assert_allclose(log_cdf, [float(exact_log_cdf(t)) for t in POINTS], rtol=1e-13)
    np.testing.assert_allclose(mills, [float(exact_mills(t)) for t in POINTS], rtol=1e-12)
    np.testing.assert_allclose(inverse_mills(POINTS), mills, rtol=1e-12)


def test_erfcx_is_exact_to_rounding_from_zero_to_infinity():
    x = np.concatenate([np.geomspace(30, 1e7, 200), np.linspace(0.0, 30, 9000)])
    some = np.r_[:200, 200:9200:20]  # all of them span two blocks
    exact = [float(mp.exp(mp.mpf(v) ** 2) * mp.erfc(mp.mpf(v))) for v in x[some]]
    found = erfcx_upper(x)[some]
    # eight roundings of 1.1e-16, as many as scipy's own erfcx has
    np.testing.assert_allclose(found[200:], exact[200:], rtol=9e-16)
    # towards infinity all of the 24 coefficients are added up, of which each was rounded
    np.testing.assert_allclose(found[:200], exact[:200], rtol=3e-15)
    assert erfcx_upper(np.array([np.inf])) == 0


def test_mills_excess_and_delta_survive_the_lower_tail():
    points = np.append(POINTS, [-1e3, -1e8])
    excess = [float(exact_mills(t) + mp.mpf(t)) for t in POINTS] + [1e-3 - 2e-9, 1e-8]
    # 2e-9: the next term of 1/x - 2/x^3; the one after is 1e-14
    np.testing.assert_allclose(mills_excess(points), excess, rtol=2e-11)
    delta = [float(exact_mills(t) * (exact_mills(t) + mp.mpf(t))) for t in POINTS]
    np.testing.assert_allclose(mills_delta(POINTS), delta, rtol=1e-12)


def brute_force_cdf(e, index, rho):
    """Integral over u of the truncated normal times P(E <= e | u), in 40 digits."""
    e, h, r = (mp.mpf(float(v)) for v in (e, index, rho))
    spread = mp.sqrt(1 - r**2)

    def integrand(u):
        return mp.npdf(u) * mp.ncdf((e - r * u) / spread)

    knee = e / r if r else mp.mpf(0)
    scale = 1 / max(1, -h)  # of u + h when selection is rare
    marks = [knee - spread, knee, knee + spread, *(-h + scale * j for j in (1, 3, 9, 30, 60))]
    cuts = [-h, *sorted(mark for mark in marks if mark > -h)]
    return float(mp.quad(integrand, cuts) / mp.ncdf(h))


@pytest.mark.parametrize("index", [-30.0, -1.2, 3.0])
@pytest.mark.parametrize("rho", [-0.99, 0.0, 0.7, 0.999])
def test_cdf_given_selection_equals_brute_force(index, rho):
    mean, variance = moments_given_selection(index, rho)
    e = mean + np.sqrt(variance) * np.array([-2.5, -0.6, 0.1, 1.9])
    exact = [brute_force_cdf(value, index, rho) for value in e]
    np.testing.assert_allclose(cdf_given_selection(e, index, rho), exact, atol=5e-13)


def test_cdf_given_selection_at_perfect_correlation_is_a_truncated_normal():
    e = np.array([-0.9, 0.2, 1.5])
    index = 0.3
    truncated = (quad(lambda t: np.exp(-(t**2) / 2), -index, v)[0] for v in np.maximum(e, -index))
    total = quad(lambda t: np.exp(-(t**2) / 2), -index, np.inf)[0]
    np.testing.assert_allclose(
        cdf_given_selection(e, index, 1.0), np.array(list(truncated)) / total, atol=1e-9
    )  # quad's own tolerance


def test_quantiles_invert_the_cdf_even_for_rare_selection():
    rng = np.random.default_rng(3)
    index = rng.uniform(-12, 6, 200)
    rho = rng.uniform(-0.9999, 0.9999, 200)
    p = rng.uniform(0.001, 0.999, 200)
    e = quantile_given_selection(p, index, rho)
    np.testing.assert_allclose(cdf_given_selection(e, index, rho), p, atol=1e-11)
