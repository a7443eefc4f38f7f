r"""A fitted model that commits neither to one rho nor to one form of the errors.

The predictive is the mixture over the points of a `Posterior`. At each of them
:math:`y = f(x) + \sigma(x) e` with :math:`f = b'\delta/\theta`, :math:`\sigma(x) =
e^{c'u}/\theta` and e a sinh-arcsinh variable whose mean need not be zero; what is not known about
the mean enters by the delta method over all coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import log_ndtr

from heckesel.data import SelectionData
from heckesel.networks.rho.form_likelihood import Units
from heckesel.networks.rho.form_posterior import FORMS, Design, Posterior
from heckesel.networks.rho.rho_mixture import Basis
from heckesel.networks.training.scaling import DataScale
from heckesel.numerics.normal import averaged_index
from heckesel.numerics.sinh_arcsinh import population_moments
from heckesel.predictive.distribution import Predictive, check_target
from heckesel.predictive.mixture import mix_predictives
from heckesel.predictive.shaped import predict_shape

SMALLEST_WEIGHT = 2e-3  # of the largest, below which a point is dropped


@dataclass(frozen=True)
class FormPoints:
    """j points of a posterior, in standardised units.

    weight, rho, theta, skewness, log_tail : (j,); gamma : (j, q); delta : (j, h); scale : (j, r)
    root : (j, P', P') with root root' the covariance of (delta, theta, scale, skewness, log_tail)
    """

    weight: np.ndarray
    form: np.ndarray
    rho: np.ndarray
    gamma: np.ndarray
    delta: np.ndarray
    theta: np.ndarray
    scale: np.ndarray
    skewness: np.ndarray
    log_tail: np.ndarray
    root: np.ndarray


@dataclass(frozen=True)
class FormMixture:
    """basis, index_basis : columns of f at x and of the selection index at w, both scaled"""

    basis: Basis
    index_basis: Basis
    scaling: DataScale
    points: FormPoints
    info: dict

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p), of any unit or, with w (m, q), of a selected or an unselected one."""
        check_target(target, needs_w=w is None)
        u, points = self.scaling.x(x), self.points
        columns = self.basis.columns(u)[0]
        log_weight = np.log(points.weight)[:, None] + np.zeros(len(u))  # (j, m)
        sign, index = (1.0 if target == "selected" else -1.0), None
        if target != "population":
            index = sign * self._indices(w)
            log_weight = log_weight + log_ndtr(index)
        components = [
            self._component(j, columns, u, None if index is None else index[j], sign * a)
            for j, a in enumerate(np.arctanh(points.rho))
        ]
        return mix_predictives(components, log_weight)

    def _component(self, j, columns, u, index, atanh_rho) -> Predictive:
        points, unit = self.points, self.scaling.y_scale
        shape = points.skewness[j], points.log_tail[j]
        moments = population_moments(*shape)
        f = columns @ points.delta[j] / points.theta[j]
        sigma = np.exp(u @ points.scale[j]) / points.theta[j]
        offset = sigma * moments.mean
        slopes = np.column_stack(
            [
                columns / points.theta[j],
                -(f + offset) / points.theta[j],
                offset[:, None] * u,
                sigma * moments.d_skewness,
                sigma * moments.d_log_tail,
            ]
        )
        epistemic = ((slopes @ points.root[j]) ** 2).sum(axis=1)
        location = self.scaling.y_centre + unit * f
        return predict_shape(
            location, unit**2 * epistemic, unit * sigma, *shape, index=index, atanh_rho=atanh_rho
        )

    def index(self, w) -> np.ndarray:
        """(m,) the probit index of P(s = 1 | w), averaged over points."""
        return averaged_index(self._indices(w), np.log(self.points.weight)[:, None])

    def _indices(self, w) -> np.ndarray:
        """(j, m)"""
        scaled = self.scaling.w(np.asarray(w, dtype=float))
        return self.points.gamma @ self.index_basis.columns(scaled)[0].T


def design_of(data: SelectionData, scaling: DataScale, basis, index_basis, device) -> Design:
    """The standardised columns of `data` on the device, and which coefficients share a ridge."""
    s = data.s

    def tensor(values):
        return torch.as_tensor(np.ascontiguousarray(values), dtype=torch.float64, device=device)

    u, w = scaling.x(data.x[s]), index_basis.columns(scaling.w(data.w))[0]
    residual = np.column_stack([-basis.columns(u)[0], scaling.y(data.y[s])])
    units = Units(
        residual=tensor(residual)[None],
        w=tensor(w[s])[None],
        u=tensor(u)[None],
        weight=tensor(data.weight[s])[None],
        w_unselected=tensor(w[~s])[None],
        weight_unselected=tensor(data.weight[~s])[None],
    )
    inner, outer = index_basis.membership, basis.membership
    q, h = len(inner), len(outer)
    membership = np.zeros((q + h + 1 + u.shape[1] + 2, inner.shape[1] + outer.shape[1]))
    membership[:q, : inner.shape[1]] = inner
    membership[q : q + h, inner.shape[1] :] = outer
    return Design(units, tensor(membership))


def form_points(posterior: Posterior, design: Design) -> FormPoints:
    """The points that matter, with the covariance of what the mean depends on."""
    q, width, r = design.units.sizes
    kept = np.flatnonzero(posterior.weight > SMALLEST_WEIGHT * posterior.weight.max())
    free = design.free(posterior.form[kept])[:, q:].cpu().numpy()
    information = posterior.information[torch.as_tensor(kept, device=design.membership.device)]
    covariance = torch.linalg.inv(information)[:, q:, q:].cpu().numpy()
    covariance = np.where(free[:, :, None] & free[:, None, :], covariance, 0.0)
    size, axes = np.linalg.eigh(covariance)
    v = posterior.v.cpu().numpy()[kept]
    gamma, rest, scale, skewness, log_tail = np.split(v, np.cumsum([q, width, r, 1]), axis=1)
    weight = posterior.weight[kept]
    return FormPoints(
        weight=weight / weight.sum(),
        form=posterior.form[kept],
        rho=posterior.rho[kept],
        gamma=gamma,
        delta=rest[:, :-1],
        theta=rest[:, -1],
        scale=scale,
        skewness=skewness[:, 0],
        log_tail=log_tail[:, 0],
        root=axes * np.sqrt(size.clip(min=0) * posterior.factor[kept][:, None])[:, None, :],
    )


def form_weights(points: FormPoints) -> dict[str, float]:
    """The posterior share of each form."""
    return {
        name: float(points.weight[points.form == place].sum()) for place, name in enumerate(FORMS)
    }
