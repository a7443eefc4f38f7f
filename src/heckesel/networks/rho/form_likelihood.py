r"""The joint likelihood of k models with errors of several forms, outcome linear in given columns.

In Olsen's coordinates, with theta = 1/sigma, delta = beta/sigma and log sigma(x) linear in columns
u, the standardised error of a selected unit is

.. math:: e = e^{-c'u}(\theta y - b'\delta), \qquad
          q = \sinh t, \quad t = d\,\mathrm{asinh}(e) - \epsilon ,

and (u, q) is standard bivariate normal with correlation rho = tanh a. A selected unit contributes

.. math:: \log\theta - c'u + \log d + \log\cosh t - \tfrac12\log(1 + e^2) + \log\phi(\sinh t)
          + \log\Phi(\eta\cosh a + \sinh t\sinh a) ,

an unselected one :math:`\log\Phi(-\eta)`. c = 0, epsilon = 0, d = 1 is the normal model. A form
says which of (c, epsilon, log d) are free; the others stay at zero, so that all forms of a model
are rows of one batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from heckesel.networks.losses.normal import product, weighted_sum
from heckesel.numerics.normal import HALF_LOG_2PI
from heckesel.numerics.normal_torch import log_ndtr_and_mills, mills_excess


@dataclass(frozen=True)
class Units:
    """Rows of k models, float64; padding has weight zero.

    residual : (k, n, h + 1) = [-b, y]; w : (k, n, q); u : (k, n, r): the selected units
    weight : (k, n); w_unselected : (k, m, q); weight_unselected : (k, m)
    """

    residual: torch.Tensor
    w: torch.Tensor
    u: torch.Tensor
    weight: torch.Tensor
    w_unselected: torch.Tensor
    weight_unselected: torch.Tensor

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Columns of w, of [b, y] and of u; v = (gamma, delta, theta, c, epsilon, log d)."""
        return self.w.shape[2], self.residual.shape[2], self.u.shape[2]

    @property
    def nbytes(self) -> int:
        """Of one model."""
        return sum(values[0].nbytes for values in vars(self).values())

    def repeated(self, k: int) -> Units:
        """The same rows for k models, not copied."""
        return Units(**{n: v.expand(k, *v.shape[1:]) for n, v in vars(self).items()})

    def take(self, models: torch.Tensor) -> Units:
        """The rows of some of the models; what models share is still not copied."""
        return Units(
            **{
                name: values[:1].expand(len(models), *values.shape[1:])
                if values.stride(0) == 0
                else values[models]
                for name, values in vars(self).items()
            }
        )


@dataclass(frozen=True)
class Surface:
    """Log-likelihood at v: value (k,), score (k, P), information (k, P, P), minus the Hessian."""

    v: torch.Tensor
    value: torch.Tensor
    score: torch.Tensor
    information: torch.Tensor


def split(v: torch.Tensor, sizes: tuple[int, int, int]):
    """gamma (k, q), (delta, theta) (k, h + 1), c (k, r), epsilon (k, 1) and log d (k, 1)."""
    return torch.split(v, [*sizes, 1, 1], dim=1)


