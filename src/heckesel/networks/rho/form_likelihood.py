r"""The joint likelihood of k models of several forms, with an outcome linear in given columns.

In Olsen's coordinates, with theta = 1/sigma, delta = beta/sigma and log sigma(x) linear in columns
u, the standardised error of a selected unit is

.. math:: e = e^{-c'u}(\theta y - b'\delta)

and its log-likelihood is :math:`\log\theta - c'u + \ell(\eta, e)` with the selection index
:math:`\eta = w'\gamma`. A `Family` has :math:`\ell` and the log-likelihood of an unselected unit:
`form_shape` for sinh-arcsinh errors, normal errors among them, and `form_student` for t errors in
both equations. A form determines which of c, epsilon and log d are free. The others are zero, so
that models of several forms can be computed in one batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch

from heckesel.networks.losses.normal import product, weighted_sum


class UnitSlopes(NamedTuple):
    """Log-likelihood of a selected unit and its derivatives in the index (i), the error (e),
    epsilon (s) and log d (l), all (k, n)."""

    value: torch.Tensor
    by_i: torch.Tensor
    by_e: torch.Tensor
    by_s: torch.Tensor
    by_l: torch.Tensor
    by_ii: torch.Tensor
    by_ie: torch.Tensor
    by_is: torch.Tensor
    by_il: torch.Tensor
    by_ee: torch.Tensor
    by_es: torch.Tensor
    by_el: torch.Tensor
    by_ss: torch.Tensor
    by_sl: torch.Tensor
    by_ll: torch.Tensor


class Moments(NamedTuple):
    """Moments of e in the population, and the slopes of its mean, all (k, 1)."""

    mean: torch.Tensor
    variance: torch.Tensor
    d_skewness: torch.Tensor
    d_log_tail: torch.Tensor


class Family(Protocol):
    """index, e : (k, n); epsilon, log_d, a : (k, 1), a may be (k, n)."""

    def selected(self, index, e, epsilon, log_d, a) -> torch.Tensor: ...

    def slopes(self, index, e, epsilon, log_d, a) -> UnitSlopes: ...

    def unselected(self, index) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """log P(not selected), its slope in -index and minus its second derivative."""
        ...

    def moments(self, epsilon, log_d) -> Moments: ...


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
        """Bytes that one model needs."""
        return sum(values[0].nbytes for values in vars(self).values())

    def repeated(self, k: int) -> Units:
        """The same rows for k models, not copied."""
        return Units(**{n: v.expand(k, *v.shape[1:]) for n, v in vars(self).items()})

    def take(self, models: torch.Tensor) -> Units:
        """The rows of some of the models; rows that models share are not copied."""
        return Units(
            **{
                name: values[:1].expand(len(models), *values.shape[1:])
                if values.stride(0) == 0
                else values[models]
                for name, values in vars(self).items()
            }
        )

    def rows(self, selected: torch.Tensor, unselected: torch.Tensor) -> Units:
        """Some of the selected and of the unselected units."""
        of_selected = {n: getattr(self, n)[:, selected] for n in ("residual", "w", "u", "weight")}
        return Units(
            **of_selected,
            w_unselected=self.w_unselected[:, unselected],
            weight_unselected=self.weight_unselected[:, unselected],
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


def value_at(family: Family, units: Units, v: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """(k,) the log-likelihood at v (k, P) and a (k,); -inf where theta is not positive."""
    gamma, rest, c, epsilon, log_d = split(v, units.sizes)
    scale, theta = -product(units.u, c), rest[:, -1:]
    e = torch.exp(scale) * product(units.residual, rest)
    each = family.selected(product(units.w, gamma), e, epsilon, log_d, a[:, None])
    each = each + scale + torch.log(theta.clamp(min=1e-300))
    out, _, _ = family.unselected(product(units.w_unselected, gamma))
    value = (units.weight * each).sum(dim=1) + (units.weight_unselected * out).sum(dim=1)
    return torch.where((theta[:, 0] > 0) & torch.isfinite(value), value, -torch.inf)


class _EachUnit(NamedTuple):
    """The terms of derivatives at v: log e^{-c'u} and e^{-c'u}, the errors e, the slopes of
    selected units and log-likelihood, first and second derivative of unselected ones."""

    scale: torch.Tensor
    factor: torch.Tensor
    e: torch.Tensor
    slopes: UnitSlopes
    out: torch.Tensor
    mills: torch.Tensor
    bend: torch.Tensor


def _each_unit(family: Family, units: Units, v: torch.Tensor, a: torch.Tensor) -> _EachUnit:
    gamma, rest, c, epsilon, log_d = split(v, units.sizes)
    scale = -product(units.u, c)
    factor = torch.exp(scale)
    e = factor * product(units.residual, rest)
    slopes = family.slopes(product(units.w, gamma), e, epsilon, log_d, a[:, None])
    return _EachUnit(
        scale, factor, e, slopes, *family.unselected(product(units.w_unselected, gamma))
    )


def _score(units: Units, v: torch.Tensor, each: _EachUnit) -> torch.Tensor:
    weight, unit = units.weight, each.slopes
    slope_e, theta = weight * unit.by_e, split(v, units.sizes)[1][:, -1]
    by_gamma = weighted_sum(units.w, weight * unit.by_i) - weighted_sum(
        units.w_unselected, units.weight_unselected * each.mills
    )
    by_rest = weighted_sum(units.residual, slope_e * each.factor)
    by_rest[:, -1] += weight.sum(dim=1) / theta
    by_c = -weighted_sum(units.u, slope_e * each.e + weight)
    by_shape = [(weight * slope).sum(dim=1, keepdim=True) for slope in (unit.by_s, unit.by_l)]
    return torch.cat([by_gamma, by_rest, by_c, *by_shape], dim=1)


def score_at(family: Family, units: Units, v: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """(k, P) the slope of the log-likelihood at v."""
    return _score(units, v, _each_unit(family, units, v, a))


def surface_at(family: Family, units: Units, v: torch.Tensor, a: torch.Tensor) -> Surface:
    """Value and derivatives, by the chain rule through the index and e(delta, theta, c)."""
    width, theta = units.sizes[1], split(v, units.sizes)[1][:, -1]
    each = _each_unit(family, units, v, a)
    unit, e, bend = each.slopes, each.e, each.bend
    weight, weight_out = units.weight, units.weight_unselected
    mass = weight.sum(dim=1)
    value = (weight * (each.scale + unit.value)).sum(dim=1)
    value = value + mass * torch.log(theta.clamp(min=1e-300)) + (weight_out * each.out).sum(dim=1)
    ok = (theta > 0) & torch.isfinite(value)

    scaled = each.factor[..., None] * units.residual  # de/d(delta, theta)
    columns = torch.cat([scaled, -e[..., None] * units.u], dim=2)  # and de/dc
    slope_e = weight * unit.by_e

    def total(values):
        return (weight * values).sum(dim=1, keepdim=True)

    def across(table, values):
        return weighted_sum(table, weight * values)[..., None]

    h_gg = _gram(units.w, units.w, weight * unit.by_ii) - _gram(
        units.w_unselected, units.w_unselected, weight_out * bend
    )
    h_ge = _gram(units.w, columns, weight * unit.by_ie)
    h_ee = _gram(columns, columns, weight * unit.by_ee)
    cross = _gram(scaled, units.u, slope_e)
    h_ee[:, :width, width:] -= cross
    h_ee[:, width:, :width] -= cross.mT
    h_ee[:, width:, width:] += _gram(units.u, units.u, slope_e * e)
    h_ee[:, width - 1, width - 1] -= mass / theta.square()
    h_gs, h_gl = across(units.w, unit.by_is), across(units.w, unit.by_il)
    h_es, h_el = across(columns, unit.by_es), across(columns, unit.by_el)
    h_ss, h_sl, h_ll = (total(each)[..., None] for each in (unit.by_ss, unit.by_sl, unit.by_ll))
    hessian = torch.cat(
        [
            torch.cat([h_gg, h_ge, h_gs, h_gl], dim=2),
            torch.cat([h_ge.mT, h_ee, h_es, h_el], dim=2),
            torch.cat([h_gs.mT, h_es.mT, h_ss, h_sl], dim=2),
            torch.cat([h_gl.mT, h_el.mT, h_sl, h_ll], dim=2),
        ],
        dim=1,
    )
    return Surface(v, torch.where(ok, value, -torch.inf), _score(units, v, each), -hessian)


def _gram(left, right, factor):
    return torch.bmm(left.mT, right * factor[..., None])
