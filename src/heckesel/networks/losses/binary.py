"""Losses for a binary outcome: the joint likelihood of selection and the observed class."""

import torch

from heckesel.math.bivariate_torch import log_bivariate_cdf_and_slopes
from heckesel.math.special import log_ndtr_and_mills
from heckesel.networks.losses.normal import (
    ATANH_RHO_LIMIT,
    Loss,
    Slopes,
    product,
    unselected_loss,
    weighted_sum,
)


def joint_binary(output, head, rows) -> Slopes:
    r"""One output, the outcome's index f(x); y is 1 for the second class and -1 for the first:

    .. math:: -\log\Phi_2(\eta, y f; y a), \quad \eta = w'\gamma, \quad a = \mathrm{atanh}\,\rho

    for a selected unit and :math:`-\log\Phi(-\eta)` for an unselected one. Its slopes are those of
    `log_bivariate_cdf_and_slopes`, with a factor y in f and in a.
    """
    gamma, atanh_rho = head[:, :-1], head[:, -1:]
    limit = ATANH_RHO_LIMIT[head.dtype]
    a = atanh_rho.clamp(-limit, limit)
    index, weight, y = product(rows.w, gamma), rows.weight, rows.y
    parts = _where_weighted(index, y * output[..., 0], y * a, weight)
    value, by_index, by_f, by_a = (weight * part for part in parts)
    unselected, by_gamma = unselected_loss(gamma, rows)
    by_gamma = by_gamma - weighted_sum(rows.w, by_index)
    by_rho = -(y * by_a).sum(dim=1, keepdim=True) * (a == atanh_rho)
    return (
        unselected - value.sum(dim=1),
        -(y * by_f)[..., None],
        torch.cat([by_gamma, by_rho], dim=1),
    )


def independent_binary(output, head, rows) -> Slopes:
    """`joint_binary` at rho = 0: two probits, no quadrature; the last column of head is unused."""
    gamma = head[:, :-1]
    log_index, by_index = log_ndtr_and_mills(product(rows.w, gamma))
    log_f, by_f = log_ndtr_and_mills(rows.y * output[..., 0])
    unselected, by_gamma = unselected_loss(gamma, rows)
    by_gamma = by_gamma - weighted_sum(rows.w, rows.weight * by_index)
    return (
        unselected - (rows.weight * (log_index + log_f)).sum(dim=1),
        -(rows.weight * rows.y * by_f)[..., None],
        torch.cat([by_gamma, torch.zeros_like(head[:, -1:])], dim=1),
    )


def _where_weighted(index, f, a, weight):
    """Value and slopes (k, n), in the precision of the weights.

    A CPU skips the quadrature for rows of weight zero (folds, padding). A GPU needs the same shapes
    in every step, because steps are recorded.
    """
    if weight.is_cuda:
        return [part.to(weight) for part in log_bivariate_cdf_and_slopes(index, f, a)]
    used = weight > 0
    found = log_bivariate_cdf_and_slopes(index[used], f[used], a[used])
    return [torch.zeros_like(weight).masked_scatter_(used, part.to(weight)) for part in found]


INDEPENDENT_BINARY = Loss(independent_binary, linear=True, scalars=("atanh_rho",), frozen=True)
JOINT_BINARY = Loss(joint_binary, linear=True, scalars=("atanh_rho",), frozen=True)
