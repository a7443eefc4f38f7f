r"""Penalised optima of many models of `form_likelihood` at fixed rho, and their evidence.

Groups of coefficients have ridges, which maximise the evidence, as in `linear_joint`. The
parameters of the error model have proper priors, so that the evidence of forms with different
numbers of parameters is comparable:

.. math:: \epsilon \sim N(0, 1), \quad \log d \sim N(0, .4^2), \quad c_j \sim N(0, 1) .
"""

from dataclasses import dataclass

import torch

from heckesel.networks.rho.form_likelihood import Family, Surface, Units, surface_at, value_at
from heckesel.networks.rho.linear_joint import RIDGE_RANGE, Optima

SCALE_SD, SKEWNESS_SD, TAIL_SD = 1.0, 1.0, 0.4
GAMMA_RIDGE = 1e-6
GAIN_TOLERANCE = 1e-2
MAX_ITERATIONS = 30
LARGEST_DAMPING = 1e3
MAX_HALVINGS = 12


@dataclass(frozen=True)
class Penalty:
    """membership : (P, ridges) one where a coefficient has that ridge, else zero
    fixed : (P,) precision of the other priors; extra : (P,) True for parameters of the error model
    """

    membership: torch.Tensor
    fixed: torch.Tensor
    extra: torch.Tensor


def optimise(
    family: Family,
    units: Units,
    a,
    v,
    ridge,
    free,
    penalty: Penalty,
    *,
    updates: int,
    iterations: int = MAX_ITERATIONS,
) -> Optima:
    """Damped Newton steps at fixed a (k,) for the free (k, P) coefficients of k models; models that
    have converged are not changed."""
    v, ridge = v.clone(), ridge.clone()
    moving = torch.arange(len(a), device=a.device)
    damping = torch.zeros_like(a)
    for iteration in range(iterations):
        own, at, fixed = units.take(moving), a[moving], free[moving]
        here = surface_at(family, own, v[moving], at)
        if iteration < updates:
            ridge[moving] = _updated(here, ridge[moving], fixed, penalty)
        value, score, information = penalised(here, ridge[moving], fixed, penalty)
        factor, damped = cholesky_factor(information, damping[moving])
        step = torch.cholesky_solve(score[..., None], factor)[..., 0]
        gain = 0.5 * (score * step).sum(dim=1)
        reached = _line_search(family, own, here, at, value, ridge[moving], penalty, step)
        stuck = (reached == here.v).all(dim=1)
        v[moving] = reached
        eased = torch.where(damped < 1e-5, 0.0, 0.2 * damped)
        damping[moving] = torch.where(stuck, (10 * damped).clamp(min=1e-3), eased)
        arrived = (gain <= GAIN_TOLERANCE) | (stuck & (damping[moving] > LARGEST_DAMPING))
        if iteration >= updates:
            moving = moving[~arrived]
        if not len(moving):
            break
    here = surface_at(family, units, v, a)
    value, _, information = penalised(here, ridge, free, penalty)
    factor, _ = cholesky_factor(information, torch.zeros_like(a))
    determinant = 2 * factor.diagonal(dim1=1, dim2=2).log().sum(dim=1)
    counts = penalty.membership.sum(dim=0)
    occam = 0.5 * (free & penalty.extra).to(v.dtype) @ penalty.fixed.clamp(min=1e-300).log()
    evidence = value + 0.5 * ridge.log() @ counts + occam - 0.5 * determinant
    return Optima(a, v, ridge, evidence, information)


def _precision(ridge, penalty):
    return ridge @ penalty.membership.T + penalty.fixed


def penalised(at: Surface, ridge, free, penalty: Penalty):
    """Value, score and information of the penalised likelihood; frozen coefficients have no slope
    and a unit information."""
    precision = _precision(ridge, penalty)
    value = at.value - 0.5 * (precision * at.v.square()).sum(dim=1)
    score = penalised_score(at.score, at.v, ridge, free, penalty)
    both = free[:, :, None] & free[:, None, :]
    information = torch.where(both, at.information, 0.0)
    diagonal = torch.where(free, precision, 1.0)
    return value, score, information + torch.diag_embed(diagonal)


def penalised_score(score, v, ridge, free, penalty: Penalty):
    return torch.where(free, score - _precision(ridge, penalty) * v, 0.0)


def cholesky_factor(information, damping):
    """Cholesky factor of the information, whose diagonal is damped as much as this requires."""
    diagonal = information.diagonal(dim1=1, dim2=2).abs().clamp(min=1e-8)
    for _ in range(30):
        factor, failed = torch.linalg.cholesky_ex(
            information + torch.diag_embed(damping[:, None] * diagonal)
        )
        bad = (failed > 0) | ~torch.isfinite(factor.diagonal(dim1=1, dim2=2)).all(dim=1)
        if not bad.any():
            break
        damping = torch.where(bad, (3 * damping).clamp(min=1e-4), damping)
    return factor, damping


def _line_search(family, units, here: Surface, a, value, ridge, penalty, step):
    """v after the longest step, halved if necessary, that does not lower the penalised
    likelihood."""
    precision = _precision(ridge, penalty)
    length = torch.ones_like(value)
    for _ in range(MAX_HALVINGS):
        there = here.v + length[:, None] * step
        reached = value_at(family, units, there, a) - 0.5 * (precision * there.square()).sum(dim=1)
        fell = ~(reached >= value - 1e-10 * value.abs())
        if not fell.any():
            return there
        length = torch.where(fell, 0.35 * length, length)
    return torch.where(fell[:, None], here.v, there)


def _updated(at: Surface, ridge, free, penalty: Penalty):
    """The ridges after a step of Fellner and Schall towards the largest evidence."""
    if ridge.shape[1] == 0:
        return ridge
    _, _, information = penalised(at, ridge, free, penalty)
    factor, _ = cholesky_factor(information, torch.zeros_like(ridge[:, 0]))
    variance = torch.cholesky_inverse(factor).diagonal(dim1=1, dim2=2)
    count = penalty.membership.sum(dim=0)
    size = at.v.square() @ penalty.membership
    degrees = (count - ridge * (variance @ penalty.membership)).clamp(min=1e-3)
    moved = (degrees / size.clamp(min=1e-300)).clamp(*RIDGE_RANGE)
    return torch.where(size > 0, moved, ridge)
