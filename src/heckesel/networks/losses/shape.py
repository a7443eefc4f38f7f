"""The joint likelihood with sinh-arcsinh errors, or with a log sigma linear in columns of x."""

from functools import partial

import torch

from heckesel.classical.likelihood import LOG_TAIL_ENDS, SKEWNESS_ENDS
from heckesel.networks.losses.normal import (
    ATANH_RHO_LIMIT,
    Loss,
    Slopes,
    product,
    unselected_loss,
    weighted_sum,
)
from heckesel.networks.rho.form_shape import first_slopes

SHAPE = ("skewness", "log_tail")


def joint_form(output, head, rows, *, scale: tuple[int, ...]) -> Slopes:
    r"""`losses.joint` with :math:`e = e^{-b'x}(y - f(x))/\sigma` and the errors of
    `networks.rho.form_shape`, computed in float64.

    scale : positions of the columns of x with a coefficient in b. The head is (gamma, log sigma, b,
    skewness, log tail, atanh rho), or the same without skewness and log tail, which are then 0.
    """
    given, head, rows = head.dtype, head.double(), rows.map(lambda values: values.double())
    sizes = [rows.w.shape[2], 1, len(scale)]
    gamma, log_sigma, b, free, atanh_rho = head.split(
        [*sizes, head.shape[1] - sum(sizes) - 1, 1], dim=1
    )
    low, high = head.new_tensor([SKEWNESS_ENDS, LOG_TAIL_ENDS])[: free.shape[1]].T
    shape = free.clamp(low, high)
    both = torch.cat([shape, shape.new_zeros(len(shape), 2 - shape.shape[1])], dim=1)
    epsilon, log_d = both.split(1, dim=1)
    limit = ATANH_RHO_LIMIT[given]
    a = atanh_rho.clamp(-limit, limit)

    columns, weight = rows.x[..., list(scale)], rows.weight
    local = log_sigma + product(columns, b)
    precision = torch.exp(-local)
    e = (rows.y - output[..., 0]) * precision
    unit = first_slopes(product(rows.w, gamma), e, epsilon, log_d, a)
    unselected, by_gamma = unselected_loss(gamma, rows)
    by_e = -weight * unit.by_e
    by_local = weight - by_e * e
    by_shape = torch.stack([weight * unit.by_s, weight * unit.by_l], dim=2).sum(dim=1)
    by_head = [
        by_gamma - weighted_sum(rows.w, weight * unit.by_i),
        by_local.sum(dim=1, keepdim=True),
        weighted_sum(columns, by_local),
        -by_shape[:, : free.shape[1]] * (shape == free),
        -(weight * unit.by_a).sum(dim=1, keepdim=True) * (a == atanh_rho),
    ]
    loss = (weight * (local - unit.value)).sum(dim=1) + unselected
    by_output = (-precision * by_e)[..., None]
    return loss.to(given), by_output.to(given), torch.cat(by_head, dim=1).to(given)


def joint_with(scale: tuple[int, ...], shape: bool) -> Loss:
    """The loss with a sigma that depends on these columns of x, if any, and with errors of any
    shape or normal ones."""
    names = (f"scale_{column}" for column in scale)
    return Loss(
        partial(joint_form, scale=scale),
        linear=True,
        scalars=("log_sigma", *names, *(SHAPE if shape else ()), "atanh_rho"),
        frozen=True,
    )
