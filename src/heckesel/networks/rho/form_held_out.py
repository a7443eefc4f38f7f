r"""How far the stated uncertainty of the mean falls short, from held-out units.

The covariance of the coefficients takes the columns and their ridges as given. What they miss of
the outcome function shows in units that a fit has not seen: with :math:`\tau_i^2` the stated
variance of the mean at unit i, the likelihood of held-out units is compared at :math:`c\,\tau_i^2`
for several c, and predictions use the posterior mean of c. The error of the mean is independent of
the unit's own error, so it lowers the correlation with selection as well:

.. math:: \sigma_i'^2 = \sigma_i^2 + c\,\tau_i^2 / \mathrm{Var}(e), \qquad
          \rho_i' = \rho\,\sigma_i/\sigma_i' .
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.special import logsumexp

from heckesel.networks.losses.normal import product
from heckesel.networks.rho.form_likelihood import Units, log_cosh, split
from heckesel.networks.rho.form_optima import Penalty, optimise
from heckesel.numerics.normal import HALF_LOG_2PI
from heckesel.numerics.normal_torch import log_ndtr_and_mills
from heckesel.numerics.sinh_arcsinh import population_moments

FACTORS = np.array([1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0])
PRIOR = 1 / FACTORS / np.sum(1 / FACTORS)
# A held-out unit counts as no less likely than this: one outlier must not decide about a form.
WORST = -60.0
STEPS = 6  # of Newton's method, from the fit to all rows to one without a fold


@dataclass(frozen=True)
class Folds:
    """fold : (n,) of each selected unit; fold_unselected : (m,); count : how many folds"""

    fold: torch.Tensor
    fold_unselected: torch.Tensor
    count: int


def held_out_evidence(
    units: Units, folds: Folds, a, v, ridge, free, penalty: Penalty
) -> tuple[np.ndarray, np.ndarray]:
    """(k,) log-likelihood of held-out units under k models, averaged over c, and the mean of c.

    units : of one model, as in a `Design`; a, v, ridge, free : of the k models, fitted to all rows
    """
    number = torch.arange(folds.count, device=a.device).repeat(len(a))[:, None]
    out, out_unselected = folds.fold == number, folds.fold_unselected == number
    everything = units.repeated(len(number))
    kept = replace(
        everything,
        weight=everything.weight * ~out,
        weight_unselected=everything.weight_unselected * ~out_unselected,
    )
    a, v, ridge, free = (each.repeat_interleave(folds.count, dim=0) for each in (a, v, ridge, free))
    found = optimise(kept, a, v, ridge, free, penalty, updates=0, iterations=STEPS)
    readings = _held_out(everything, everything.weight * out, a, found, free, penalty)
    gamma = split(found.v, units.sizes)[0]
    log_cdf, _ = log_ndtr_and_mills(-product(everything.w_unselected, gamma))
    unselected = (everything.weight_unselected * out_unselected * log_cdf).sum(dim=1)
    readings = readings + unselected.cpu().numpy()[:, None]
    by_factor = readings.reshape(-1, folds.count, len(FACTORS)).sum(axis=1) + np.log(PRIOR)
    evidence = logsumexp(by_factor, axis=1)
    return evidence, np.exp(by_factor - evidence[:, None]) @ FACTORS


def _held_out(units: Units, held, a, found, free, penalty: Penalty) -> np.ndarray:
    """(k, c) log-likelihood of the held-out selected units at each factor."""
    q = units.sizes[0]
    gamma, rest, c, epsilon, log_d = split(found.v, units.sizes)
    theta, d = rest[:, -1:], torch.exp(log_d)
    numbers = [
        population_moments(float(skew), float(tail))
        for skew, tail in zip(epsilon[:, 0].cpu(), log_d[:, 0].cpu(), strict=True)
    ]

    def column(name):
        values = [float(getattr(each, name)) for each in numbers]
        return torch.tensor(values, dtype=a.dtype, device=a.device)[:, None]

    mean, variance = column("mean"), column("variance")
    covariance = torch.linalg.inv(found.information)[:, q:, q:]
    own = free[:, q:]
    covariance = torch.where(own[:, :, None] & own[:, None, :], covariance, 0.0)
    index, factor = product(units.w, gamma), torch.exp(-product(units.u, c))
    columns, y = -units.residual[..., :-1], units.residual[..., -1]
    f = product(columns, rest[:, :-1]) / theta
    # slopes of the mean in units of sigma(x): (b, -(f + sigma mean), ...) / (theta sigma)
    offset = mean.expand_as(factor)
    slopes = torch.cat(
        [
            factor[..., None] * columns,
            -(factor * f + offset / theta)[..., None],
            offset[..., None] * units.u,
            column("d_skewness").expand_as(factor)[..., None],
            column("d_log_tail").expand_as(factor)[..., None],
        ],
        dim=2,
    )
    variance_of_mean = (torch.bmm(slopes, covariance) * slopes).sum(dim=2) / variance
    e = factor * theta * (y - f)
    rho = torch.tanh(a)[:, None]
    result = []
    for value in FACTORS:
        wider = torch.sqrt(1 + value * variance_of_mean)
        scaled = (e - mean) / wider + mean
        t = d * torch.asinh(scaled) - epsilon
        q_score = torch.sinh(t)
        own_rho = rho / wider
        argument = (index + own_rho * q_score) / torch.sqrt((1 - own_rho) * (1 + own_rho))
        log_cdf, _ = log_ndtr_and_mills(argument)
        density = (
            torch.log(factor * theta / wider)
            + log_d
            + log_cosh(t)
            - 0.5 * torch.log1p(scaled.square())
            - 0.5 * q_score.square()
            - HALF_LOG_2PI
        )
        each = torch.nan_to_num(density + log_cdf, nan=WORST, neginf=WORST).clamp(min=WORST)
        result.append((held * each).sum(dim=1))
    return torch.stack(result, dim=1).cpu().numpy()
