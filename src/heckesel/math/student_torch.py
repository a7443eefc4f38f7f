r"""Student's t in torch: log density and log distribution function, with slopes in t and df.

They are accurate in both tails and up to the normal limit.

torch has no distribution function of the t. With a = |t| and density p, the tail beyond a is
p(a) M(a, df); writing the exponent as h makes M an integral against exp(-h),

.. math:: M = \int_0^\infty e^{-h}\,\frac{\nu+u^2}{(\nu+1)\,u}\,dh, \qquad
          u^2 = a^2 + (\nu + a^2)\,(e^{2h/(\nu+1)} - 1) ,

for which a Gauss-Laguerre rule is accurate away from a = 0. Near zero the density is integrated
from 0 to t. Nothing is recorded for autograd. Everything is computed in float64, because log gamma
functions cancel for large df.
"""

import math

import numpy as np
import torch

# Beyond this |t| the tail rule is used. At it both rules have an error below 1e-8 for df >= 2.
CENTRE = 2.0
LAGUERRE = [column.tolist() for column in np.polynomial.laguerre.laggauss(32)]
LEGENDRE = [column.tolist() for column in np.polynomial.legendre.leggauss(24)]

Slopes = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
# Of log(df - 2): the variance exists above two degrees of freedom, and above 1e4 the log-likelihood
# of a unit is that of the normal to four digits.
LOG_EXTRA_DF_RANGE = (-5.0, 9.2)


def degrees_of_freedom(log_extra_df):
    """df = 2 + exp(log_extra_df), within the range that the loss allows; an array or a tensor."""
    if isinstance(log_extra_df, torch.Tensor):
        return 2 + torch.exp(log_extra_df.clamp(*LOG_EXTRA_DF_RANGE))
    return degrees_of_freedom(torch.as_tensor(log_extra_df)).numpy()


def log_density_and_slopes(t: torch.Tensor, df: torch.Tensor) -> Slopes:
    r"""log p(t), its slope in t, :math:`-(\nu+1)t/(\nu+t^2)`, and in df.

    t : (k, n); df : (k, 1)
    """
    t, df = t.double(), df.double()
    constant, by_df = _log_constant(df)
    bend = torch.log1p(t.square() / df)
    total = df + t.square()
    slope = -(df + 1) * t / total
    by_df = by_df - 0.5 * bend + 0.5 * (df + 1) * t.square() / (df * total)
    return constant - 0.5 * (df + 1) * bend, slope, by_df


def log_cdf_and_slopes(t: torch.Tensor, df: torch.Tensor) -> Slopes:
    """log P(T <= t), its slope in t (the density over it), and in df; t : (k, n), df : (k, 1)."""
    t, df = t.double(), df.double()
    log_p, _, p_by_df = log_density_and_slopes(t, df)
    density = torch.exp(log_p)
    inside, inside_by_df = _from_zero(t.clamp(-CENTRE, CENTRE), df)
    centre = 0.5 + inside
    mills, mills_by_df = _tail_over_density(t.abs().clamp(min=CENTRE), df)
    tail = density * mills
    tail_by_df = p_by_df + mills_by_df / mills  # of log tail
    above = 1 - tail
    below, beyond = t < -CENTRE, t > CENTRE

    def pick(low, middle, high):
        return torch.where(below, low, torch.where(beyond, high, middle))

    return (
        pick(log_p + torch.log(mills), torch.log(centre), torch.log1p(-tail.clamp(max=0.5))),
        pick(1 / mills, density / centre, density / above),
        pick(tail_by_df, inside_by_df / centre, -tail * tail_by_df / above),
    )


def _log_constant(df):
    """log of the density at 0, and its slope in df."""
    half = 0.5 * df
    value = torch.lgamma(half + 0.5) - torch.lgamma(half) - 0.5 * torch.log(math.pi * df)
    slope = 0.5 * (torch.digamma(half + 0.5) - torch.digamma(half) - 1 / df)
    return value, slope


def _from_zero(t, df):
    """Integral of the density from 0 to t, and its slope in df."""
    value, by_df = torch.zeros_like(t), torch.zeros_like(t)
    for node, weight in zip(*LEGENDRE, strict=True):
        log_p, _, slope = log_density_and_slopes(0.5 * (1 + node) * t, df)
        part = 0.5 * weight * t * torch.exp(log_p)
        value += part
        by_df += part * slope
    return value, by_df


def _tail_over_density(a, df):
    """M(a, df) for a > 0, and its slope in df at fixed a."""
    value, by_df = torch.zeros_like(a), torch.zeros_like(a)
    square = a.square()
    for h, weight in zip(*LAGUERRE, strict=True):
        growth = torch.expm1(2 * h / (df + 1))
        total = (df + square) * (1 + growth)  # df + u^2
        u_square = square + (df + square) * growth
        part = weight * total / ((df + 1) * torch.sqrt(u_square))
        moved = 1 + growth - total * 2 * h / (df + 1).square()
        value += part
        by_df += part * (moved / total - 1 / (df + 1) - 0.5 * (moved - 1) / u_square)
    return value, by_df
