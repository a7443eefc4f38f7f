r"""Maximum likelihood of a probit with sample selection.

At fixed a = atanh rho the log-likelihood is concave in v = (gamma, beta), as that of the linear
model is in Olsen's coordinates, so the scan of `profile` shows every mode here too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import numpy as np
from scipy.linalg import block_diag

from heckesel.classical.checks import Overlap, fit_separated
from heckesel.classical.covariance import covariance_of_rows, inverse
from heckesel.classical.likelihood import binary_units, unselected_units
from heckesel.classical.ml import Point
from heckesel.classical.probit import fit_probit, penalised, probit_terms
from heckesel.classical.rows import SCAN_SEED, Sample, SampleScale, column_scale, weighted_sums
from heckesel.data import SelectionData

# A unit costs a quadrature, tens of times the price of one in the linear model: longer
# tables are scanned on this many rows, and every mode is polished on all of them.
SCAN_ROWS = 5000


@dataclass(frozen=True)
class BinarySample(Sample):
    """Rows of a binary outcome; `residuals` are x (n1, p).

    sign : (n1,) +1 where y = 1 and -1 where 0; ridge : on beta, where the outcome is separated
    """

    sign: np.ndarray = field(default_factory=lambda: np.empty(0))
    ridge: float = 0.0

    def take(self, selected, unselected) -> Self:
        return replace(super().take(selected, unselected), sign=self.sign[selected])

    def evaluate(self, point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Log-likelihood, score and Hessian in (gamma, beta, a), summed over row blocks."""
        value, score, hessian = self.sum(partial(_block_terms, point=point))
        return penalised((float(value), score, hessian), point, self.ridge, slice(self.q, -1))

    def at_zero(self) -> np.ndarray:
        """The conditional optimum at rho = 0: two probits."""
        w = np.concatenate([self.w_selected, self.w_unselected])
        gamma = fit_probit(w, np.arange(len(w)) < len(self.w_selected), self.weight).gamma
        outcome = fit_separated if self.ridge else fit_probit
        beta = outcome(self.residuals, self.sign > 0, self.weight_selected).gamma
        return np.concatenate([gamma, beta])

    def part(self) -> Sample:
        """All rows while they are few, else a fixed-seed subsample of SCAN_ROWS."""
        return self if self.n <= SCAN_ROWS else self.subsample(SCAN_ROWS, SCAN_SEED)


def _block_terms(block: BinarySample, *, point) -> tuple:
    q, size = block.q, len(point)
    value, score, hessian = 0.0, np.zeros(size), np.zeros((size, size))
    if len(block.w_selected):
        w, x = block.w_selected, block.residuals
        units = binary_units(w @ point[:q], x @ point[q:-1], point[-1], block.sign)
        value, score, hessian = weighted_sums(units, (w, x), block.weight_selected)
    if len(block.w_unselected):
        parts = probit_terms(block.w_unselected, block.weight_unselected, point[:q], -1.0)
        value, score[:q] = value + parts[0], score[:q] + parts[1]
        hessian[:q, :q] += parts[2]
    return value, score, hessian


def binary_sample(data: SelectionData, *, ridge: float = 0.0) -> tuple[BinarySample, SampleScale]:
    """x standardised over the selected, w over all; data.y is 0 or 1 where observed."""
    s, weight = data.s, data.weight
    scalings = SampleScale(column_scale(data.w), column_scale(data.x[s]), 0.0, 1.0)
    w = scalings.w.apply(data.w)
    sign = np.where(data.y[s] == 1.0, 1.0, -1.0)
    x = scalings.x.apply(data.x[s])
    rows = w[s], x, weight[s], w[~s], weight[~s]
    return BinarySample(*rows, sign=sign, ridge=ridge), scalings


def binary_covariance(
    data: SelectionData, point: Point, sample: BinarySample, scalings, kind: str, **options
) -> np.ndarray:
    """Covariance of (beta, gamma, atanh rho); all NaN unless the mode converged.

    options : `weight_kind`, and `clusters` in the order of `data`
    """
    if point.status != "converged":
        return np.full_like(point.hessian, np.nan)
    if options["clusters"] is not None:
        options["clusters"] = options["clusters"][np.argsort(~data.s, kind="stable")]
    scores = partial(binary_scores, point=np.append(point.v, point.a))
    hessian = _in_order(point.hessian, sample)
    return _in_user_units(covariance_of_rows(kind, hessian, sample, scores, **options), scalings)


