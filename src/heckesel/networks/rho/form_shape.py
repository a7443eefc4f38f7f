r"""Sinh-arcsinh errors of the outcome and normal errors of selection: a family of forms.

With the standardised error e of a selected unit

.. math:: q = \sinh t, \quad t = d\,\mathrm{asinh}(e) - \epsilon ,

and (u, q) is standard bivariate normal with correlation rho = tanh a. The unit contributes

.. math:: \log d + \log\cosh t - \tfrac12\log(1 + e^2) + \log\phi(\sinh t)
          + \log\Phi(\eta\cosh a + \sinh t\sinh a) ,

an unselected one :math:`\log\Phi(-\eta)`. epsilon = 0, d = 1 is the normal model.
"""

from typing import NamedTuple

import torch

from heckesel.math.sinh_arcsinh import population_moments
from heckesel.math.special import HALF_LOG_2PI, log_ndtr_and_mills, mills_excess
from heckesel.networks.rho.form_likelihood import Moments, UnitSlopes

LOG_2 = 0.6931471805599453


class FirstSlopes(NamedTuple):
    """Log-likelihood of a selected unit and its slopes in the index (i), the error (e), epsilon
    (s), log d (l) and a, all (k, n)."""

    value: torch.Tensor
    by_i: torch.Tensor
    by_e: torch.Tensor
    by_s: torch.Tensor
    by_l: torch.Tensor
    by_a: torch.Tensor


def selected(index, e, epsilon, log_d, a):
    t = torch.exp(log_d) * torch.asinh(e) - epsilon
    q = torch.sinh(t)
    log_cdf, _ = log_ndtr_and_mills(index * torch.cosh(a) + q * torch.sinh(a))
    density = log_d + _log_cosh(t) - 0.5 * torch.log1p(e.square()) - 0.5 * q.square()
    return density - HALF_LOG_2PI + log_cdf


class _Parts(NamedTuple):
    """Common terms of the derivatives; root : 1/sqrt(1 + e^2), arc : asinh e, m_t : of m."""

    cosh_a: torch.Tensor
    sinh_a: torch.Tensor
    d: torch.Tensor
    root: torch.Tensor
    arc: torch.Tensor
    sinh: torch.Tensor
    cosh: torch.Tensor
    argument: torch.Tensor
    mills: torch.Tensor
    m_t: torch.Tensor
    value: torch.Tensor


def _parts(index, e, epsilon, log_d, a) -> _Parts:
    r"""The chain goes through t: with :math:`m(\eta, t) = \log\cosh t - \frac12\sinh^2 t +
    \log\Phi(B)`."""
    cosh_a, sinh_a, d = torch.cosh(a), torch.sinh(a), torch.exp(log_d)
    root = torch.rsqrt(1 + e.square())
    arc = torch.asinh(e)
    t = d * arc - epsilon
    sinh, cosh = torch.sinh(t), torch.cosh(t)
    argument = index * cosh_a + sinh * sinh_a
    log_cdf, mills = log_ndtr_and_mills(argument)
    m_t = torch.tanh(t) - sinh * cosh + mills * sinh_a * cosh
    density = log_d + _log_cosh(t) - 0.5 * torch.log1p(e.square()) - 0.5 * sinh.square()
    value = density - HALF_LOG_2PI + log_cdf
    return _Parts(cosh_a, sinh_a, d, root, arc, sinh, cosh, argument, mills, m_t, value)


def first_slopes(index, e, epsilon, log_d, a) -> FirstSlopes:
    at = _parts(index, e, epsilon, log_d, a)
    return FirstSlopes(
        value=at.value,
        by_i=at.cosh_a * at.mills,
        by_e=at.m_t * (at.d * at.root) - e * at.root.square(),
        by_s=-at.m_t,
        by_l=at.m_t * (at.d * at.arc) + 1,
        by_a=at.mills * (index * at.sinh_a + at.sinh * at.cosh_a),
    )


def slopes(index, e, epsilon, log_d, a) -> UnitSlopes:
    at = _parts(index, e, epsilon, log_d, a)
    cosh_a, sinh_a, d, root, sinh, cosh = at.cosh_a, at.sinh_a, at.d, at.root, at.sinh, at.cosh
    mills, m_t = at.mills, at.m_t
    bend = mills * mills_excess(at.argument, mills)
    m_tt = (
        cosh.pow(-2)
        - cosh.square()
        - sinh.square()
        + sinh_a * mills * sinh
        - bend * (sinh_a * cosh).square()
    )
    m_it = -bend * cosh_a * sinh_a * cosh
    t_e, t_l = d * root, d * at.arc
    return UnitSlopes(
        value=at.value,
        by_i=cosh_a * mills,
        by_e=m_t * t_e - e * root.square(),
        by_s=-m_t,
        by_l=m_t * t_l + 1,
        by_ii=-bend * cosh_a.square(),
        by_ie=m_it * t_e,
        by_is=-m_it,
        by_il=m_it * t_l,
        by_ee=m_tt * t_e.square() - m_t * d * e * root.pow(3) - (1 - e.square()) * root.pow(4),
        by_es=-m_tt * t_e,
        by_el=m_tt * t_e * t_l + m_t * t_e,
        by_ss=m_tt,
        by_sl=-m_tt * t_l,
        by_ll=m_tt * t_l.square() + m_t * t_l,
    )


def unselected(index):
    log_cdf, mills = log_ndtr_and_mills(-index)
    return log_cdf, mills, mills * mills_excess(-index, mills)


def moments(epsilon, log_d) -> Moments:
    found = [
        population_moments(float(skew), float(tail))
        for skew, tail in zip(epsilon[:, 0].cpu(), log_d[:, 0].cpu(), strict=True)
    ]

    def column(name: str) -> torch.Tensor:
        values = [float(getattr(each, name)) for each in found]
        return torch.tensor(values, dtype=epsilon.dtype, device=epsilon.device)[:, None]

    return Moments(*(column(name) for name in Moments._fields))


def _log_cosh(t):
    size = t.abs()
    return size + torch.log1p(torch.exp(-2 * size)) - LOG_2
