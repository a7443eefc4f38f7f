"""From curves over rho to one `Predictive`: a mixture over rho and over models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from scipy.special import log_ndtr

from heckesel.networks.member_graphs import scaled
from heckesel.networks.rho.linear_joint import Bases, bases_of, conditional_optima
from heckesel.networks.rho.rho_curve import Curve, curve_summary, rho_curves
from heckesel.networks.rho.rho_held_out import HeldOut, without_own_fold
from heckesel.networks.rho.rho_prior import RhoPrior
from heckesel.networks.training.batches import Rows
from heckesel.networks.training.scaling import Scaling
from heckesel.numerics.normal import averaged_index
from heckesel.predictive.distribution import Predictive, check_target
from heckesel.predictive.mixture import mixed_given_selection, mixed_normal

# Columns of all cells whose curves are computed side by side.
COLUMN_BYTES = {"cpu": 32 * 2**20, "gpu": 2**30}
# Share of the posterior below which a rho is left out of predictions, and of which a k-th below
# which one of its k models is.
NEGLIGIBLE = 1e-3
# Ridge updates on the way from the units a model was judged without to all units.
UPDATES = 3


class Basis(Protocol):
    """k column sets: (k, m, h) at x (m, p) in a network's units.

    membership : (h, ridges) one where a column carries that ridge, else zero
    """

    def columns(self, x: np.ndarray) -> np.ndarray: ...
    def graph(self, graph, x: str) -> str: ...
    @property
    def membership(self) -> np.ndarray: ...


@dataclass(frozen=True)
class Parts:
    """j pairs of a model and a rho, in standardised units.

    model : (j,) which column set; weight, rho, theta : (j,); delta : (j, h); gamma : (j, q)
    spread : (j, h + 1, h + 1) with spread spread' the covariance of (delta, theta)
    """

    model: np.ndarray
    weight: np.ndarray
    rho: np.ndarray
    gamma: np.ndarray
    delta: np.ndarray
    theta: np.ndarray
    spread: np.ndarray


def average_over_rho(
    cells: Sequence[Rows],
    totals: Sequence[float],
    scalings: Sequence[Scaling],
    bases: Sequence[Basis],
    prior: RhoPrior,
    device: torch.device,
    folds: int | None = None,
) -> list[RhoMixture]:
    """One mixture for each cell; all cells have column sets of one width and the same ridges. As
    many cells side by side as memory is kind to.

    totals : units that the weights of a cell, which add up to one, count. folds : there is a column
    set for each fold of `cells`, found without it and judged there; None judges by all rows.
    """
    columns = [basis.columns(cell.x[:, :-1]) for basis, cell in zip(bases, cells, strict=True)]
    limit = COLUMN_BYTES["cpu" if device.type == "cpu" else "gpu"]
    at_once = max(1, limit // max(each.nbytes for each in columns))
    curves: list[Curve] = []
    parts: list[Parts] = []
    for first in range(0, len(cells), at_once):
        chunk = range(first, min(first + at_once, len(cells)))
        models = [replace(cells[c], x=one) for c in chunk for one in columns[c]]
        counts = [totals[c] for c in chunk for _ in columns[c]]
        found, part = _curves_and_parts(
            models, counts, len(columns[first]), bases[first].membership, prior, device, folds
        )
        curves, parts = curves + found, parts + part
    return [
        RhoMixture(basis, scaling, part, curve, curve_summary(curve, scaling.y_scale))
        for basis, scaling, part, curve in zip(bases, scalings, parts, curves, strict=True)
    ]


def _curves_and_parts(models, counts, per_cell, membership, prior, device, folds):
    everything = bases_of(models, counts, membership, device)
    if folds is None:
        curves = rho_curves(everything, per_cell, prior)
        return curves, parts_of(everything, curves)
    kept, held = without_own_fold(models, folds)
    judge = HeldOut(bases_of(held, counts, membership, device))
    curves = rho_curves(bases_of(kept, counts, membership, device), per_cell, prior, judge)
    return curves, parts_of(everything, curves, updates=UPDATES)


def held_out_evidence(
    cells: Sequence[Rows],
    totals: Sequence[float],
    fits: Sequence[RhoMixture],
    device: torch.device,
    folds: int,
) -> np.ndarray:
    """(cells,) log-likelihood of the units left out, fold by fold of `cells`, for fits of one
    column set that were judged by all rows: at their best rho, coefficients found without the
    fold."""
    at = [int(np.argmax(fit.curve.log_evidence)) for fit in fits]
    columns = [fit.basis.columns(cell.x[:, :-1])[0] for fit, cell in zip(fits, cells, strict=True)]
    models = [
        replace(cell, x=one) for cell, one in zip(cells, columns, strict=True) for _ in range(folds)
    ]
    counts = np.repeat(totals, folds).tolist()
    kept, held = (
        bases_of(part, counts, fits[0].basis.membership, device)
        for part in without_own_fold(models, folds)
    )
    a, v, ridge = (
        np.repeat([values[place] for values, place in zip(found, at, strict=True)], folds, axis=0)
        for found in (
            [fit.curve.a for fit in fits],
            [fit.curve.v[:, 0] for fit in fits],
            [fit.curve.ridge[:, 0] for fit in fits],
        )
    )
    start = (torch.as_tensor(each, device=device) for each in (a, v, ridge))
    judge = HeldOut(held)
    readings = judge.readings(conditional_optima(kept, *start, updates=UPDATES))
    return judge.evidence(readings.reshape(len(fits), folds, -1)).log_evidence


def parts_of(bases: Bases, curves: Sequence[Curve], *, updates: int = 0) -> list[Parts]:
    """The pairs of each cell that carry weight, fitted to all rows.

    The covariance is that of the whole fit: what is not known about gamma, the first stage, is
    in it, because gamma was free while delta and theta were judged.
    """
    models = curves[0].weight.shape[1]
    carries = [
        curve.weight > min(NEGLIGIBLE / models, 0.5 * curve.weight.max()) for curve in curves
    ]
    carrying = [np.flatnonzero(own.any(axis=1)) for own in carries]
    found: list[list] = [[] for _ in curves]
    for rank in range(max(map(len, carrying))):
        positions = [own[min(rank, len(own) - 1)] for own in carrying]
        v, spread = _solved(bases, curves, positions, updates)
        for cell, (curve, position) in enumerate(zip(curves, positions, strict=True)):
            if rank >= len(carrying[cell]):
                continue
            for model in np.flatnonzero(carries[cell][position]):
                row = cell * models + model
                weight, doubt = curve.weight[position, model], np.sqrt(curve.doubt[position])
                found[cell].append(
                    (model, weight, curve.rho[position], v[row], doubt * spread[row])
                )
    return [_parts(each, bases.q) for each in found]


def _solved(bases, curves, positions, updates):
    """v and the spread of (delta, theta) for all models, each cell at its own grid position."""
    pairs = list(zip(curves, positions, strict=True))
    a = np.repeat([curve.a[at] for curve, at in pairs], curves[0].weight.shape[1])
    v, ridge = (
        np.concatenate([getattr(curve, name)[at] for curve, at in pairs]) for name in ("v", "ridge")
    )
    device = bases.w.device
    start = (torch.as_tensor(x, device=device) for x in (a, v, ridge))
    optima = conditional_optima(bases, *start, updates=updates)
    covariance = torch.cholesky_inverse(torch.linalg.cholesky(optima.information))
    spread = torch.linalg.cholesky(covariance[:, bases.q :, bases.q :])
    return optima.v.cpu().numpy(), spread.cpu().numpy()


def _parts(found, q) -> Parts:
    model, weight, rho, v, spread = (np.array(column) for column in zip(*found, strict=True))
    return Parts(
        model=model,
        weight=weight / weight.sum(),
        rho=rho,
        gamma=v[:, :q],
        delta=v[:, q:-1],
        theta=v[:, -1],
        spread=spread,
    )


@dataclass(frozen=True)
class RhoMixture:
    """A fitted model that does not commit to one rho. `curve` is the evidence it weighed."""

    basis: Basis
    scaling: Scaling
    parts: Parts
    curve: Curve
    info: dict

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p), of any unit or, with w (m, q), of a selected or an unselected one."""
        check_target(target, needs_w=w is None)
        parts, unit = self.parts, self.scaling.y_scale
        mean, epistemic = self._moments(self.basis.columns(self.scaling.x(x)))
        mean, epistemic = self.scaling.y_centre + unit * mean, unit**2 * epistemic
        sigma = unit / parts.theta[:, None]
        if target == "population":
            return mixed_normal(parts.weight, mean, epistemic, sigma)
        sign, index = (1.0 if target == "selected" else -1.0), self._indices(w)
        return mixed_given_selection(
            np.log(parts.weight)[:, None] + log_ndtr(sign * index),
            mean,
            epistemic,
            sigma,
            sign * parts.rho[:, None] * sigma,
            sign * index,
        )

    def graph(self, graph, x: str):
        r"""The population prediction at x (m, p) in an ONNX graph: part j has
        :math:`f_j = b'\delta_j/\theta_j` with the variance
        :math:`|(b, -f_j) S_j|^2/\theta_j^2` and the noise :math:`1/\theta_j^2`, b its columns."""
        parts, unit = self.parts, self.scaling.y_scale
        theta = parts.theta[:, None, None]
        columns = self.basis.graph(graph, scaled(graph, self.scaling, x))
        columns = graph.call("Gather", columns, parts.model, axis=0)  # (j, m, h)
        spread = parts.spread / theta
        f = graph.call("MatMul", columns, parts.delta[:, :, None] / theta)
        slopes = graph.call(
            "Sub",
            graph.call("MatMul", columns, spread[:, :-1]),
            graph.call("Mul", f, spread[:, -1:]),
        )
        doubt = graph.call("ReduceSum", graph.square(slopes), np.array([2]), keepdims=0)  # (j, m)
        flat = graph.call("Squeeze", f, np.array([2]))
        mean = graph.call("Add", graph.call("Mul", flat, np.float64(unit)), self.scaling.y_centre)
        variance = graph.call(
            "Mul", graph.call("Add", doubt, theta[:, 0] ** -2), np.float64(unit**2)
        )
        return graph.part(mean, variance, "mixture of normals", weight=parts.weight)

    def index(self, w) -> np.ndarray:
        """(m,) the probit index of P(s = 1 | w), averaged over parts."""
        return averaged_index(self._indices(w), np.log(self.parts.weight)[:, None])

    def _indices(self, w) -> np.ndarray:
        """(j, m)"""
        scaled = self.scaling.w(np.asarray(w, dtype=float))
        return self.parts.gamma[:, :-1] @ scaled.T + self.parts.gamma[:, -1:]

    def _moments(self, columns):
        r"""f = b'delta/theta and its variance by the delta method, slopes (b, -f)/theta: (j, m)."""
        mean, epistemic = [], []
        for model, delta, theta, spread in zip(
            self.parts.model, self.parts.delta, self.parts.theta, self.parts.spread, strict=True
        ):
            f = columns[model] @ delta / theta
            slopes = np.column_stack([columns[model], -f]) / theta
            mean.append(f)
            epistemic.append(((slopes @ spread) ** 2).sum(axis=1))
        return np.stack(mean), np.stack(epistemic)
