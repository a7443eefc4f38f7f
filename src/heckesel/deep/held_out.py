r"""How wide is the noise? Judged where it can be seen: on rows a member was not shown.

A residual on a row the network was trained on is too small, so sigma from it is too. The residual
:math:`r_{ij}` of row i under a member j that never saw it is honest, but holds two things: the
noise of the outcome and that member's own error, with variances :math:`\sigma^2` and
:math:`\tau_i^2`. The ensemble predicts with variance :math:`\sigma^2 + \tau^2(x)` where
:math:`\tau^2(x)` is the variance between its members; were sigma the plain root mean square of
the residuals, members' errors would be counted twice. So sigma maximises the likelihood of

.. math:: r_{ij} \sim N(0, \sigma^2 + \tau_i^2), \qquad
          \tau_i^2 = \tfrac1{k-1}\sum_l (f_l(x_i) - \bar f(x_i))^2 ,

the very form in which it is used. Members that saw row i agree there a little more than they
would elsewhere, which leaves sigma on the wide side, by less than :math:`\tau^2`. The error that
all members share stays in sigma: nothing else would account for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_ndtr

from heckesel.deep.student_loss import degrees_of_freedom
from heckesel.numerics.student_torch import log_cdf_and_slopes, log_density_and_slopes
from heckesel.predictive import RHO_LIMIT

HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True)
class Pairs:
    """Every row with every member that did without it, r pairs in all.

    mean, spread : (r,) f and the factor on sigma that the member says for the row, 1 without one
    doubt : (r,) variance between members there; member, row : (r,); weight : (r,) adding up to 1
    """

    mean: np.ndarray
    spread: np.ndarray
    doubt: np.ndarray
    weight: np.ndarray
    member: np.ndarray
    row: np.ndarray


def pairs_of(mean, spread, weight, out) -> Pairs:
    """mean, spread : (k, n); weight : (n,); out : (k, n) True where the member did without."""
    k = len(mean)
    doubt = mean.var(axis=0, ddof=1) if k > 1 else np.zeros(mean.shape[1])
    member, row = np.nonzero(out & (weight > 0))
    total = weight[row]
    return Pairs(
        mean=mean[member, row],
        spread=spread[member, row],
        doubt=doubt[row],
        weight=total / total.sum(),
        member=member,
        row=row,
    )


def normal_loss(residual, variance):
    """-log density of N(0, variance)."""
    return 0.5 * (np.log(variance) + residual**2 / variance) + HALF_LOG_2PI


def two_step_loss(residual, level, c, delta, pairs: Pairs):
    r"""(r,) of residuals given selection, with :math:`\sigma_i` = level times the spread and
    :math:`\rho` = c/level: :math:`N(0,\ \sigma_i^2(1 - \rho^2\delta) + \tau_i^2)`.

    A two-step may leave c above the level; no variance has that, so rho stops short of one.
    """
    rho_square = np.minimum((c / level) ** 2, RHO_LIMIT**2)
    sigma_square = (level * pairs.spread) ** 2
    return normal_loss(residual, sigma_square * (1 - rho_square * delta) + pairs.doubt)


def joint_loss(y, level, rho, index, pairs: Pairs):
    """(r,) of y and selection under the joint likelihood, at `_with_doubt`."""
    e, rho, total = _with_doubt(y, level, rho, pairs)
    argument = (index + rho * e) / np.sqrt((1 - rho) * (1 + rho))
    return normal_loss(y - pairs.mean, total**2) - log_ndtr(argument)


def student_loss(y, level, rho, index, df, pairs: Pairs):
    """(r,) the same with t errors of df degrees of freedom."""
    e, rho, total = _with_doubt(y, level, rho, pairs)
    argument = (index + rho * e) / np.sqrt((1 - rho) * (1 + rho)) * np.sqrt((df + 1) / (df + e**2))
    freedom = torch.tensor([[df]], dtype=torch.float64)
    log_density = log_density_and_slopes(torch.as_tensor(e)[None], freedom)[0][0].numpy()
    log_cdf = log_cdf_and_slopes(torch.as_tensor(argument)[None], freedom + 1)[0][0].numpy()
    return np.log(total) - log_density - log_cdf


def _with_doubt(y, level, rho, pairs):
    r"""(e, rho', sigma') with :math:`\sigma'^2 = \sigma_i^2 + \tau_i^2` and
    :math:`\rho' = \rho\sigma_i/\sigma'`."""
    sigma = level * pairs.spread
    total = np.sqrt(sigma**2 + pairs.doubt)
    return (y - pairs.mean) / total, rho * sigma / total, total


def judged_level(loss: Callable[[float], np.ndarray], weight) -> tuple[float, float]:
    """The level of sigma with the least mean loss over the pairs, and that loss."""
    found = minimize_scalar(
        lambda log_level: float(weight @ loss(np.exp(log_level))), bracket=(-1.0, 0.0)
    )
    return float(np.exp(found.x)), float(found.fun)


def judged_tails(loss: Callable[[float, float], np.ndarray], weight) -> tuple[float, float, float]:
    """The level and the degrees of freedom with the least mean loss over the pairs, and that loss.

    loss : (level, df) -> (r,). Members end before their own degrees of freedom have settled.
    """
    found = minimize(
        lambda point: float(weight @ loss(np.exp(point[0]), float(degrees_of_freedom(point[1])))),
        x0=[-0.5, 1.0],
        method="Nelder-Mead",
        options={"xatol": 1e-3, "fatol": 1e-7},
    )
    return float(np.exp(found.x[0])), float(degrees_of_freedom(found.x[1])), float(found.fun)
