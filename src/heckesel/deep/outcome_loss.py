r"""The joint likelihood of a selection that may look at the outcome itself, errors of any shape.

.. math:: P(s = 1 \mid w, y) = \Phi(w'\gamma + \theta f(x) + \kappa(y - f(x))), \qquad
          y = f(x) + \sigma(x)\,e

At :math:`\theta = 0` selection sees what is unusual about an outcome, which is Heckman's model in
other parameters, :math:`\rho = \kappa\sigma/\sqrt{1+\kappa^2\sigma^2}`; at
:math:`\theta = \kappa` it sees the outcome. With a linear f the two are one model. Otherwise
P(s = 1 | w) bends with f(x) where theta is not 0, so the data say which, and unselected units say
something about f.

There are two of them: PLAIN has one sigma and a normal e. FREE has a sigma(x), and for e a mixture
of three normals: a normal likelihood takes the skewness of outcomes for selection. Its mean and
variance are left to f and sigma, so they are not 0 and 1; `error_shape` has the parts.
"""

from __future__ import annotations

import math

import torch

from heckesel.deep.losses import (
    Loss,
    Slopes,
    local_log_sigma,
    product,
    weighted_sum,
)
from heckesel.numerics.normal import HALF_LOG_2PI
from heckesel.numerics.normal_torch import log_ndtr_and_mills

PARTS = 3
# A part is between half and twice as wide as sigma. Outcomes with repeated values, such as grades,
# have no density: a part that may shrink onto one of them has a likelihood without bound.
LOG_WIDTH_LIMIT = math.log(2.0)
SCALARS = ("log_sigma", "kappa", "theta")
SHAPE = tuple(f"{name}_{part}" for name in ("logit", "shift", "width") for part in range(PARTS))
# Close to a standard normal, with parts that differ: left, right and wide.
START_SHAPE = (-0.9, -0.9, -1.6, -0.3, 0.3, 0.0, -0.17, -0.17, 0.36)


def error_shape(shape: torch.Tensor):
    """(k, parts) log share, shift and log width of the parts of e, and the slope of the last in
    the parameter behind it; shape : (k, 9), or (k, 0) for a standard normal"""
    if not shape.shape[1]:
        nothing = shape.new_zeros(len(shape), 1)
        return nothing, nothing, nothing, nothing
    logit, shift, width = shape.split(PARTS, dim=1)
    bent = torch.tanh(width / LOG_WIDTH_LIMIT)
    return torch.log_softmax(logit, dim=1), shift, LOG_WIDTH_LIMIT * bent, 1 - bent.square()


def outcome_selection(output, head, rows) -> Slopes:
    r"""With shares :math:`\pi_m`, shifts :math:`\mu_m` and widths :math:`\omega_m` of the parts and
    :math:`t = w'\gamma`,

    .. math:: -\log\sum_m \pi_m\,\phi\!\Big(\frac{e-\mu_m}{\omega_m}\Big)\frac1{\omega_m\sigma}
              - \log\Phi(t + \theta f + \kappa(y - f))

    for a selected unit and

    .. math:: -\log\sum_m \pi_m\,\Phi(A_m), \quad
              A_m = -\frac{t + \theta f + \kappa\sigma\mu_m}{S_m}, \quad
              S_m^2 = 1 + \kappa^2\sigma^2\omega_m^2

    for an unselected one. Slopes of the sums are those of the parts times their posterior shares.
    """
    q = rows.w.shape[2]
    gamma, (log_sigma, kappa, theta) = head[:, :q], head[:, q : q + 3].split(1, dim=1)
    shape = error_shape(head[:, q + 3 :])
    log_share, shift, log_width, width_bend = (part[:, None] for part in shape)
    share, width = torch.exp(log_share), torch.exp(log_width)  # (k, 1, parts), as shift
    f, free = output[..., 0], output.shape[2] == 2
    if free:
        log_sigma, sigma_bend = local_log_sigma(output[..., 1], log_sigma)
    sigma = torch.exp(log_sigma)
    seen, unseen = rows.weight * rows.selected, rows.weight * (1 - rows.selected)
    index = product(rows.w, gamma) + theta * f

    residual = rows.y - f
    e = residual / sigma
    u = (e[..., None] - shift) / width  # (k, n, parts)
    parts = log_share - 0.5 * u.square() - log_width
    log_density = torch.logsumexp(parts, dim=2)
    posterior = torch.exp(parts - log_density[..., None])
    log_cdf, mills = log_ndtr_and_mills(index + kappa * residual)
    pull = seen * mills
    by_shift = -posterior * u / width * seen[..., None]
    by_e = -by_shift.sum(dim=2)

    offset = sigma[..., None] * shift
    load = (kappa * sigma)[..., None] * width  # kappa sigma omega
    root = torch.sqrt(1 + load.square())
    lean = index[..., None] + kappa[..., None] * offset
    log_miss, miss_mills = log_ndtr_and_mills(-lean / root)
    missed = torch.logsumexp(log_share + log_miss, dim=2)
    missed_posterior = torch.exp(log_share + log_miss - missed[..., None])
    push = unseen[..., None] * missed_posterior * miss_mills / root  # -(slope in A) / S
    narrower = push * lean * (load / root).square()  # how a wider part takes A towards 0

    loss = (seen * (log_sigma + HALF_LOG_2PI - log_density - log_cdf) - unseen * missed).sum(dim=1)
    by_index = push.sum(dim=2) - pull
    by_f = theta * by_index + kappa * pull - by_e / sigma
    along = kappa * (push * offset).sum(dim=2)
    by_log_sigma = seen - e * by_e + along - narrower.sum(dim=2)
    by_kappa = (push * (offset - lean * load * (sigma[..., None] * width) / root.square())).sum(2)
    by_kappa = by_kappa - pull * residual
    by_head = [
        weighted_sum(rows.w, by_index),
        by_log_sigma.sum(dim=1, keepdim=True),
        by_kappa.sum(dim=1, keepdim=True),
        (by_index * f).sum(dim=1, keepdim=True),
    ]
    if not free:
        return loss, by_f[..., None], torch.cat(by_head, dim=1)
    explained = seen[..., None] * posterior + unseen[..., None] * missed_posterior
    by_logit = rows.weight[..., None] * share - explained
    by_shift = by_shift + push * (kappa * sigma)[..., None]
    by_width = seen[..., None] * posterior * (1 - u.square()) - narrower
    by_head += [by_logit.sum(dim=1), by_shift.sum(dim=1), by_width.sum(dim=1) * width_bend[:, 0]]
    by_output = torch.stack([by_f, by_log_sigma * sigma_bend], dim=2)
    return loss, by_output, torch.cat(by_head, dim=1)


PLAIN = Loss(outcome_selection, linear=True, scalars=SCALARS)
FREE = Loss(outcome_selection, outputs=2, linear=True, scalars=SCALARS + SHAPE, quiet=1)
