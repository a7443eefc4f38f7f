r"""The factor by which the stated variance of the mean is too small, from held-out units.

The covariance of the coefficients treats the columns and their ridges as given. Held-out units show
the error that this ignores: with :math:`\tau_i^2` the stated
variance of the mean at unit i, the likelihood of held-out units is compared at :math:`c\,\tau_i^2`
for several c, and predictions use the posterior mean of c. The error of the mean is independent of
the unit's own error, so it lowers the correlation with selection as well:

.. math:: \sigma_i'^2 = \sigma_i^2 + c\,\tau_i^2 / \mathrm{Var}(e), \qquad
          \rho_i' = \rho\,\sigma_i/\sigma_i' .
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import logsumexp

from heckesel.networks.losses.normal import product
from heckesel.networks.rho.form_likelihood import (
    Family,
    Surface,
    Units,
    score_at,
    split,
    surface_at,
)
from heckesel.networks.rho.form_optima import (
    Penalty,
    cholesky_factor,
    optimise,
    penalised,
    penalised_score,
)

FACTORS = np.array([1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0])
PRIOR = 1 / FACTORS / np.sum(1 / FACTORS)
# Lower limit of the log-likelihood of a held-out unit, so that one outlier does not decide between
# forms.
WORST = -60.0
# From the fit to all rows to the fit without a fold: at most STEPS steps with the initial
# information, until the expected gain is below LITTLE_GAIN; if they do not converge, NEWTON_STEPS.
STEPS, LITTLE_GAIN, NEWTON_STEPS = 12, 1e-4, 6
DERIVATIVES = ("value", "score", "information")  # fields of `Surface` that are sums over rows


class Fitted(NamedTuple):
    """v (k, P), and information (k, P, P) with penalties, of k models."""

    v: torch.Tensor
    information: torch.Tensor


@dataclass(frozen=True)
class Folds:
    """Units in small groups, groups in folds: the fold of a group is its number modulo `count`.

    group : (n,) of each selected unit; group_unselected : (m,); groups : how many
    """

    group: torch.Tensor
    group_unselected: torch.Tensor
    groups: int
    count: int

    def held_out(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(count, n) and (count, m): the units of each fold."""
        number = torch.arange(self.count, device=self.group.device)[:, None]
        return self.group % self.count == number, self.group_unselected % self.count == number


def held_out_readings(
    family: Family, units: Units, folds: Folds, a, v, ridge, free, penalty: Penalty
) -> np.ndarray:
    """(k, factors, groups) log-likelihood of the held-out units of each group under k models.

    units : of one model, as in a `Design`; a, v, ridge, free : of the k models, fitted to all rows
    """
    models, held = len(a), list(zip(*folds.held_out(), strict=True))
    parts = [units.rows(*out).repeated(models) for out in held]
    surfaces = [surface_at(family, part, v, a) for part in parts]
    everything = units.repeated(models)
    readings = v.new_zeros(models, len(FACTORS), folds.groups)
    for part, own, (out, out_unselected) in zip(parts, surfaces, held, strict=True):
        kept = replace(
            everything,
            weight=everything.weight * ~out,
            weight_unselected=everything.weight_unselected * ~out_unselected,
        )
        others = Surface(
            v, *(sum(getattr(each, n) for each in surfaces) - getattr(own, n) for n in DERIVATIVES)
        )
        found = _fit_without(family, kept, others, a, ridge, free, penalty)
        log_cdf, _, _ = family.unselected(
            product(part.w_unselected, split(found.v, units.sizes)[0])
        )
        unselected = part.weight_unselected * log_cdf
        inside, outside = folds.group[out], folds.group_unselected[out_unselected]
        for place, each in enumerate(held_out_values(family, part, a, found, free, FACTORS)):
            readings[:, place].index_add_(1, inside, part.weight * each)
            readings[:, place].index_add_(1, outside, unselected)
    return readings.cpu().numpy()


def _fit_without(
    family: Family, kept: Units, start: Surface, a, ridge, free, penalty: Penalty
) -> Fitted:
    """The optima of k models for the kept rows, from those for all rows.

    The information changes little between the two, so every step uses that of the kept rows at the
    start, and an iteration computes only the score. Models that do not converge this way are
    optimised by Newton's method from the start.
    """
    _, score, information = penalised(start, ridge, free, penalty)
    factor, damping = cholesky_factor(information, torch.zeros_like(a))
    v, gain = start.v, torch.full_like(a, torch.inf)
    for _ in range(STEPS):
        step = torch.cholesky_solve(score[..., None], factor)[..., 0]
        before, gain, v = gain, 0.5 * (score * step).sum(dim=1), v + step
        if not ((gain > LITTLE_GAIN) & (gain < 0.5 * before)).any():
            break
        score = penalised_score(score_at(family, kept, v, a), v, ridge, free, penalty)
    theta = split(v, kept.sizes)[1][:, -1]
    late = ~((gain <= LITTLE_GAIN) & (damping == 0) & (theta > 0))
    if late.any():
        own = torch.nonzero(late)[:, 0]
        given = a[own], start.v[own], ridge[own], free[own], penalty
        again = optimise(family, kept.take(own), *given, updates=0, iterations=NEWTON_STEPS)
        v = v.index_copy(0, own, again.v)
    return Fitted(v, penalised(surface_at(family, kept, v, a), ridge, free, penalty)[2])


def evidence_of(readings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(k, ...) log-likelihood averaged over c from that at every c (k, factors, ...), and the mean
    of c."""
    shape = (-1,) + (1,) * (readings.ndim - 2)
    by_factor = readings + np.log(PRIOR).reshape(shape)
    evidence = logsumexp(by_factor, axis=1)
    mean = (np.exp(by_factor - evidence[:, None]) * FACTORS.reshape(shape)).sum(axis=1)
    return evidence, mean


def held_out_values(
    family: Family, units: Units, a, found, free, factors: np.ndarray
) -> Iterator[torch.Tensor]:
    """(k, n) log-likelihood of the selected units at each factor; found : v and information"""
    q = units.sizes[0]
    gamma, rest, c, epsilon, log_d = split(found.v, units.sizes)
    theta, moments = rest[:, -1:], family.moments(epsilon, log_d)
    covariance = torch.linalg.inv(found.information)[:, q:, q:]
    own = free[:, q:]
    covariance = torch.where(own[:, :, None] & own[:, None, :], covariance, 0.0)
    index, factor = product(units.w, gamma), torch.exp(-product(units.u, c))
    columns, y = -units.residual[..., :-1], units.residual[..., -1]
    f = product(columns, rest[:, :-1]) / theta
    # slopes of the mean in units of sigma(x): (b, -(f + sigma mean), ...) / (theta sigma)
    mean = moments.mean.expand_as(factor)
    slopes = torch.cat(
        [
            factor[..., None] * columns,
            -(factor * f + mean / theta)[..., None],
            mean[..., None] * units.u,
            moments.d_skewness.expand_as(factor)[..., None],
            moments.d_log_tail.expand_as(factor)[..., None],
        ],
        dim=2,
    )
    variance_of_mean = (torch.bmm(slopes, covariance) * slopes).sum(dim=2) / moments.variance
    e, rho = factor * theta * (y - f), torch.tanh(a)[:, None]
    for value in factors:
        wider = torch.sqrt(1 + value * variance_of_mean)
        scaled = (e - mean) / wider + mean
        each = family.selected(index, scaled, epsilon, log_d, torch.atanh(rho / wider))
        each = each + torch.log(factor * theta / wider)
        yield torch.nan_to_num(each, nan=WORST, neginf=WORST).clamp(min=WORST)
