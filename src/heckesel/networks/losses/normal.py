"""Losses with normal errors: weighted means of -log-likelihood, one value per network, with slopes
in the outputs of the network and in the head of the loss.

Slopes are written out because automatic differentiation doubles the time of small operations.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from heckesel.math.special import HALF_LOG_2PI, log_ndtr_and_mills
from heckesel.networks.training.batches import Batch

# Variances outside exp(-10) and exp(6) lead to overflow.
LOG_VARIANCE_RANGE = (-10.0, 6.0)
# sigma(x) is between a third of the common sigma and three times it.
LOG_NOISE_FACTOR_LIMIT = math.log(3.0)
# tanh(20) is 1 in float32 and tanh(40) in float64; beyond, exp(a) squared would overflow.
ATANH_RHO_LIMIT = {torch.float32: 20.0, torch.float64: 40.0}

Slopes = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Loss:
    """A loss, and the outputs of the network and the head that it needs.

    value_and_slopes : (output (k, n, outputs), head (k, h), rows) -> loss (k,), slopes in both
    outputs : columns of the network's last layer
    linear : the head begins with gamma (q + 1,), for the index w'gamma
    scalars : further columns of the head, in order; all start at zero
    frozen : the last scalar keeps its start during the warm-up
    quiet : the number of last outputs that start at 0 for every x
    """

    value_and_slopes: Callable[[torch.Tensor, torch.Tensor, Batch], Slopes]
    outputs: int = 1
    learning_rate: float = 1e-2
    linear: bool = False
    scalars: tuple[str, ...] = ()
    frozen: bool = False
    quiet: int = 0


def gaussian(output, head, rows) -> Slopes:
    r"""Two outputs, mean and log variance v:
    :math:`\frac12 (v + (y - \mu)^2 e^{-v} + \log 2\pi)`."""
    residual = rows.y - output[..., 0]
    log_variance = output[..., 1].clamp(*LOG_VARIANCE_RANGE)
    scaled = residual * torch.exp(-log_variance)
    square = residual * scaled
    loss = 0.5 * (rows.weight * (log_variance + square)).sum(dim=1)
    inside = log_variance == output[..., 1]
    by_mean = -rows.weight * scaled
    by_log_variance = (0.5 * rows.weight) * (1 - square) * inside
    slope = torch.stack([by_mean, by_log_variance], dim=2)
    return loss + HALF_LOG_2PI * rows.weight.sum(dim=1), slope, torch.zeros_like(head)


def two_step(output, head, rows) -> Slopes:
    r"""One output and one sigma: :math:`\log\sigma + \frac12 e^2 + \frac12\log 2\pi`, with
    :math:`e = (y - f(x) - c\lambda)/\sigma` and c the covariance of the two errors."""
    residual = torch.addcmul(rows.y - output[..., 0], rows.mills, head[:, :1], value=-1)
    loss, by_mean, by_log_sigma = _normal(residual, head[:, 1:], rows.weight)
    by_c = (by_mean * rows.mills).sum(dim=1, keepdim=True)
    return loss, by_mean[..., None], torch.cat([by_c, by_log_sigma], dim=1)


def noise_scale(output, head, rows) -> Slopes:
    r"""One output g for the standard deviation of residuals y with mean zero:
    :math:`\log\sigma(x) + y^2/2\sigma(x)^2`, with sigma(x) of `local_log_sigma`."""
    log_sigma, bend = local_log_sigma(output[..., 0], head)
    square = (rows.y * torch.exp(-log_sigma)).square()
    loss = (rows.weight * (log_sigma + 0.5 * square + HALF_LOG_2PI)).sum(dim=1)
    by_log_sigma = rows.weight * (1 - square)
    return loss, (by_log_sigma * bend)[..., None], by_log_sigma.sum(dim=1, keepdim=True)


def probit(output, head, rows) -> Slopes:
    r"""One output, the selection index :math:`\eta(w)`; y is 1 for a selected unit and -1 for an
    unselected one: :math:`-\log\Phi(y\eta)`."""
    log_cdf, mills = log_ndtr_and_mills(rows.y * output[..., 0])
    loss = -(rows.weight * log_cdf).sum(dim=1)
    return loss, -(rows.weight * rows.y * mills)[..., None], torch.zeros_like(head)


def joint(output, head, rows) -> Slopes:
    r"""Outcome and selection jointly; with :math:`\eta = w'\gamma`, :math:`e = (y-f)/\sigma` and
    :math:`a = \mathrm{atanh}\,\rho`,

    .. math:: -\log\phi(e) + \log\sigma - \log\Phi(B), \quad
              B = \tfrac12[(\eta+e)e^{a} + (\eta-e)e^{-a}]

    for a selected unit and :math:`-\log\Phi(-\eta)` for an unselected one. B is
    :math:`(\eta + \rho e)/\sqrt{1-\rho^2}` without the quotient, which fails at rho = 1. Its
    slopes are sinh a in e, cosh a in eta and :math:`\tfrac12[(\eta+e)e^a - (\eta-e)e^{-a}]` in a.

    A second output g, if there is one, makes sigma a function of x, see `local_log_sigma`.
    """
    gamma, atanh_rho = head[:, :-2], head[:, -1:]
    log_sigma, bend = head[:, -2:-1], None
    if output.shape[2] == 2:
        log_sigma, bend = local_log_sigma(output[..., 1], log_sigma)
    limit = ATANH_RHO_LIMIT[head.dtype]
    a = atanh_rho.clamp(-limit, limit)
    precision = torch.exp(-log_sigma)
    e = (rows.y - output[..., 0]) * precision
    index = product(rows.w, gamma)
    rising, falling = (index + e) * torch.exp(a), (index - e) * torch.exp(-a)
    log_cdf, mills = log_ndtr_and_mills(0.5 * (rising + falling))
    unit = 0.5 * e.square() + log_sigma + HALF_LOG_2PI - log_cdf
    pull = rows.weight * mills
    by_e = torch.addcmul(rows.weight * e, pull, torch.sinh(a), value=-1)
    unselected, by_gamma_unselected = unselected_loss(gamma, rows)
    by_gamma = by_gamma_unselected - torch.cosh(a) * weighted_sum(rows.w, pull)
    by_log_sigma = rows.weight - by_e * e
    by_a = -0.5 * (pull * (rising - falling)).sum(dim=1, keepdim=True) * (a == atanh_rho)
    return (
        (rows.weight * unit).sum(dim=1) + unselected,
        _by_outputs(-precision * by_e, by_log_sigma, bend),
        torch.cat([by_gamma, by_log_sigma.sum(dim=1, keepdim=True), by_a], dim=1),
    )


def blind(output, head, rows) -> Slopes:
    """`joint` with rho = 0: a probit and a regression without common parameters."""
    gamma = head[:, :-1]
    loss, by_mean, by_log_sigma = _normal(rows.y - output[..., 0], head[:, -1:], rows.weight)
    log_cdf, mills = log_ndtr_and_mills(product(rows.w, gamma))
    unselected, by_gamma = unselected_loss(gamma, rows)
    by_gamma = by_gamma - weighted_sum(rows.w, rows.weight * mills)
    loss = loss - (rows.weight * log_cdf).sum(dim=1) + unselected
    return loss, by_mean[..., None], torch.cat([by_gamma, by_log_sigma], dim=1)


def local_log_sigma(g, log_sigma):
    r""":math:`\log\sigma + L\tanh(g(x)/L)` and its slope in g, (k, n) both. It stays within L of
    the common log sigma, also where g extrapolates."""
    bent = torch.tanh(g / LOG_NOISE_FACTOR_LIMIT)
    return log_sigma + LOG_NOISE_FACTOR_LIMIT * bent, 1 - bent.square()


def _by_outputs(by_mean, by_log_sigma, bend):
    """Slopes in one or two outputs, (k, n, 1 or 2)."""
    if bend is None:
        return by_mean[..., None]
    return torch.stack([by_mean, by_log_sigma * bend], dim=2)


def product(columns, v):
    """(k, n) of each row with v, such as the index w'gamma; columns : (k, n, c), v : (k, c)."""
    return torch.bmm(columns, v[..., None])[..., 0]


