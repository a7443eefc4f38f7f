"""The joint likelihood with bivariate t errors and estimated degrees of freedom."""

import torch

from heckesel.math.student_torch import (
    LOG_EXTRA_DF_RANGE,
    degrees_of_freedom,
    log_cdf_and_slopes,
    log_density_and_slopes,
)
from heckesel.networks.losses.normal import ATANH_RHO_LIMIT, Loss, Slopes, product, weighted_sum


def joint_student(output, head, rows) -> Slopes:
    r"""`losses.joint` with t errors of :math:`\nu` degrees of freedom, common to both equations:

    .. math:: -\log t_\nu(e) + \log\sigma - \log T_{\nu+1}(A), \quad
              A = B\,K, \quad K = \sqrt{(\nu+1)/(\nu+e^2)}

    for a selected unit and :math:`-\log T_\nu(-\eta)` for an unselected one. A has the slopes
    :math:`K\sinh a - A e/(\nu+e^2)` in e, :math:`K\cosh a` in eta, K times that of B in a and
    :math:`\tfrac12 A\,[1/(\nu+1) - 1/(\nu+e^2)]` in nu. As nu grows this is the normal loss.
    """
    gamma, log_sigma = head[:, :-3].double(), head[:, -3:-2].double()
    log_extra, atanh_rho = head[:, -2:-1].double(), head[:, -1:].double()
    limit = ATANH_RHO_LIMIT[head.dtype]
    a, df = atanh_rho.clamp(-limit, limit), degrees_of_freedom(log_extra)
    weight, w = rows.weight.double(), rows.w.double()
    precision = torch.exp(-log_sigma)
    e = (rows.y.double() - output[..., 0].double()) * precision
    index = product(w, gamma)
    rising, falling = (index + e) * torch.exp(a), (index - e) * torch.exp(-a)
    total = df + e.square()
    factor = torch.sqrt((df + 1) / total)
    argument = 0.5 * (rising + falling) * factor
    log_p, p_by_e, p_by_df = log_density_and_slopes(e, df)
    log_cdf, mills, cdf_by_df = log_cdf_and_slopes(argument, df + 1)
    unit = log_sigma - log_p - log_cdf
    pull = weight * mills
    by_e = -weight * p_by_e - pull * (factor * torch.sinh(a) - argument * e / total)
    unselected, gamma_unselected, df_unselected = _unselected(gamma, df, rows)
    by_gamma = gamma_unselected - torch.cosh(a) * weighted_sum(w, pull * factor)
    by_sigma = (weight - by_e * e).sum(dim=1, keepdim=True)
    moved = 0.5 * argument * (1 / (df + 1) - 1 / total)
    by_df = -(weight * (p_by_df + cdf_by_df) + pull * moved).sum(dim=1, keepdim=True)
    by_extra = (by_df + df_unselected) * (df - 2) * _inside(log_extra, LOG_EXTRA_DF_RANGE)
    by_a = -0.5 * (pull * factor * (rising - falling)).sum(dim=1, keepdim=True)
    by_a = by_a * (a == atanh_rho)
    loss = (weight * unit).sum(dim=1) + unselected
    by_head = torch.cat([by_gamma, by_sigma, by_extra, by_a], dim=1)
    by_output = (-precision * by_e)[..., None]
    return loss.to(head.dtype), by_output.to(head.dtype), by_head.to(head.dtype)


def _unselected(gamma, df, rows):
    """Loss of the unselected units, and its slopes in gamma and df."""
    w, weight = rows.w_unselected.double(), rows.weight_unselected.double()
    log_cdf, mills, by_df = log_cdf_and_slopes(-product(w, gamma), df)
    loss = -(weight * log_cdf).sum(dim=1)
    return loss, weighted_sum(w, weight * mills), -(weight * by_df).sum(dim=1, keepdim=True)


def _inside(values, limits):
    low, high = limits
    return (values > low) & (values < high)


JOINT_STUDENT = Loss(
    joint_student, linear=True, scalars=("log_sigma", "log_extra_df", "atanh_rho"), frozen=True
)
