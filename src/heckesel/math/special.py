"""The normal distribution's tails: log Phi and its inverse, the Mills ratio and its slope.

`log_ndtr_and_mills` and `mills_excess` take arrays and torch tensors alike. In float32 the
derivative of torch's own log Phi has an error of 3 % at t = -40 and no correct digit below -100;
that derivative is the inverse Mills ratio, which is computed with erfcx here.
"""

import math
import sys

import numpy as np
from numpy.polynomial.chebyshev import cheb2poly
from scipy.special import (
    erfcx,
    log_ndtr,
    logsumexp,
    ndtri_exp,
)

SQRT_2 = math.sqrt(2.0)
SQRT_HALF = math.sqrt(0.5)
SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
LOG_2PI = math.log(2 * math.pi)
HALF_LOG_2PI = 0.5 * LOG_2PI

# Below this point lambda(t) + t loses more than a digit to cancellation. Above it the continued
# fraction needs more than CONTINUED_FRACTION_DEPTH terms for 1e-16.
CANCELLATION_AT = -5.0
CONTINUED_FRACTION_DEPTH = 24

# `erfcx_upper` is a polynomial of this degree in (x - MIDPOINT)/(x + MIDPOINT), the variable by
# which coefficients fall fastest. Its error is that of scipy's erfcx, 8e-16, and 2e-15 for x > 1e4.
TAIL_DEGREE, TAIL_MIDPOINT, TAIL_NODES = 23, 3.75, 64
IN_CACHE = 32_768  # numbers
# On a GPU: erfc underflows soon after this. From here on the terms of the series reach 1e-17.
SERIES_FROM, SERIES_TERMS = 26.0, 6


def namespace(*values):
    """numpy, or torch if one of the values is a tensor."""
    torch = sys.modules.get("torch")
    return torch if torch and any(isinstance(each, torch.Tensor) for each in values) else np


def _tail_coefficients() -> list[float]:
    """Of (1 + 2x) erfcx(x) in powers of the variable, the highest first, from Chebyshev nodes."""
    odd = 2 * np.arange(TAIL_NODES) + 1
    x = TAIL_MIDPOINT / np.tan(np.pi * odd / (4 * TAIL_NODES)) ** 2
    values = (1 + 2 * x) * erfcx(x)
    # an angle within half a turn has more digits than one of several turns
    turns = np.outer(np.arange(TAIL_DEGREE + 1), odd) % (4 * TAIL_NODES)
    angles = np.minimum(turns, 4 * TAIL_NODES - turns) * (np.pi / (2 * TAIL_NODES))
    series = np.array([math.fsum(row) for row in np.cos(angles) * values]) * (2 / TAIL_NODES)
    series[0] /= 2
    return [float(c) for c in cheb2poly(series)[::-1]]


# (6, 4): the polynomial is sum_j at^(3 - j) P_j(at^4), the coefficients of P_j in column j.
TAIL_COEFFICIENTS = np.array(_tail_coefficients()).reshape(-1, 4)


def erfcx_upper(x: np.ndarray) -> np.ndarray:
    r"""erfcx(x) = exp(x^2) erfc(x) for x >= 0 (n,), three times as fast as scipy's.

    (1 + 2x) erfcx(x) has no pole and tends to :math:`2/\sqrt\pi`, so one polynomial suffices for
    all x.
    """
    result = np.empty_like(x)
    for first in range(0, len(x), IN_CACHE):
        block, value = x[first : first + IN_CACHE], result[first : first + IN_CACHE]
        at = 1 - 2 * TAIL_MIDPOINT / (block + TAIL_MIDPOINT)
        fourth = at * at
        fourth *= fourth
        four = np.multiply.outer(TAIL_COEFFICIENTS[0], fourth)
        for coefficients in TAIL_COEFFICIENTS[1:-1]:
            four += coefficients[:, None]
            four *= fourth
        four += TAIL_COEFFICIENTS[-1][:, None]
        np.multiply(four[0], at, out=value)
        for part in four[1:-1]:
            value += part
            value *= at
        value += four[-1]
        value /= 1 + 2 * block
    return result


def inverse_mills(t):
    r"""Inverse Mills ratio: the mean of a standard normal truncated from below at -t.

    .. math:: \lambda(t) = \phi(t)/\Phi(t) = \sqrt{2/\pi}\,/\,\mathrm{erfcx}(-t/\sqrt{2})
    """
    return SQRT_2_OVER_PI / erfcx(-np.asarray(t, dtype=float) / SQRT_2)


