"""Torch twin of `heckesel.math.bivariate`: the same integral, with fewer nodes.

It always uses float64, because the exponents exceed the range of float32.
"""

import numpy as np
import torch

from heckesel.math.bivariate import LARGEST_ATANH_RHO
from heckesel.math.special import LOG_2PI, log_ndtr_and_mills

# On each side of the integrand's peak. With 16 the relative error is 1e-7, as in float32.
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
NEGLIGIBLE = 18.0  # exp(-18) is 2e-8


def log_bivariate_cdf_and_slopes(h, k, atanh_rho):
    r"""log Phi_2(h, k; a) and its slopes in h, k and a = atanh rho, without autograd.

    With C = cosh a, K = k cosh a - h sinh a and H = h cosh a - k sinh a the slopes are

    .. math:: \phi(h)\Phi(K)/\Phi_2,\quad \phi(k)\Phi(H)/\Phi_2,\quad \phi(h)\phi(K)/(C\,\Phi_2)

    as in `classical.likelihood`. Arguments are broadcast; all four results are float64.
    """
    h, k, a = torch.broadcast_tensors(h.detach().double(), k.detach().double(), atanh_rho.double())
    value = log_bivariate_cdf(h, k, a)
    given_h, cosh = _d_and_cosh(h, k, a)
    given_k, _ = _d_and_cosh(k, h, a)
    log_h, log_k = -0.5 * (h.square() + LOG_2PI), -0.5 * (k.square() + LOG_2PI)
    by_h = torch.exp(log_ndtr_and_mills(given_h)[0] + log_h - value)
    by_k = torch.exp(log_ndtr_and_mills(given_k)[0] + log_k - value)
    by_a = torch.exp(log_h - 0.5 * (given_h.square() + LOG_2PI) - value) / cosh
    return value, by_h, by_k, by_a


def log_bivariate_cdf(h, k, a):
    """log P(H <= h, K <= k) of standard normals with correlation tanh a, all float64."""
    a = a.clamp(-LARGEST_ATANH_RHO, LARGEST_ATANH_RHO)
    low, high = torch.minimum(h, k), torch.maximum(h, k)
    log_low, mills = log_ndtr_and_mills(low)
    positive = a >= 0
    log_high = log_ndtr_and_mills(high)[0]
    known = torch.where(positive, log_high, _log_at_minus_one(log_low, high))
    start = torch.where(positive, 0.0, -LARGEST_ATANH_RHO)
    integral = _log_plackett(low, high, start, a) + torch.log(mills) - 0.5 * LOG_2PI
    return log_low + torch.logaddexp(known, integral).clamp(max=0.0)


def _log_at_minus_one(log_low, high):
    """log of max(0, Phi(low) - Phi(-high))/Phi(low)."""
    share = torch.exp((log_ndtr_and_mills(-high)[0] - log_low).clamp(max=0.0))
    return torch.log1p(-share)


def _log_plackett(h, k, low, high):
    """As in `heckesel.math.bivariate`."""
    plus, minus = (h + k).abs().clamp(min=1e-30), (k - h).abs().clamp(min=1e-30)
    m_squared, c = plus * minus, 0.5 * (torch.log(plus) - torch.log(minus))
    nearest = torch.minimum(torch.maximum(c, low), high)
    drop = NEGLIGIBLE + nearest.abs()
    reach = torch.asinh(torch.sqrt(torch.sinh(nearest - c).square() + 2 * drop / m_squared))
    left, right = torch.maximum(low, c - reach), torch.minimum(high, c + reach)
    peak = torch.minimum(torch.maximum(c * m_squared / (1 + m_squared), left), right)
    top = -0.5 * _d_and_cosh(h, k, peak)[0].square()
    ends = torch.stack([left, peak]), torch.stack([peak, right])
    middle, half = 0.5 * (ends[1] + ends[0]), 0.5 * (ends[1] - ends[0])
    return top + torch.log(_panels(h, k, middle, half, top))


def _panels(h, k, middle, half, top):
    """The sum of the integrals of g exp(-top) over two panels; middle, half : (2, ...)"""
    rising, falling = 0.5 * (k - h), 0.5 * (k + h)
    total = torch.zeros_like(middle)
    for node, weight in zip(NODES.tolist(), NODE_WEIGHTS.tolist(), strict=True):
        up = torch.add(middle, half, alpha=node).exp_()
        down = up.reciprocal()
        d = torch.addcmul(rising * up, falling, down)
        density = torch.addcmul(-top, d, d, value=-0.5).exp_().div_(up.add_(down))
        total.add_(density, alpha=2 * weight)  # 1/cosh is 2/(up + down)
    return (half * total).sum(dim=0)


def _d_and_cosh(h, k, a):
    """k cosh a - h sinh a without cancellation, and cosh a."""
    up, down = torch.exp(a), torch.exp(-a)
    return 0.5 * ((k - h) * up + (k + h) * down), 0.5 * (up + down)
