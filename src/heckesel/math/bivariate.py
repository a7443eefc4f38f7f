r"""The logarithm of the bivariate normal distribution function, accurate in every tail.

By Plackett's identity its derivative in the correlation is the density. With rho = tanh a that is

.. math:: \frac{\partial}{\partial a}\Phi_2(h, k; a) = \frac{g(a)}{2\pi}e^{-h^2/2},\qquad
          g(a) = \frac{1}{\cosh a}e^{-D^2/2},\quad D = k\cosh a - h\sinh a

and Phi_2 is its integral from a correlation at which Phi_2 is known.
"""

import numpy as np
from scipy.special import log_ndtr

from heckesel.math.special import LOG_2PI, inverse_mills

# Gauss-Legendre nodes on each side of the integrand's peak; with 56 the relative error is 1e-14.
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(56)
# Below exp(-37) = 1e-16 of its peak the integrand no longer contributes.
NEGLIGIBLE = 37.0
LARGEST_ATANH_RHO = 38.0  # 1/cosh is below 1e-16 beyond
ROWS_AT_ONCE = 2048  # times the nodes this is a megabyte, which fits a core's cache


def log_bivariate_cdf(h, k, atanh_rho):
    """log P(H <= h, K <= k) of standard normals with correlation tanh(atanh_rho)."""
    low, high = np.minimum(h, k), np.maximum(h, k)
    return log_ndtr(low) + log_conditional_cdf(high, low, atanh_rho)


def log_conditional_cdf(k, h, atanh_rho):
    r"""log P(K <= k | H <= h), with a relative error of about 1e-14 however small both are.

    It is the sum of two positive terms, each divided by Phi(h) before anything can underflow:

    * rho >= 0: Phi(h) Phi(k), the value at rho = 0, and the integral from 0 to a
    * rho < 0: max(0, Phi(h) - Phi(-k)), the value at rho = -1, and the integral from -infinity to a
    """
    return in_blocks(_log_conditional, k, h, atanh_rho)


def in_blocks(function, *arrays):
    """function of the broadcast arrays, applied block by block to limit memory."""
    parts = np.broadcast_arrays(*(np.asarray(part, dtype=float) for part in arrays))
    flat = [part.ravel() for part in parts]
    blocks = [
        function(*(part[start : start + ROWS_AT_ONCE] for part in flat))
        for start in range(0, flat[0].size, ROWS_AT_ONCE)
    ]
    return np.concatenate(blocks).reshape(parts[0].shape) if blocks else np.empty(parts[0].shape)


def _log_conditional(k, h, a):
    a = np.clip(a, -LARGEST_ATANH_RHO, LARGEST_ATANH_RHO)
    positive = a >= 0
    known = np.where(positive, log_ndtr(k), _log_at_minus_one(k, h))
    integral = _log_plackett(h, k, np.where(positive, 0.0, -LARGEST_ATANH_RHO), a)
    with np.errstate(divide="ignore"):  # both beyond 38, where the integral is 0
        integral += np.log(inverse_mills(h)) - 0.5 * LOG_2PI
    return np.minimum(np.logaddexp(known, integral), 0.0)  # rounding can pass 0 by 1e-16


def _log_at_minus_one(k, h):
    """log of max(0, Phi(h) - Phi(-k))/Phi(h), as a difference of lower tails."""
    low, high = np.minimum(h, k), np.maximum(h, k)
    share = np.exp(np.minimum(log_ndtr(-high) - log_ndtr(low), 0.0))
    with np.errstate(divide="ignore"):
        return np.where(k < h, log_ndtr(k) - log_ndtr(h), 0.0) + np.log1p(-share)


def _log_plackett(h, k, low, high):
    r"""log of the integral of g from low to high; -infinity if they are equal.

    With m^2 = |k^2 - h^2| and e^{2 c} = |k + h|/|k - h|, D^2 is m^2 sinh^2(a - c) plus a constant.
    So g is the product of two log-concave factors with peaks at 0 and c, which bound the range
    where g is not negligible.
    """
    # floor the sum and the difference, so that c is finite
    plus, minus = np.maximum(np.abs(k + h), 1e-30), np.maximum(np.abs(k - h), 1e-30)
    m_squared, c = plus * minus, 0.5 * (np.log(plus) - np.log(minus))
    nearest = np.clip(c, low, high)
    drop = NEGLIGIBLE + np.abs(nearest)  # the other factor can grow by exp(|nearest|)
    reach = np.arcsinh(np.sqrt(np.sinh(nearest - c) ** 2 + 2 * drop / m_squared))
    left, right = np.maximum(low, c - reach), np.minimum(high, c + reach)
    peak = np.clip(c * m_squared / (1 + m_squared), left, right)
    d, _ = _d_and_cosh(h, k, peak)
    top = -0.5 * d * d
    total = _panel(h, k, left, peak, top) + _panel(h, k, peak, right, top)
    with np.errstate(divide="ignore"):
        return top + np.log(total)


def _d_and_cosh(h, k, a):
    """D without the cancellation in k cosh a - h sinh a, and cosh a."""
    up = np.exp(a)
    down = 1.0 / up
    return 0.5 * ((k - h) * up + (k + h) * down), 0.5 * (up + down)


def _panel(h, k, start, stop, top):
    """The integral of g exp(-top)."""
    half = 0.5 * (stop - start)
    a = 0.5 * (stop + start)[:, None] + half[:, None] * NODES  # (m, nodes)
    d, cosh = _d_and_cosh(h[:, None], k[:, None], a)
    return half * ((np.exp(-0.5 * d * d - top[:, None]) / cosh) @ NODE_WEIGHTS)