def value_at(units: Units, v: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """(k,) the log-likelihood at v (k, P) and a (k,); -inf where theta is not positive."""
    gamma, rest, c, epsilon, log_d = split(v, units.sizes)
    a = a[:, None]
    index, scale = product(units.w, gamma), -product(units.u, c)
    e = torch.exp(scale) * product(units.residual, rest)
    t = torch.exp(log_d) * torch.asinh(e) - epsilon
    q = torch.sinh(t)
    log_cdf, _ = log_ndtr_and_mills(index * torch.cosh(a) + q * torch.sinh(a))
    out, _ = log_ndtr_and_mills(-product(units.w_unselected, gamma))
    theta = rest[:, -1:]
    each = scale + log_d + log_cosh(t) - 0.5 * torch.log1p(e.square()) - 0.5 * q.square() + log_cdf
    each = each + torch.log(theta.clamp(min=1e-300)) - HALF_LOG_2PI
    value = (units.weight * each).sum(dim=1) + (units.weight_unselected * out).sum(dim=1)
    return torch.where((theta[:, 0] > 0) & torch.isfinite(value), value, -torch.inf)


def surface_at(units: Units, v: torch.Tensor, a: torch.Tensor) -> Surface:
    r"""Value and derivatives. With :math:`m(\eta, t) = \log\cosh t - \frac12\sinh^2 t +
    \log\Phi(B)` the chain goes through t(e, epsilon, log d) and e(delta, theta, c)."""
    _, width, r = units.sizes
    gamma, rest, c, epsilon, log_d = split(v, units.sizes)
    a = a[:, None]
    cosh_a, sinh_a, d = torch.cosh(a), torch.sinh(a), torch.exp(log_d)
    index, scale = product(units.w, gamma), -product(units.u, c)
    factor = torch.exp(scale)
    e = factor * product(units.residual, rest)
    root = torch.rsqrt(1 + e.square())
    arc = torch.asinh(e)
    t = d * arc - epsilon
    sinh, cosh = torch.sinh(t), torch.cosh(t)
    argument = index * cosh_a + sinh * sinh_a
    log_cdf, mills = log_ndtr_and_mills(argument)
    bend = mills * mills_excess(argument, mills)
    weight = units.weight

    m_t = torch.tanh(t) - sinh * cosh + mills * sinh_a * cosh
    m_tt = (
        cosh.pow(-2)
        - cosh.square()
        - sinh.square()
        + sinh_a * mills * sinh
        - bend * (sinh_a * cosh).square()
    )
    m_it = -bend * cosh_a * sinh_a * cosh
    t_e, t_l = d * root, d * arc
    # Derivatives of a unit in (index, e, epsilon, log d).
    l_e = m_t * t_e - e * root.square()
    l_ee = m_tt * t_e.square() - m_t * d * e * root.pow(3) - (1 - e.square()) * root.pow(4)
    l_el = m_tt * t_e * t_l + m_t * t_e
    l_ll = m_tt * t_l.square() + m_t * t_l

    out_index = -product(units.w_unselected, gamma)
    out, mills_out = log_ndtr_and_mills(out_index)
    bend_out = mills_out * mills_excess(out_index, mills_out)
    theta = rest[:, -1]
    mass = weight.sum(dim=1)
    each = scale + log_d + log_cosh(t) - 0.5 * torch.log1p(e.square()) - 0.5 * sinh.square()
    value = (weight * (each + log_cdf - HALF_LOG_2PI)).sum(dim=1) + mass * torch.log(
        theta.clamp(min=1e-300)
    )
    value = value + (units.weight_unselected * out).sum(dim=1)
    ok = (theta > 0) & torch.isfinite(value)

    slope_e = weight * l_e
    scaled = factor[..., None] * units.residual  # de/d(delta, theta)
    moved = -e[..., None] * units.u  # de/dc
    columns = torch.cat([scaled, moved], dim=2)
    score_e = weighted_sum(columns, slope_e)
    score_gamma = cosh_a * weighted_sum(units.w, weight * mills) - weighted_sum(
        units.w_unselected, units.weight_unselected * mills_out
    )
    score_e[:, -r:] -= weighted_sum(units.u, weight)
    score_e[:, width - 1] += mass / theta
    score_epsilon = -(weight * m_t).sum(dim=1, keepdim=True)
    score_l = (weight * (m_t * t_l + 1)).sum(dim=1, keepdim=True)
    score = torch.cat([score_gamma, score_e, score_epsilon, score_l], dim=1)

    def total(values):
        return (weight * values).sum(dim=1)[:, None, None]

    h_gg = _gram(units.w, units.w, -weight * bend * cosh_a.square()) - _gram(
        units.w_unselected, units.w_unselected, units.weight_unselected * bend_out
    )
    h_ge = _gram(units.w, columns, weight * m_it * t_e)
    h_ee = _gram(columns, columns, weight * l_ee)
    cross = _gram(scaled, units.u, slope_e)
    h_ee[:, :width, width:] -= cross
    h_ee[:, width:, :width] -= cross.transpose(1, 2)
    h_ee[:, width:, width:] += _gram(units.u, units.u, slope_e * e)
    h_ee[:, width - 1, width - 1] -= mass / theta.square()
    h_gs = weighted_sum(units.w, -weight * m_it)[..., None]
    h_gl = weighted_sum(units.w, weight * m_it * t_l)[..., None]
    h_es = weighted_sum(columns, -weight * m_tt * t_e)[..., None]
    h_el = weighted_sum(columns, weight * l_el)[..., None]
    h_ss, h_sl, h_ll = total(m_tt), total(-m_tt * t_l), total(l_ll)

    def flip(block):
        return block.transpose(1, 2)

    hessian = torch.cat(
        [
            torch.cat([h_gg, h_ge, h_gs, h_gl], dim=2),
            torch.cat([flip(h_ge), h_ee, h_es, h_el], dim=2),
            torch.cat([flip(h_gs), flip(h_es), h_ss, h_sl], dim=2),
            torch.cat([flip(h_gl), flip(h_el), h_sl, h_ll], dim=2),
        ],
        dim=1,
    )
    return Surface(v, torch.where(ok, value, -torch.inf), score, -hessian)


def log_cosh(t):
    size = t.abs()
    return size + torch.log1p(torch.exp(-2 * size)) - 0.6931471805599453


def _gram(left, right, factor):
    return torch.bmm(left.transpose(1, 2), right * factor[..., None])
