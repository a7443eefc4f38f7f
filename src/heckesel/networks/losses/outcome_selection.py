r"""The joint likelihood of a selection that may depend on the outcome itself, with flexible errors.

.. math:: P(s = 1 \mid w, y) = \Phi(w'\gamma + \theta f(x) + \kappa(y - f(x))), \qquad
          y = f(x) + \sigma(x)\,e

At :math:`\theta = 0` selection depends on the error of the outcome, which is Heckman's model with
:math:`\rho = \kappa\sigma/\sqrt{1+\kappa^2\sigma^2}`; at :math:`\theta = \kappa` it depends on
the outcome. If f is linear in w, the two are the same model. Otherwise P(s = 1 | w) depends on f(x)
if theta is not 0, so theta is identified, and unselected units are informative about f.

PLAIN has one sigma and a normal e. FREE has a sigma(x), and e is a mixture of three normals: a
normal likelihood mistakes skewness of the outcome for selection. The mean and variance of e are not
fixed at 0 and 1; `error_shape` has the components.
"""

import math
from dataclasses import dataclass

import torch

from heckesel.math.special import HALF_LOG_2PI, log_ndtr_and_mills
from heckesel.networks.losses.normal import (
    Loss,
    Slopes,
    local_log_sigma,
    product,
    weighted_sum,
)

COMPONENTS = 3
# The sd of a component is between half and twice sigma. For outcomes with repeated values, such as
# grades, the likelihood of a component that shrinks onto one value is unbounded.
LOG_WIDTH_LIMIT = math.log(2.0)
SCALARS = ("log_sigma", "kappa", "theta")
SHAPE = tuple(
    f"{name}_{part}" for name in ("logit", "shift", "width") for part in range(COMPONENTS)
)
# At the start e is close to a standard normal, with distinct components: left, right and wide.
START_SHAPE = (-0.9, -0.9, -1.6, -0.3, 0.3, 0.0, -0.17, -0.17, 0.36)


def error_shape(shape: torch.Tensor):
    """(k, components) log share, shift and log width of the components of e, and the slope of the
    log width in its parameter; shape : (k, 9), or (k, 0) for a standard normal"""
    if not shape.shape[1]:
        nothing = shape.new_zeros(len(shape), 1)
        return nothing, nothing, nothing, nothing
    logit, shift, width = shape.split(COMPONENTS, dim=1)
    bent = torch.tanh(width / LOG_WIDTH_LIMIT)
    return torch.log_softmax(logit, dim=1), shift, LOG_WIDTH_LIMIT * bent, 1 - bent.square()


def outcome_selection(output, head, rows) -> Slopes:
    r"""With shares :math:`\pi_m`, shifts :math:`\mu_m` and widths :math:`\omega_m` of the
    components and :math:`t = w'\gamma`,

    .. math:: -\log\sum_m \pi_m\,\phi\!\Big(\frac{e-\mu_m}{\omega_m}\Big)\frac1{\omega_m\sigma}
              - \log\Phi(t + \theta f + \kappa(y - f))

    for a selected unit and

    .. math:: -\log\sum_m \pi_m\,\Phi(A_m), \quad
              A_m = -\frac{t + \theta f + \kappa\sigma\mu_m}{S_m}, \quad
              S_m^2 = 1 + \kappa^2\sigma^2\omega_m^2

    for an unselected one. Slopes of the sums are those of the components times their posterior
    shares.
    """
    q = rows.w.shape[2]
    gamma, (log_sigma, kappa, theta) = head[:, :q], head[:, q : q + 3].split(1, dim=1)
    *shape, width_bend = error_shape(head[:, q + 3 :])
    f, free = output[..., 0], output.shape[2] == 2
    if free:
        log_sigma, sigma_bend = local_log_sigma(output[..., 1], log_sigma)
    index = product(rows.w, gamma) + theta * f
    at = _Model(f, log_sigma, index, kappa, theta, *(part[:, None] for part in shape))
    seen, unseen = rows.weight * rows.selected, rows.weight * (1 - rows.selected)
    # every unit has weight zero in one of the two, so the sums do not round
    loss, by_index, by_f, by_log_sigma, by_kappa, by_logit, by_shift, by_width = map(
        torch.add, _selected(at, rows.y, seen), _unselected(at, unseen)
    )
    by_head = [
        weighted_sum(rows.w, by_index),
        by_log_sigma.sum(dim=1, keepdim=True),
        by_kappa.sum(dim=1, keepdim=True),
        (by_index * f).sum(dim=1, keepdim=True),
    ]
    by_output = [by_f]
    if free:
        by_output.append(by_log_sigma * sigma_bend)
        by_head += [by_logit.sum(dim=1), by_shift.sum(dim=1), by_width.sum(dim=1) * width_bend]
    return loss.sum(dim=1), torch.stack(by_output, dim=2), torch.cat(by_head, dim=1)


