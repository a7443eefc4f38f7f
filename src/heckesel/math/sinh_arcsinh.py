r"""Moments of a sinh-arcsinh error, in the population and given selection.

.. math:: e = g(q) = \sinh\big((\mathrm{asinh}\,q + \epsilon)/\delta\big)

with (u, q) standard bivariate normal with correlation rho; a selected unit has u > -index.
"""

from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import ndtr

from heckesel.math.special import inverse_mills

# Trapezoid rule for a standard normal v: g(rho u + sqrt(1 - rho^2) v) is analytic in a strip of
# half-width 1, so a step of h errs by exp(-2 pi/h), here 1e-9 at worst, where rho = 0.
STEP = 0.3
NODES = np.arange(-12.0, 12.0 + STEP / 2, STEP)
WEIGHTS = STEP * np.exp(-0.5 * NODES**2) / np.sqrt(2 * np.pi)
# u = -index + r/lambda(index) for index <= 0, whose density falls at least like exp(-r/2), with
# r = exp(x - exp(-x)): both tails fall double-exponentially in x, where the trapezoid rule is best.
TAIL_STEP = 0.15
TAIL_X = np.arange(-3.6, 4.2, TAIL_STEP)
TAIL_R = np.exp(TAIL_X - np.exp(-TAIL_X))
TAIL_WEIGHTS = TAIL_STEP * TAIL_R * (1 + np.exp(-TAIL_X))
# Moments are smooth in the index: a polynomial through this many Chebyshev points errs by 1e-11,
# and by 1e-8 at rho = .995.
CHEBYSHEV_POINTS = 120


class Moments(NamedTuple):
    """mean, variance : of e; the others are derivatives of the mean. Numbers, or (m,)."""

    mean: np.ndarray | float
    variance: np.ndarray | float
    d_index: np.ndarray | float
    d_atanh_rho: np.ndarray | float
    d_skewness: np.ndarray | float
    d_log_tail: np.ndarray | float


def stretch(q, skewness: float, log_tail: float):
    """e = g(q)."""
    return np.sinh((np.arcsinh(q) + skewness) * np.exp(-log_tail))


def population_moments(skewness: float, log_tail: float) -> Moments:
    """Moments of e in the population, that is, without selection."""
    mean, square, d_skewness, d_log_tail, _ = WEIGHTS @ _values(NODES, skewness, log_tail).T
    return Moments(mean, square - mean**2, 0.0, 0.0, d_skewness, d_log_tail)


def moments_given_selection(index, atanh_rho: float, skewness: float, log_tail: float) -> Moments:
    """(m,) each, of e given u > -index."""
    shape = atanh_rho, skewness, log_tail
    low, high = np.min(index), np.max(index)
    if len(index) <= CHEBYSHEV_POINTS or not low < high:
        return _moments_at(index, *shape)
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    nodes = chebyshev.chebpts1(CHEBYSHEV_POINTS)
    # over these nodes Chebyshev polynomials are orthogonal
    polynomials = chebyshev.chebvander(nodes, CHEBYSHEV_POINTS - 1)
    polynomials /= (polynomials**2).sum(axis=0)
    at_nodes = np.array(list(_moments_at(centre + half * nodes, *shape)))
    coefficients = polynomials.T @ at_nodes.T
    return Moments(*chebyshev.chebval((index - centre) / half, coefficients))


def _moments_at(index, atanh_rho: float, skewness: float, log_tail: float) -> Moments:
    """For index > 0 more than half of the units are selected. The moments are then computed from
    those of the population and of the unselected, because the rule below integrates tails only."""
    rare = -np.abs(index)
    above = index > 0
    side = np.where(above, -1.0, 1.0)
    means = _tail_means(rare, side * np.tanh(atanh_rho), skewness, log_tail)
    means[-1] *= side  # the sign of atanh rho is reversed there
    everyone = np.append(WEIGHTS @ _values(NODES, skewness, log_tail).T[:, :4], 0.0)
    share = ndtr(rare)
    mixed = (everyone[:, None] - share * means) / (1 - share)
    mean, square, d_skewness, d_log_tail, d_a = np.where(above, mixed, means)
    edge = np.tanh(atanh_rho) * -index[:, None] + NODES / np.cosh(atanh_rho)
    at_edge = stretch(edge, skewness, log_tail) @ WEIGHTS
    d_index = inverse_mills(index) * (at_edge - mean)
    return Moments(mean, square - mean**2, d_index, d_a, d_skewness, d_log_tail)


def _values(q, skewness: float, log_tail: float) -> np.ndarray:
    """e, e^2, de/d epsilon, de/d log delta and de/dq."""
    tail = np.exp(log_tail)
    t = (np.arcsinh(q) + skewness) / tail
    e, slope = np.sinh(t), np.cosh(t)
    return np.stack([e, e * e, slope / tail, -t * slope, slope / (tail * np.hypot(1.0, q))])


def _tail_means(index, rho, skewness: float, log_tail: float) -> np.ndarray:
    """(5, m) means of `_values` given u > -index <= 0; the last is that of de/d atanh rho instead
    of de/dq; index, rho : (m,)"""
    mills = inverse_mills(index)
    w = TAIL_R / mills[:, None]  # (m, tail nodes)
    weight = TAIL_WEIGHTS * np.exp(w * index[:, None] - 0.5 * w * w)
    u = (w - index[:, None])[..., None]
    rho = rho[:, None, None]
    rest = np.sqrt((1 - rho) * (1 + rho))
    values = _values(rho * u + rest * NODES, skewness, log_tail)
    values[-1] *= rest * (rest * u - rho * NODES)  # dq/da, for q = u tanh a + v / cosh a
    return np.einsum("mi,kmi->km", weight, values @ WEIGHTS)
