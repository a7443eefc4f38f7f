"""Losses of k networks: weighted means of -log-likelihood, one value per network.

Arguments are the outputs of the networks (k, n, outputs), the head of the loss (k, h), which holds
all parameters outside the networks, and rows with weights that add up to one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from heckesel.math.special import HALF_LOG_2PI, log_ndtr_and_mills

# Variances outside exp(-10) and exp(6) lead to overflow.
LOG_VARIANCE_RANGE = (-10.0, 6.0)
# sigma(x) is between a third of the common sigma and three times it.
LOG_NOISE_FACTOR_LIMIT = math.log(3.0)
# tanh(20) is 1 in float32 and tanh(40) in float64; beyond, exp(a) squared would overflow.
ATANH_RHO_LIMIT = {torch.float32: 20.0, torch.float64: 40.0}


@dataclass(frozen=True)
class Loss:
    """A loss, and the outputs of the network and the head that it needs.

    value : (output, head, rows) -> (k,)
    outputs : columns of the network's last layer
    linear : the head begins with gamma (q + 1,), for the index w'gamma
    scalars : further columns of the head, in order; all start at zero
    frozen : the last scalar keeps its start during the warm-up
    quiet : the number of last outputs that start at 0 for every x
    """

    value: Callable
    outputs: int = 1
    learning_rate: float = 1e-2
    linear: bool = False
    scalars: tuple[str, ...] = ()
    frozen: bool = False
    quiet: int = 0


def gaussian(output, head, rows):
    r"""Two outputs, mean and log variance v:
    :math:`\frac12 (v + (y - \mu)^2 e^{-v} + \log 2\pi)`."""
    log_variance = output[..., 1].clamp(*LOG_VARIANCE_RANGE)
    square = (rows.y - output[..., 0]).square() * torch.exp(-log_variance)
    return (rows.weight * (0.5 * (log_variance + square) + HALF_LOG_2PI)).sum(dim=1)


def two_step(output, head, rows):
    r"""One output and one sigma: :math:`\log\sigma + \frac12 e^2 + \frac12\log 2\pi`, with
    :math:`e = (y - f(x) - c\lambda)/\sigma` and c the covariance of the two errors."""
    c, log_sigma = head[:, :1], head[:, 1:]
    e = (rows.y - output[..., 0] - c * rows.mills) * torch.exp(-log_sigma)
    return (rows.weight * (0.5 * e.square() + log_sigma + HALF_LOG_2PI)).sum(dim=1)


def noise_scale(output, head, rows):
    r"""One output g for the standard deviation of residuals y with mean zero:
    :math:`\log\sigma(x) + y^2/2\sigma(x)^2` with
    :math:`\log\sigma(x) = \log\sigma + L\tanh(g(x)/L)`, which stays within L of the common log
    sigma, also where g extrapolates."""
    limit = LOG_NOISE_FACTOR_LIMIT
    log_sigma = head + limit * torch.tanh(output[..., 0] / limit)
    square = (rows.y * torch.exp(-log_sigma)).square()
    return (rows.weight * (log_sigma + 0.5 * square + HALF_LOG_2PI)).sum(dim=1)


def joint(output, head, rows):
    r"""Outcome and selection jointly; with :math:`\eta = w'\gamma`, :math:`e = (y-f)/\sigma` and
    :math:`a = \mathrm{atanh}\,\rho`,

    .. math:: -\log\phi(e) + \log\sigma - \log\Phi(B), \quad
              B = \tfrac12[(\eta+e)e^{a} + (\eta-e)e^{-a}]

    for a selected unit and :math:`-\log\Phi(-\eta)` for an unselected one. B is
    :math:`(\eta + \rho e)/\sqrt{1-\rho^2}` without the quotient, which fails at rho = 1.
    """
    gamma, log_sigma = head[:, :-2, None], head[:, -2:-1]
    limit = ATANH_RHO_LIMIT[head.dtype]
    a = head[:, -1:].clamp(-limit, limit)
    e = (rows.y - output[..., 0]) * torch.exp(-log_sigma)
    index = torch.bmm(rows.w, gamma)[..., 0]
    argument = 0.5 * ((index + e) * torch.exp(a) + (index - e) * torch.exp(-a))
    unit = 0.5 * e.square() + log_sigma + HALF_LOG_2PI - log_ndtr(argument)
    unselected = rows.weight_unselected * log_ndtr(-torch.bmm(rows.w_unselected, gamma)[..., 0])
    return (rows.weight * unit).sum(dim=1) - unselected.sum(dim=1)


class _LogNdtr(torch.autograd.Function):
    """log Phi, whose derivative is the inverse Mills ratio."""

    @staticmethod
    def forward(ctx, t):
        value, mills = log_ndtr_and_mills(t)
        ctx.save_for_backward(mills)
        return value

    @staticmethod
    def backward(ctx, slope):
        return slope * ctx.saved_tensors[0]


log_ndtr = _LogNdtr.apply
GAUSSIAN = Loss(gaussian, outputs=2, learning_rate=5e-3)
TWO_STEP = Loss(two_step, scalars=("c", "log_sigma"))
NOISE_SCALE = Loss(noise_scale, scalars=("log_sigma",), quiet=1)
JOINT = Loss(joint, linear=True, scalars=("log_sigma", "atanh_rho"), frozen=True)