@dataclass(frozen=True)
class _Model:
    """The quantities in the likelihood of a unit.

    f, index : (k, n), index includes theta f; log_sigma : (k, n) or (k, 1)
    kappa, theta : (k, 1); log_share, shift, log_width : (k, 1, components)
    """

    f: torch.Tensor
    log_sigma: torch.Tensor
    index: torch.Tensor
    kappa: torch.Tensor
    theta: torch.Tensor
    log_share: torch.Tensor
    shift: torch.Tensor
    log_width: torch.Tensor


def _selected(at: _Model, y, weight) -> tuple[torch.Tensor, ...]:
    """Loss of selected units and its slopes in the index, f, log sigma and kappa, (k, n), and in
    logit, shift and log width of the components, (k, n, components)."""
    sigma, width = torch.exp(at.log_sigma), torch.exp(at.log_width)
    residual, each = y - at.f, weight[..., None]
    e = residual / sigma
    u = (e[..., None] - at.shift) / width  # (k, n, components)
    terms = at.log_share - 0.5 * u.square() - at.log_width
    log_density = torch.logsumexp(terms, dim=2)
    posterior = torch.exp(terms - log_density[..., None])
    log_cdf, mills = log_ndtr_and_mills(at.index + at.kappa * residual)
    pull = weight * mills
    by_shift = -posterior * u / width * each
    by_e = -by_shift.sum(dim=2)
    return (
        weight * (at.log_sigma + HALF_LOG_2PI - log_density - log_cdf),
        -pull,
        at.kappa * pull - at.theta * pull - by_e / sigma,
        weight - e * by_e,
        -pull * residual,
        each * torch.exp(at.log_share) - each * posterior,
        by_shift,
        each * posterior * (1 - u.square()),
    )


def _unselected(at: _Model, weight) -> tuple[torch.Tensor, ...]:
    """The same of unselected units."""
    sigma, kappa = torch.exp(at.log_sigma)[..., None], at.kappa[..., None]
    width, each = torch.exp(at.log_width), weight[..., None]
    offset = sigma * at.shift
    load = kappa * sigma * width  # kappa sigma omega
    root = torch.sqrt(1 + load.square())
    lean = at.index[..., None] + kappa * offset
    log_miss, mills = log_ndtr_and_mills(-lean / root)
    terms = at.log_share + log_miss
    missed = torch.logsumexp(terms, dim=2)
    posterior = torch.exp(terms - missed[..., None])
    push = each * posterior * mills / root  # -(slope in A) / S
    narrower = push * lean * (load / root).square()  # how a wider component moves A towards 0
    by_index = push.sum(dim=2)
    return (
        -weight * missed,
        by_index,
        at.theta * by_index,
        at.kappa * (push * offset).sum(dim=2) - narrower.sum(dim=2),
        (push * (offset - lean * load * (sigma * width) / root.square())).sum(dim=2),
        each * torch.exp(at.log_share) - each * posterior,
        push * (kappa * sigma),
        -narrower,
    )


PLAIN = Loss(outcome_selection, linear=True, scalars=SCALARS)
FREE = Loss(outcome_selection, outputs=2, linear=True, scalars=SCALARS + SHAPE, quiet=1)