def mills_excess(t, mills=None):
    r"""lambda(t) + t, positive and decreasing to 1/|t| as t falls.

    Far below zero the sum cancels, and a continued fraction replaces it:

    .. math:: \lambda(-x) - x = 1/(x + 2/(x + 3/(x + \dots)))
    """
    if namespace(t) is not np:
        x = -t.clamp(max=CANCELLATION_AT)
        return namespace(t).where(t < CANCELLATION_AT, 1.0 / _continued_fraction(x), mills + t)
    t = np.asarray(t, dtype=float)
    excess = np.asarray((inverse_mills(t) if mills is None else mills) + t)
    deep = t < CANCELLATION_AT
    if deep.any():
        excess = excess.copy() if excess.ndim else excess.reshape(())
        excess[deep] = 1.0 / _continued_fraction(-t[deep])
    return excess


def _continued_fraction(x):
    tail = x
    for j in range(CONTINUED_FRACTION_DEPTH, 1, -1):
        tail = j / tail
        tail += x
    return tail


def mills_delta(t, mills=None):
    r"""delta(t) = lambda(t) (lambda(t) + t), the share of the variance that truncation removes.

    It is minus the slope of the inverse Mills ratio and lies strictly between 0 and 1.
    """
    mills = inverse_mills(t) if mills is None else mills
    return mills * mills_excess(t, mills)


def log_ndtr_and_mills(t):
    r"""log Phi(t) and lambda(t) from one erfcx; of tensors without autograd.

    With :math:`E = \mathrm{erfcx}(|t|/\sqrt 2)` and :math:`g = e^{-t^2/2}`:

    * t < 0: log Phi = log(E/2) - t^2/2 and lambda = sqrt(2/pi)/E
    * t >= 0: Phi(-t) = g E/2, log Phi = log1p(-Phi(-t)) and lambda = phi(t)/(1 - Phi(-t))
    """
    xp = namespace(t)
    if xp is np:
        t = np.asarray(t, dtype=float)
        scaled = erfcx_upper(np.abs(t).ravel() / SQRT_2).reshape(t.shape)
    else:
        t = t.detach()
        scaled = erfcx_of_tensor(SQRT_HALF * t.abs())
    half_square = 0.5 * t * t
    half_decay = 0.5 * xp.exp(-half_square)
    upper_tail = half_decay * scaled
    below = t < 0
    log_cdf = xp.where(below, xp.log(0.5 * scaled) - half_square, xp.log1p(-upper_tail))
    mills = SQRT_2_OVER_PI * xp.where(below, 1.0 / scaled, half_decay / (1.0 - upper_tail))
    return log_cdf, mills


def erfcx_of_tensor(x):
    """exp(x^2) erfc(x) for x >= 0. On a GPU, torch compiles its version on first use, for about six
    seconds."""
    return erfcx_of_erfc(x) if x.device.type == "cuda" else sys.modules["torch"].special.erfcx(x)


def erfcx_of_erfc(x):
    r"""The same from `erfc` in float64, and beyond its range from

    .. math:: \frac{1}{x\sqrt\pi} \Big(1 - u\,\big(1 - 3u\,(1 - 5u\,(\dots))\big)\Big), \quad
              u = \frac{1}{2x^2} .

    The square is split, because a rounded one would lose two digits in the exponential.
    """
    torch = namespace(x)
    near = x.double().clamp(max=SERIES_FROM)
    leading = near.float().double()  # with an exact square
    rest = (near - leading) * (near + leading)
    below = torch.exp(leading.square()) * torch.exp(rest) * torch.erfc(near)
    far = x.double().clamp(min=SERIES_FROM)
    half = 0.5 / far.square()
    series = torch.ones_like(far)
    for term in range(SERIES_TERMS, 0, -1):
        series = 1 - (2 * term - 1) * half * series
    return torch.where(x < SERIES_FROM, below, series / (far * math.sqrt(math.pi))).to(x.dtype)


def probit_of(log_p, log_rest):
    """z with Phi(z) = p, from log p and log(1 - p).

    At |z| = 8 the larger of the two probabilities rounds to 1, so the smaller one is inverted.
    """
    return np.where(log_p < log_rest, ndtri_exp(log_p), -ndtri_exp(log_rest))


def averaged_index(index, log_weight):
    """(m,) z with Phi(z) = sum_j weight_j Phi(index_j); index : (j, m), log_weight : (j, 1)."""
    inside, outside = (logsumexp(log_weight + log_ndtr(t), axis=0) for t in (index, -index))
    return probit_of(inside, outside)