def covariance_given_rho(point: Point, sample: BinarySample, scalings: SampleScale) -> np.ndarray:
    """Covariance of (beta, gamma, atanh rho) as if rho were known, which it is at the boundary."""
    covariance = np.zeros_like(point.hessian)
    covariance[:-1, :-1] = inverse(-_in_order(point.hessian, sample)[:-1, :-1])
    return _in_user_units(covariance, scalings)


def _in_user_units(covariance, scalings: SampleScale) -> np.ndarray:
    back = block_diag(scalings.x.back, scalings.w.back, 1.0)
    return back @ covariance @ back.T


def separated_covariance(
    data: SelectionData, params, overlap: Overlap, kind: str, *, weight_kind: str, clusters=None
) -> np.ndarray:
    """Covariance of (beta, gamma, atanh rho) where columns separate part of the observed classes.

    A separated row contributes the probability of its selection, log Phi(w'gamma), as an unselected
    row with the columns -w does. NaN for coefficients that the overlap does not determine, and for
    all if there is no interior optimum.

    params : in the same order
    """
    p, q = data.x.shape[1], data.w.shape[1]
    sample, scalings = _overlap_sample(data, overlap)
    f = data.x[data.s][overlap.rows] @ params[:p]
    x = data.x[data.s][overlap.rows][:, overlap.columns]
    beta = np.linalg.solve(scalings.x.back, np.linalg.lstsq(x, f)[0])
    gamma = np.linalg.solve(scalings.w.back, params[p : p + q])
    point = np.concatenate([gamma, beta, params[-1:]])
    hessian = _in_order(sample.evaluate(point)[2], sample)
    if clusters is not None:
        inside = clusters[data.s]
        others = clusters[~data.s], inside[~overlap.rows]
        clusters = np.concatenate([inside[overlap.rows], *others])
    options = {"weight_kind": weight_kind, "clusters": clusters}
    scores = partial(binary_scores, point=point)
    small = covariance_of_rows(kind, hessian, sample, scores, **options)
    places = np.concatenate([overlap.columns, np.arange(p, p + q + 1)])
    covariance = np.full((p + q + 1,) * 2, np.nan)
    covariance[np.ix_(places, places)] = _in_user_units(small, scalings)
    unknown = np.flatnonzero(~overlap.determined)
    covariance[unknown] = covariance[:, unknown] = np.nan
    return covariance


def _overlap_sample(data: SelectionData, overlap: Overlap) -> tuple[BinarySample, SampleScale]:
    s, rows = data.s, overlap.rows
    x = data.x[s][rows][:, overlap.columns]
    scalings = SampleScale(column_scale(data.w), column_scale(x), 0.0, 1.0)
    w, weight = scalings.w.apply(data.w), data.weight
    sign = np.where(data.y[s][rows] == 1.0, 1.0, -1.0)
    others = np.concatenate([w[~s], -w[s][~rows]])
    mass = np.concatenate([weight[~s], weight[s][~rows]])
    x = scalings.x.apply(x)
    inside = w[s][rows], x, weight[s][rows]
    return BinarySample(*inside, others, mass, sign=sign), scalings


def binary_scores(sample: BinarySample, *, point: np.ndarray) -> np.ndarray:
    """(n, p + q + 1) score of each unit in (beta, gamma, a), selected units first, standardised,
    not weighted; point : (gamma, beta, a)"""
    x, w, q = sample.residuals, sample.w_selected, sample.q
    p, n1 = x.shape[1], len(x)
    units = binary_units(w @ point[:q], x @ point[q:-1], point[-1], sample.sign)
    d_index, d_f, d_a = units.gradient
    scores = np.zeros((sample.n, p + q + 1))
    scores[:n1] = np.column_stack([x * d_f[:, None], w * d_index[:, None], d_a])
    slope = unselected_units(sample.w_unselected @ point[:q])[1]
    scores[n1:, p:-1] = sample.w_unselected * slope[:, None]
    return scores


def _in_order(hessian, sample: BinarySample) -> np.ndarray:
    """From (gamma, beta, a) to (beta, gamma, a)."""
    p, q = sample.residuals.shape[1], sample.q
    order = [*range(q, q + p), *range(q), p + q]
    return hessian[np.ix_(order, order)]
