r"""Student's t distribution: its density and log T with derivatives in the degrees of freedom.

T has no closed-form derivative in nu, so T and its derivatives are integrals of the density

.. math:: k(t, \nu) = \log t_\nu(t) = c(\nu) - \tfrac{\nu+1}{2}\log(1 + t^2/\nu)

by a Gauss-Legendre rule. The derivatives in t follow from t_nu/T_nu.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, polygamma, psi, stdtr

# Up to here the integral runs from 0 to t, beyond it over the tail. At 2 the tail is at least .02,
# so 1/2 minus the integral loses at most a digit.
NEAR = 2.0
# For nu >= 1 the relative error at these orders is 1e-15.
NEAR_NODES, NEAR_WEIGHTS = np.polynomial.legendre.leggauss(20)
TAIL_NODES, TAIL_WEIGHTS = np.polynomial.legendre.leggauss(32)
TAIL_REACH = 6.1  # in r with density exp(-r^2): 7e-17 lies beyond
SERIES_FROM = 50.0
CANCELS = 20.0  # where the closed form of T has lost five digits
# log Gamma(z + 1/2) - log Gamma(z) - log(z)/2 = sum of c z^-k, to 1e-15 from z = 25
GAMMA_RATIO = ((1, -1 / 8), (3, 1 / 192), (5, -1 / 640), (7, 17 / 14336), (9, -31 / 18432))


class LogValue(NamedTuple):
    """A function of (t, nu) and its derivatives."""

    value: np.ndarray
    d_t: np.ndarray
    d_nu: np.ndarray
    d_t_t: np.ndarray
    d_t_nu: np.ndarray
    d_nu_nu: np.ndarray


def log_constant(nu: float) -> tuple[float, float, float]:
    """c(nu) = log Gamma((nu+1)/2) - log Gamma(nu/2) - log(pi nu)/2 and two derivatives.

    From nu = 50 on it uses the series of the ratio: the difference of two log Gamma loses digits.
    """
    z = 0.5 * nu
    if nu < SERIES_FROM:
        value = gammaln(z + 0.5) - gammaln(z) - 0.5 * np.log(np.pi * nu)
        first = 0.5 * (psi(z + 0.5) - psi(z)) - 0.5 / nu
        second = 0.25 * (polygamma(1, z + 0.5) - polygamma(1, z)) + 0.5 / nu**2
        return float(value), float(first), float(second)
    value = sum(c * z**-k for k, c in GAMMA_RATIO) - 0.5 * np.log(2 * np.pi)
    first = 0.5 * sum(-k * c * z ** (-k - 1) for k, c in GAMMA_RATIO)
    second = 0.25 * sum(k * (k + 1) * c * z ** (-k - 2) for k, c in GAMMA_RATIO)
    return float(value), float(first), float(second)


def cdf(t, nu: float):
    r"""T(t); four degrees of freedom, which mixtures evaluate often, have a closed form:
    :math:`\tfrac12 + \tfrac12\sin\theta\,(1 + \tfrac12\cos^2\theta)`, :math:`\tan\theta = t/2`."""
    if nu != 4:
        return stdtr(nu, t)
    t = np.asarray(t, dtype=float)
    total = 4 + t * t
    below = 0.5 + 0.5 * t / np.sqrt(total) * (1 + 2 / total)
    far = t < -CANCELS
    return np.where(far, stdtr(nu, np.where(far, t, 0.0)), below) if far.any() else below


def log_density(t, nu: float) -> LogValue:
    """log t_nu(t) and its derivatives."""
    total, square = nu + t * t, t * t
    value, d_nu, d_nu_nu = _density_in_nu(square, nu)
    return LogValue(
        value=value,
        d_t=-(nu + 1) * t / total,
        d_nu=d_nu,
        d_t_t=(nu + 1) * (square - nu) / total**2,
        d_t_nu=t * (1 - square) / total**2,
        d_nu_nu=d_nu_nu,
    )


def _density_in_nu(square, nu: float, log_term=None):
    """k and its two derivatives in nu, from t^2 and log_term = log(1 + t^2/nu)."""
    constant, first, second = log_constant(nu)
    log_term = np.log1p(square / nu) if log_term is None else log_term
    share = square / (nu + square)
    slope = 0.5 * (nu + 1) / nu
    value = constant - (0.5 * (nu + 1)) * log_term
    d_nu = slope * share - 0.5 * log_term + first
    # d(share)/dnu = -share (1 - share)/nu
    d_nu_nu = share * ((1 - 2 * slope) / nu + slope / nu * share) + second
    return value, d_nu, d_nu_nu


def log_cdf(t, nu: float) -> LogValue:
    """log T_nu(t) and its derivatives, accurate in the far tail; nu >= 1."""
    t = np.asarray(t, dtype=float)
    value, d_nu, d_nu_nu = np.empty((3, *t.shape))
    near, below = np.abs(t) <= NEAR, t < -NEAR
    value[near], d_nu[near], d_nu_nu[near] = _near(t[near], nu)
    value[below], d_nu[below], d_nu_nu[below] = _tail(-t[below], nu)
    above = t > NEAR
    value[above], d_nu[above], d_nu_nu[above] = _complement(*_tail(t[above], nu))
    density = log_density(t, nu)
    hazard = np.exp(density.value - value)
    return LogValue(
        value=value,
        d_t=hazard,
        d_nu=d_nu,
        d_t_t=hazard * (density.d_t - hazard),
        d_t_nu=hazard * (density.d_nu - d_nu),
        d_nu_nu=d_nu_nu,
    )


def _near(t, nu: float):
    """log(1/2 + integral from 0 to t), and its derivatives in nu."""
    s = 0.5 * t[:, None] * (1 + NEAR_NODES)
    k, k_nu, k_nu_nu = _density_in_nu(s * s, nu)
    mass = 0.5 * t[:, None] * NEAR_WEIGHTS * np.exp(k)
    cdf = 0.5 + mass.sum(axis=1)
    return np.log(cdf), *_of_logarithm(mass, cdf, k_nu, k_nu_nu)


def _of_logarithm(mass, total, k_nu, k_nu_nu):
    """Two derivatives in nu of the log of `total`, an integral whose nodes have log masses k."""
    first = np.einsum("ij,ij->i", mass, k_nu) / total
    second = np.einsum("ij,ij->i", mass, k_nu_nu + k_nu * k_nu) / total
    return first, second - first**2


def _tail(x, nu: float):
    r"""log P(S > x) for x > 0, and its derivatives in nu.

    With :math:`1 + s^2/\nu = (1 + x^2/\nu)\,e^{2w/\nu}` and w = r^2

    .. math:: P(S > x) = e^{c(\nu)} (1 + x^2/\nu)^{-\nu/2}
              \int_0^\infty e^{-r^2} \frac{\sqrt{1 + s^2/\nu}}{s}\, 2r\, dr

    so nothing underflows. The derivatives are moments of k_nu under the same weights.
    """
    r = 0.5 * TAIL_REACH * (1 + TAIL_NODES)
    growth = 2 * r * r / nu
    square = nu * np.expm1(growth) + (x * x)[:, None] * np.exp(growth)  # s^2
    weight = TAIL_REACH * r * TAIL_WEIGHTS * np.exp(-r * r)
    mass = weight * np.sqrt(1 / square + 1 / nu)
    total = mass.sum(axis=1)
    log_start = np.log1p(x * x / nu)
    _, k_nu, k_nu_nu = _density_in_nu(square, nu, log_start[:, None] + growth)
    value = log_constant(nu)[0] - 0.5 * nu * log_start + np.log(total)
    return value, *_of_logarithm(mass, total, k_nu, k_nu_nu)


def _complement(log_tail, d_nu, d_nu_nu):
    """log(1 - tail) and its derivatives in nu from those of log tail."""
    odds = np.exp(log_tail) / -np.expm1(log_tail)
    first = -odds * d_nu
    return np.log1p(-np.exp(log_tail)), first, -odds * (d_nu_nu + d_nu**2) - first**2
