r"""The joint likelihood of k models whose outcome is linear in given columns, computed at once.

The columns are the last hidden layer of k networks, or spline bases. In Olsen's coordinates
v = (gamma, delta, theta), theta = 1/sigma and delta = beta/sigma, the log-likelihood is concave
at fixed a = atanh rho (see `heckesel.classical.ml`). Groups of coefficients have ridges,

.. math:: \ell(v; a) - \tfrac12 \sum_g \lambda_g |\delta_g|^2 ,

that is, priors N(0, 1/lambda_g). The ridges maximise the evidence, the likelihood with v integrated
out (Laplace approximation),

.. math:: \ell(\hat v; a) - \tfrac12 \sum_g \lambda_g |\hat\delta_g|^2
          + \tfrac12 \sum_g r_g \log\lambda_g - \tfrac12 \log|{-H}| ,

r_g the size of a group. As a function of rho the evidence penalises flexible models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from heckesel.math.special import HALF_LOG_2PI, log_ndtr_and_mills, mills_excess
from heckesel.networks.losses.normal import product, weighted_sum
from heckesel.networks.rho.form_likelihood import Surface
from heckesel.networks.training.batches import Batch, stack_datasets

# At the ends the prior sd of a coefficient is 300 (free) or 3e-5 (zero).
RIDGE_RANGE = (1e-5, 1e9)
# On gamma, so that columns of w may be collinear, as all levels of a category are. It is negligible
# against an information of about one for each row.
GAMMA_RIDGE = 1e-6
# Gains in log-likelihood and in evidence below which iterations stop; both change weights little.
GAIN_TOLERANCE = 1e-5
EVIDENCE_TOLERANCE = 1e-2
MAX_ITERATIONS = 60
MAX_HALVINGS = 30


@dataclass(frozen=True)
class Bases:
    """Rows of k models, float64; padding has weight zero.

    residual : (k, n, h + 1) = [-columns, y]; w : (k, n, q), weight : (k, n): the selected units
    w_unselected : (k, m, q), weight_unselected : (k, m)
    gram : (k, h + 1, h + 1) weighted residual'residual
    membership : (h, ridges) one where the column has that ridge, else zero
    """

    residual: torch.Tensor
    w: torch.Tensor
    weight: torch.Tensor
    w_unselected: torch.Tensor
    weight_unselected: torch.Tensor
    gram: torch.Tensor
    membership: torch.Tensor

    @property
    def q(self) -> int:
        return self.w.shape[2]

    def __len__(self) -> int:
        return len(self.w)

    @property
    def device(self) -> torch.device:
        return self.w.device

    def start(self) -> tuple[torch.Tensor, torch.Tensor]:
        return start_at(self)

    def optima(self, a, v, ridge, *, updates: int = 2) -> Optima:
        return conditional_optima(self, a, v, ridge, updates=updates)

    def covariance_factor(self, information: torch.Tensor) -> torch.Tensor:
        """(k, h + 1, h + 1) Cholesky factor of the covariance of (delta, theta)."""
        covariance = torch.cholesky_inverse(torch.linalg.cholesky(information))
        return torch.linalg.cholesky(covariance[:, self.q :, self.q :])


def bases_of(rows: Sequence[Batch], totals: Sequence[float], membership, device) -> Bases:
    """One model for each of `rows`: x holds its columns, and its weights, which add up to one, are
    those of `totals` units."""
    stacked = stack_datasets(rows, dtype=torch.float64, device=device)
    total = torch.as_tensor(totals, dtype=torch.float64, device=device)[:, None]
    residual = torch.cat([-stacked.x, stacked.y[..., None]], dim=2)
    weight = total * stacked.weight
    return Bases(
        residual=residual,
        w=stacked.w,
        weight=weight,
        w_unselected=stacked.w_unselected,
        weight_unselected=total * stacked.weight_unselected,
        gram=_gram(residual, weight),
        membership=torch.as_tensor(membership, dtype=torch.float64, device=device),
    )


@dataclass(frozen=True)
class Optima:
    """The maximum of each model at its a (k,). v : (k, P), ridge : (k, ridges), evidence : (k,)

    information : (k, P, P) minus the Hessian of the penalised log-likelihood; coefficients that the
    model does not vary have a unit diagonal there
    """

    a: torch.Tensor
    v: torch.Tensor
    ridge: torch.Tensor
    evidence: torch.Tensor
    information: torch.Tensor


def start_at(bases: Bases) -> tuple[torch.Tensor, torch.Tensor]:
    """Initial v and ridges: coefficients zero, sigma and ridges one."""
    k, _, width = bases.residual.shape
    v = bases.residual.new_zeros(k, bases.q + width)
    v[:, -1] = 1.0
    return v, bases.residual.new_ones(k, bases.membership.shape[1])


def conditional_optima(bases: Bases, a: torch.Tensor, v, ridge, *, updates: int = 2) -> Optima:
    r"""Newton steps in v at fixed a (k,), with a ridge update before each of the first few.

    The update (Fellner and Schall's) moves to the fixed point of the evidence,
    :math:`\lambda_g \leftarrow (r_g - \lambda_g\,\mathrm{tr}\,V_{gg}) / |\delta_g|^2`. Along a grid
    of a the best ridges change slowly and the evidence is flat at its maximum, so two updates per
    grid value are enough. A model that has converged is not changed any more, so its result does
    not depend on the other models.
    """
    here = _surface(bases, v, a)
    moving = torch.ones(len(v), dtype=torch.bool, device=v.device)
    for iteration in range(MAX_ITERATIONS):
        promised = torch.zeros_like(here.value)
        if iteration < updates:
            updated, promised = _updated_ridge(bases, here, ridge)
            ridge = torch.where(moving[:, None], updated, ridge)
        _, score, information = _penalised(bases, here, ridge)
        step = torch.cholesky_solve(score[..., None], torch.linalg.cholesky(information))[..., 0]
        gain = 0.5 * (score * step).sum(dim=1)
        moving = moving & ((promised > EVIDENCE_TOLERANCE) | (gain > GAIN_TOLERANCE))
        if not moving.any():
            break
        here = _line_search(bases, here, a, ridge, torch.where(moving[:, None], step, 0.0), gain)
    value, _, information = _penalised(bases, here, ridge)
    log_determinant = 2 * torch.linalg.cholesky(information).diagonal(dim1=1, dim2=2).log().sum(1)
    sizes = bases.membership.sum(dim=0)
    evidence = value + 0.5 * (ridge.log() @ sizes - log_determinant)
    return Optima(a, here.v, ridge, evidence, information)


def _surface(bases: Bases, v, a) -> Surface:
    """With Z = [w cosh a, residual sinh a], lambda and delta at B = Z'v (`likelihoods.normal`):
    score Z'lambda - (0, r'e), information Z' delta Z + r'r, and the terms of log theta."""
    q, a = bases.q, a[:, None]
    gamma, rest, theta = v[:, :q], v[:, q:], v[:, -1]
    index, e = product(bases.w, gamma), product(bases.residual, rest)
    argument = 0.5 * ((index + e) * torch.exp(a) + (index - e) * torch.exp(-a))
    log_cdf, mills = log_ndtr_and_mills(argument)
    delta = mills * mills_excess(argument, mills)
    log_cdf_out, mills_out = log_ndtr_and_mills(-product(bases.w_unselected, gamma))
    delta_out = mills_out * mills_excess(-product(bases.w_unselected, gamma), mills_out)
    mass = bases.weight.sum(dim=1)
    value = (
        (bases.weight * (log_cdf - 0.5 * e.square() - HALF_LOG_2PI)).sum(dim=1)
        + (bases.weight_unselected * log_cdf_out).sum(dim=1)
        + mass * theta.log()
    )
    cosh, sinh = torch.cosh(a), torch.sinh(a)
    pull = bases.weight * mills
    score = torch.cat(
        [
            cosh * weighted_sum(bases.w, pull)
            - weighted_sum(bases.w_unselected, bases.weight_unselected * mills_out),
            weighted_sum(bases.residual, sinh * pull - bases.weight * e),
        ],
        dim=1,
    )
    score[:, -1] += mass / theta
    z = torch.cat([cosh[..., None] * bases.w, sinh[..., None] * bases.residual], dim=2)
    information = _gram(z, bases.weight * delta)
    information[:, q:, q:] += bases.gram
    information[:, :q, :q] += _gram(bases.w_unselected, bases.weight_unselected * delta_out)
    information[:, -1, -1] += mass / theta.square()
    return Surface(v, torch.where(theta > 0, value, -torch.inf), score, information)


def _penalised(bases: Bases, at: Surface, ridge):
    """Value, score and information with the ridges of delta and that of gamma."""
    q = bases.q
    by_coefficient = at.v.new_full((len(at.v), at.v.shape[1] - 1), GAMMA_RIDGE)
    by_coefficient[:, q:] = ridge @ bases.membership.T  # (k, h)
    v = at.v[:, :-1]
    value = at.value - 0.5 * (by_coefficient * v.square()).sum(dim=1)
    score, information = at.score.clone(), at.information.clone()
    score[:, :-1] -= by_coefficient * v
    information[:, :-1, :-1] += torch.diag_embed(by_coefficient)
    return value, score, information


def _updated_ridge(bases: Bases, at: Surface, ridge):
    """The next ridges, and approximately how much evidence (k,) they gain: its slope in
    log lambda is (r_g - lambda_g tr V_gg - lambda_g |delta_g|^2)/2."""
    q, membership = bases.q, bases.membership
    _, _, information = _penalised(bases, at, ridge)
    covariance = torch.cholesky_inverse(torch.linalg.cholesky(information))
    variance = covariance.diagonal(dim1=1, dim2=2)[:, q:-1] @ membership
    size = at.v[:, q:-1].square() @ membership
    degrees = (membership.sum(dim=0) - ridge * variance).clamp(min=0)
    moved = (degrees / size.clamp(min=1e-300)).clamp(*RIDGE_RANGE)
    # At the start every delta is zero and has no information about its ridge.
    moved = torch.where(size > 0, moved, ridge)
    promised = 0.5 * (degrees - ridge * size) * (moved / ridge).log()
    return moved, promised.abs().sum(dim=1)


def _line_search(bases: Bases, here: Surface, a, ridge, step, gain) -> Surface:
    """Halve the step of each model until its penalised likelihood does not decrease."""
    value, _, _ = _penalised(bases, here, ridge)
    length = torch.ones_like(value)
    for _ in range(MAX_HALVINGS):
        there = _surface(bases, here.v + length[:, None] * step, a)
        reached, _, _ = _penalised(bases, there, ridge)
        fell = ~(reached >= value - 1e-12 * value.abs() - 1e-3 * gain * length)
        if not fell.any():
            return there
        length = torch.where(fell, 0.5 * length, length)
    return _surface(bases, torch.where(fell[:, None], here.v, there.v), a)


def _gram(columns, factor):
    return torch.bmm(columns.transpose(1, 2), columns * factor[..., None])