def weighted_sum(columns, factor):
    """(k, c) over rows; columns : (k, n, c), factor : (k, n)."""
    return torch.bmm(factor[:, None], columns)[:, 0]


def unselected_loss(gamma, rows):
    """Loss of the unselected units and its slope in gamma."""
    log_cdf, mills = log_ndtr_and_mills(-product(rows.w_unselected, gamma))
    loss = -(rows.weight_unselected * log_cdf).sum(dim=1)
    return loss, weighted_sum(rows.w_unselected, rows.weight_unselected * mills)


def _normal(residual, log_sigma, weight):
    """Loss (k,), slope in the mean (k, n) and in log sigma (k, 1)."""
    precision = torch.exp(-log_sigma)
    e = residual * precision
    weighted = weight * e
    total, square = weight.sum(dim=1, keepdim=True), (weighted * e).sum(dim=1, keepdim=True)
    loss = 0.5 * square + total * (log_sigma + HALF_LOG_2PI)
    return loss[:, 0], -precision * weighted, total - square


GAUSSIAN = Loss(gaussian, outputs=2, learning_rate=5e-3)
TWO_STEP = Loss(two_step, scalars=("c", "log_sigma"))
JOINT = Loss(joint, linear=True, scalars=("log_sigma", "atanh_rho"), frozen=True)
PROBIT = Loss(probit)
NOISE_SCALE = Loss(noise_scale, scalars=("log_sigma",), quiet=1)
JOINT_VARYING = Loss(
    joint, outputs=2, linear=True, scalars=("log_sigma", "atanh_rho"), frozen=True, quiet=1
)
BLIND = Loss(blind, linear=True, scalars=("log_sigma",))
