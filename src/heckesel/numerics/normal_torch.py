"""Torch twins of `heckesel.numerics.normal`, for losses with explicit derivatives.

In float32 the derivative of torch's log Phi has an error of 3 % at t = -40 and no correct digit
below -100. That derivative is the inverse Mills ratio, which is computed with `erfcx` here.
"""

import math

import torch

from heckesel.numerics.normal import CANCELLATION_AT, CONTINUED_FRACTION_DEPTH

SQRT_HALF = math.sqrt(0.5)
SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)


def log_ndtr_and_mills(t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """log Phi(t) and lambda(t) from one `erfcx`, without autograd."""
    t = t.detach()
    scaled = torch.special.erfcx(SQRT_HALF * t.abs())
    half_square = 0.5 * t.square()
    half_decay = 0.5 * torch.exp(-half_square)
    upper_tail = half_decay * scaled
    below = t < 0
    log_cdf = torch.where(below, torch.log(0.5 * scaled) - half_square, torch.log1p(-upper_tail))
    mills = torch.where(below, 1.0 / scaled, half_decay / (1.0 - upper_tail)).mul_(SQRT_2_OVER_PI)
    return log_cdf, mills


def mills_excess(t, mills):
    """lambda(t) + t, by the continued fraction where the sum cancels."""
    x = -t.clamp(max=CANCELLATION_AT)
    tail = x
    for j in range(CONTINUED_FRACTION_DEPTH, 1, -1):
        tail = x + j / tail
    return torch.where(t < CANCELLATION_AT, 1.0 / tail, mills + t)
