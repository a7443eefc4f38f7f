"""Predictions averaged over rho and over models, with the evidence as weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import torch
from scipy.special import log_ndtr

from heckesel.fit_info import RhoInfo
from heckesel.margins import ComponentMean
from heckesel.math.special import averaged_index, inverse_mills
from heckesel.networks.member_graphs import scaled
from heckesel.networks.rho.linear_joint import Bases, bases_of, conditional_optima
from heckesel.networks.rho.rho_curve import Curve, Models, curve_summary, rho_curves
from heckesel.networks.rho.rho_held_out import HeldOut, split_held_out
from heckesel.networks.rho.rho_prior import RhoPrior
from heckesel.networks.training.batches import Batch, DataScale
from heckesel.on_disk import on_disk
from heckesel.predictive import (
    Predictive,
    check_target,
    mean_and_slopes,
    mixed_given_selection,
    mixed_normal,
)
from heckesel.scales import TargetTransform

# Size of the columns of all datasets whose curves are computed at the same time.
COLUMN_BYTES = {"cpu": 32 * 2**20, "gpu": 2**30}
# Predictions ignore a rho with less than this share of the posterior, and one of its k models with
# less than a k-th of it.
NEGLIGIBLE = 1e-3
# Ridge updates when coefficients that were fitted without a fold are refitted to all units.
UPDATES = 3


class Basis(Protocol):
    """k column sets: (k, m, h) at x (m, p) in a network's units.

    membership : (h, ridges) one where a column has that ridge, else zero
    """

    def columns(self, x: np.ndarray) -> np.ndarray: ...
    def graph(self, graph, x: str) -> str: ...
    @property
    def membership(self) -> np.ndarray: ...


@dataclass(frozen=True)
class MixturePoints:
    """j pairs of a model and a rho, in standardised units.

    model : (j,) which column set; weight, rho, theta : (j,); delta : (j, h); gamma : (j, q)
    cholesky_factor : (j, h + 1, h + 1) of the covariance of (delta, theta)
    """

    model: np.ndarray = field(metadata=on_disk("j", dtype="int64"))
    weight: np.ndarray = field(metadata=on_disk("j", positive=True))
    rho: np.ndarray = field(metadata=on_disk("j"))
    gamma: np.ndarray = field(metadata=on_disk("j", "q+1"))
    delta: np.ndarray = field(metadata=on_disk("j", "h"))
    theta: np.ndarray = field(metadata=on_disk("j", positive=True))
    cholesky_factor: np.ndarray = field(metadata=on_disk("j", "h+1", "h+1"))


def average_over_rho(
    datasets: Sequence[Batch],
    totals: Sequence[float],
    scalings: Sequence[DataScale],
    bases: Sequence[Basis],
    prior: RhoPrior,
    device: torch.device,
    folds: int | None = None,
) -> list[RhoMixture]:
    """One mixture per dataset; all datasets have column sets of one width and the same ridges.

    totals : the number of units in each dataset, whose weights add up to one. folds : there is one
    column set per fold, fitted without that fold, and the evidence is its held-out likelihood; with
    None the evidence is the Laplace approximation on all rows.
    """
    columns = [basis.columns(rows.x[:, :-1]) for basis, rows in zip(bases, datasets, strict=True)]
    limit = COLUMN_BYTES["cpu" if device.type == "cpu" else "gpu"]
    at_once = max(1, limit // max(each.nbytes for each in columns))
    mixed: list[tuple[Curve, MixturePoints]] = []
    for first in range(0, len(datasets), at_once):
        chunk = range(first, min(first + at_once, len(datasets)))
        models = [replace(datasets[c], x=one) for c in chunk for one in columns[c]]
        counts = [totals[c] for c in chunk for _ in columns[c]]
        mixed += _curves_and_points(
            models, counts, len(columns[first]), bases[first].membership, prior, device, folds
        )
    return [
        RhoMixture(basis, scaling, points, curve, curve_summary(curve, scaling.y_scale))
        for basis, scaling, (curve, points) in zip(bases, scalings, mixed, strict=True)
    ]


def _curves_and_points(models, counts, per_dataset, membership, prior, device, folds):
    everything = bases_of(models, counts, membership, device)
    if folds is None:
        curves = rho_curves(everything, per_dataset, prior)
        return zip(curves, mixture_points(everything, curves), strict=True)
    kept, held = (
        bases_of(rows, counts, membership, device) for rows in split_held_out(models, folds)
    )
    curves = rho_curves(kept, per_dataset, prior, HeldOut(held))
    return zip(curves, mixture_points(everything, curves, updates=UPDATES), strict=True)


def held_out_evidence(
    datasets: Sequence[Batch],
    totals: Sequence[float],
    fits: Sequence[RhoMixture],
    device: torch.device,
    folds: int,
) -> np.ndarray:
    """(datasets,) log-likelihood of held-out units, added up over the folds of `datasets`.

    Each fit has one column set and was fitted to all rows. Its best rho is kept; coefficients are
    refitted without each fold.
    """
    at = [int(np.argmax(fit.curve.log_evidence)) for fit in fits]
    models = [
        replace(rows, x=fit.basis.columns(rows.x[:, :-1])[0])
        for fit, rows in zip(fits, datasets, strict=True)
        for _ in range(folds)
    ]
    counts = np.repeat(totals, folds).tolist()
    kept, held = (
        bases_of(part, counts, fits[0].basis.membership, device)
        for part in split_held_out(models, folds)
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
    criterion = HeldOut(held)
    readings = criterion.readings(conditional_optima(kept, *start, updates=UPDATES))
    return criterion.evidence(readings.reshape(len(fits), folds, -1)).log_evidence


def mixture_points(
    bases: Bases, curves: Sequence[Curve], *, updates: int = 0
) -> list[MixturePoints]:
    """The pairs (model, rho) of each dataset whose weight is not negligible, fitted to all rows.

    The covariance comes from the information of all coefficients, so it includes the uncertainty
    of gamma, the first stage.
    """
    return [_points(each, bases.q) for each in pairs_that_matter(bases, curves, updates)]


def pairs_that_matter(bases: Models, curves: Sequence[Curve], updates: int) -> list[list[tuple]]:
    """The same as tuples: model, weight, rho, v and the root of the covariance."""
    models = curves[0].weight.shape[1]
    matters = [
        curve.weight > min(NEGLIGIBLE / models, 0.5 * curve.weight.max()) for curve in curves
    ]
    kept = [np.flatnonzero(own.any(axis=1)) for own in matters]  # positions on each grid
    found: list[list] = [[] for _ in curves]
    for rank in range(max(map(len, kept))):
        positions = [own[min(rank, len(own) - 1)] for own in kept]
        v, factor = _solved(bases, curves, positions, updates)
        for dataset, (curve, at) in enumerate(zip(curves, positions, strict=True)):
            if rank >= len(kept[dataset]):
                continue
            scale = np.sqrt(curve.variance_factor[at])
            for model in np.flatnonzero(matters[dataset][at]):
                row = dataset * models + model
                point = (model, curve.weight[at, model], curve.rho[at], v[row], scale * factor[row])
                found[dataset].append(point)
    return found


def _solved(bases: Models, curves, positions, updates):
    """v and the factor of the covariance of what predictions depend on, for all models, each
    dataset at its position on the grid."""
    pairs = list(zip(curves, positions, strict=True))
    a = np.repeat([curve.a[at] for curve, at in pairs], curves[0].weight.shape[1])
    v, ridge = (
        np.concatenate([getattr(curve, name)[at] for curve, at in pairs]) for name in ("v", "ridge")
    )
    start = (torch.as_tensor(x, device=bases.device) for x in (a, v, ridge))
    optima = bases.optima(*start, updates=updates)
    factor = bases.covariance_factor(optima.information)
    return optima.v.cpu().numpy(), factor.cpu().numpy()


def _points(found, q) -> MixturePoints:
    model, weight, rho, v, factor = (np.array(column) for column in zip(*found, strict=True))
    return MixturePoints(
        model=model,
        weight=weight / weight.sum(),
        rho=rho,
        gamma=v[:, :q],
        delta=v[:, q:-1],
        theta=v[:, -1],
        cholesky_factor=factor,
    )


@dataclass(frozen=True)
class RhoMixture:
    """A fitted model that averages over rho; `curve` is the evidence for each rho."""

    basis: Basis
    scaling: DataScale
    points: MixturePoints
    curve: Curve
    info: RhoInfo

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """y at x (m, p) of any unit or, with w (m, q), of a selected or an unselected one."""
        check_target(target, needs_w=w is None)
        points, unit = self.points, self.scaling.y_scale
        mean, epistemic = self._moments(self.basis.columns(self.scaling.x(x)))
        mean, epistemic = self.scaling.y_centre + unit * mean, unit**2 * epistemic
        sigma = unit / points.theta[:, None]
        if target == "population":
            return mixed_normal(points.weight, mean, epistemic, sigma)
        sign, index = (1.0 if target == "selected" else -1.0), self._indices(w)
        return mixed_given_selection(
            np.log(points.weight)[:, None] + log_ndtr(sign * index),
            mean,
            epistemic,
            sigma,
            sign * points.rho[:, None] * sigma,
            sign * index,
        )

    def component_means(
        self, x, w, target: str, *, folds: int | None, transform: TargetTransform | None
    ) -> Iterator[ComponentMean]:
        r"""The mean at x and w under each point, given selection :math:`f + \rho\sigma\lambda`, and
        its gradient in (delta, theta)."""
        columns = self.basis.columns(self.scaling.x(x))
        points, unit = self.points, self.scaling.y_scale
        sign = -1.0 if target == "unselected" else 1.0
        indices = None if target == "population" else sign * self._indices(w)
        for j, weight in enumerate(points.weight):
            own, theta, rho = columns[points.model[j]], points.theta[j], points.rho[j]
            f = own @ points.delta[j] / theta
            index = None if indices is None else indices[j]
            if transform is None:
                shift = 0.0 if index is None else sign * rho / theta * inverse_mills(index)
                mean = self.scaling.y_centre + unit * (f + shift)
                gradient = unit * np.column_stack([own, -(f + shift)]) / theta
            else:
                location, log_sigma = self.scaling.y_centre + unit * f, np.log(unit / theta)
                mean, slopes = mean_and_slopes(
                    transform, location, log_sigma, np.arctanh(rho), index, sign
                )
                by_theta = -(slopes[0] * unit * f + slopes[1])
                by_delta = slopes[0][:, None] * unit * own
                gradient = np.column_stack([by_delta, by_theta]) / theta
            log_weight = np.log(weight) + (np.zeros(len(f)) if index is None else log_ndtr(index))
            root = points.cholesky_factor[j]
            yield ComponentMean(float(weight), mean, gradient, root, log_weight=log_weight)

    def draw(self, rng) -> RhoMixture:
        """One of the points, with coefficients drawn from their covariance."""
        points = self.points
        j = rng.choice(len(points.weight), p=points.weight / points.weight.sum())
        factor = points.cholesky_factor[j]
        moved = factor @ rng.standard_normal(factor.shape[1])
        drawn = MixturePoints(
            model=points.model[[j]],
            weight=np.ones(1),
            rho=points.rho[[j]],
            gamma=points.gamma[[j]],
            delta=points.delta[[j]] + moved[:-1],
            theta=points.theta[[j]] + moved[-1],
            cholesky_factor=np.zeros_like(points.cholesky_factor[[j]]),
        )
        return replace(self, points=drawn)

    def graph(self, graph, x: str):
        r"""The population prediction at x (m, p) in an ONNX graph: part j has
        :math:`f_j = b'\delta_j/\theta_j` with the variance
        :math:`|(b, -f_j) S_j|^2/\theta_j^2` and the noise :math:`1/\theta_j^2`, b its columns."""
        points, unit = self.points, self.scaling.y_scale
        theta = points.theta[:, None, None]
        columns = self.basis.graph(graph, scaled(graph, self.scaling, x))
        columns = graph.call("Gather", columns, points.model, axis=0)  # (j, m, h)
        factor = points.cholesky_factor / theta
        f = graph.call("MatMul", columns, points.delta[:, :, None] / theta)
        slopes = graph.call(
            "Sub",
            graph.call("MatMul", columns, factor[:, :-1]),
            graph.call("Mul", f, factor[:, -1:]),
        )
        doubt = graph.call("ReduceSum", graph.square(slopes), np.array([2]), keepdims=0)  # (j, m)
        flat = graph.call("Squeeze", f, np.array([2]))
        mean = graph.call("Add", graph.call("Mul", flat, np.float64(unit)), self.scaling.y_centre)
        variance = graph.call(
            "Mul", graph.call("Add", doubt, theta[:, 0] ** -2), np.float64(unit**2)
        )
        return graph.part(mean, variance, "mixture of normals", weight=points.weight)

    def index(self, w) -> np.ndarray:
        """(m,) the probit index of P(s = 1 | w), averaged over the points."""
        return averaged_index(self._indices(w), np.log(self.points.weight)[:, None])

    def _indices(self, w) -> np.ndarray:
        """(j, m)"""
        scaled = self.scaling.w(np.asarray(w, dtype=float))
        return self.points.gamma[:, :-1] @ scaled.T + self.points.gamma[:, -1:]

    def _moments(self, columns):
        r"""f = b'delta/theta and its variance by the delta method, slopes (b, -f)/theta: (j, m)."""
        at, mean, epistemic = self.points, [], []
        for model, delta, theta, factor in zip(
            at.model, at.delta, at.theta, at.cholesky_factor, strict=True
        ):
            f = columns[model] @ delta / theta
            slopes = np.column_stack([columns[model], -f]) / theta
            mean.append(f)
            epistemic.append(((slopes @ factor) ** 2).sum(axis=1))
        return np.stack(mean), np.stack(epistemic)
