r"""Maximum likelihood of a probit with sample selection.

At fixed a = atanh rho the log-likelihood is concave in v = (gamma, beta), as that of the linear
model is in Olsen's coordinates, so the scan of `profile` shows every mode here too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from heckesel.classical.checks import Overlap, fit_separated
from heckesel.classical.covariance import covariance_of, inverse
from heckesel.classical.likelihood import binary_units, unselected_units
from heckesel.classical.ml import Point
from heckesel.classical.probit import fit_probit, penalised, probit_terms
from heckesel.classical.rows import (
    SCAN_SEED,
    SampleScale,
    column_scale,
    draw_rows,
    slices,
    sum_over,
    weighted_sums,
)
from heckesel.data import SelectionData

# A unit costs a quadrature, tens of times the price of one in the linear model: longer
# tables are scanned on this many rows, and every mode is polished on all of them.
SCAN_ROWS = 5000


@dataclass(frozen=True)
class BinarySample:
    """Standardised rows, selected apart from unselected.

    w_selected : (n1, q), x : (n1, p), sign : (n1,) +1 where y = 1 and -1 where 0,
    w_unselected : (n0, q); ridge : on beta, where the outcome is separated
    """

    w_selected: np.ndarray
    x: np.ndarray
    sign: np.ndarray
    weight_selected: np.ndarray
    w_unselected: np.ndarray
    weight_unselected: np.ndarray
    ridge: float = 0.0

    @property
    def q(self) -> int:
        return self.w_selected.shape[1]

    @property
    def n(self) -> int:
        return len(self.w_selected) + len(self.w_unselected)

    @property
    def mass(self) -> float:
        return float(self.weight_selected.sum()) + float(self.weight_unselected.sum())

    def evaluate(self, point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Log-likelihood, score and Hessian in (gamma, beta, a), summed over row blocks."""
        q = self.q
        gamma, beta, a = point[:q], point[q:-1], point[-1]

        def selected(block):
            w, x = self.w_selected[block], self.x[block]
            units = binary_units(w @ gamma, x @ beta, a, self.sign[block])
            return weighted_sums(units, (w, x), self.weight_selected[block])

        def unselected(block):
            w, mass = self.w_unselected[block], self.weight_unselected[block]
            return probit_terms(w, mass, gamma, -1.0)

        rows = len(self.w_selected)
        value, score, hessian = sum_over(selected, slices(rows), rows)
        rows = len(self.w_unselected)
        parts = sum_over(unselected, slices(rows), rows)
        score[:q] += parts[1]
        hessian[:q, :q] += parts[2]
        total = float(value + parts[0]), score, hessian
        return penalised(total, point, self.ridge, slice(q, len(point) - 1))

    def at_zero(self) -> np.ndarray:
        """The conditional optimum at rho = 0: two probits."""
        w = np.concatenate([self.w_selected, self.w_unselected])
        mass = np.concatenate([self.weight_selected, self.weight_unselected])
        gamma = fit_probit(w, np.arange(len(w)) < len(self.w_selected), mass).gamma
        outcome = fit_separated if self.ridge else fit_probit
        beta = outcome(self.x, self.sign > 0, self.weight_selected).gamma
        return np.concatenate([gamma, beta])

    def part(self) -> BinarySample:
        """All rows while they are few, else a fixed-seed subsample of SCAN_ROWS."""
        if self.n <= SCAN_ROWS:
            return self
        drawn = draw_rows(len(self.w_selected), len(self.w_unselected), SCAN_ROWS, SCAN_SEED)
        some, others = drawn.selected, drawn.unselected
        return BinarySample(
            self.w_selected[some],
            self.x[some],
            self.sign[some],
            self.weight_selected[some] * drawn.factors[0],
            self.w_unselected[others],
            self.weight_unselected[others] * drawn.factors[1],
            self.ridge,
        )


def binary_sample(data: SelectionData, *, ridge: float = 0.0) -> tuple[BinarySample, SampleScale]:
    """x standardised over the selected, w over all; data.y is 0 or 1 where observed."""
    s, weight = data.s, data.weight
    scalings = SampleScale(column_scale(data.w), column_scale(data.x[s]), 0.0, 1.0)
    w = scalings.w.apply(data.w)
    sign = np.where(data.y[s] == 1.0, 1.0, -1.0)
    x = scalings.x.apply(data.x[s])
    return BinarySample(w[s], x, sign, weight[s], w[~s], weight[~s], ridge), scalings


def binary_covariance(
    data: SelectionData, point: Point, sample: BinarySample, scalings, kind: str, **options
) -> np.ndarray:
    """Covariance of (beta, gamma, atanh rho); all NaN unless the mode converged.

    options : `weight_kind`, and `clusters` in the order of `data`
    """
    if point.status != "converged":
        return np.full_like(point.hessian, np.nan)
    scores = None if kind == "information" else binary_scores(data, point, sample)
    hessian = _in_order(point.hessian, sample)
    covariance = covariance_of(kind, hessian, scores, data.weight, **options)
    return _in_user_units(covariance, scalings)


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
    scores = None if kind == "information" else np.concatenate(_scores(point, sample))
    weight = np.concatenate([sample.weight_selected, sample.weight_unselected])
    if clusters is not None:
        clusters = _overlap_order(data, overlap, clusters)
    options = {"weight_kind": weight_kind, "clusters": clusters}
    small = covariance_of(kind, hessian, scores, weight, **options)
    places = np.concatenate([overlap.columns, np.arange(p, p + q + 1)])
    covariance = np.full((p + q + 1,) * 2, np.nan)
    covariance[np.ix_(places, places)] = _in_user_units(small, scalings)
    unknown = np.flatnonzero(~overlap.determined)
    covariance[unknown] = covariance[:, unknown] = np.nan
    return covariance


def _overlap_order(data: SelectionData, overlap: Overlap, values: np.ndarray) -> np.ndarray:
    """Values of all rows in the order of `_overlap_sample`."""
    selected = values[data.s]
    return np.concatenate([selected[overlap.rows], values[~data.s], selected[~overlap.rows]])


def _overlap_sample(data: SelectionData, overlap: Overlap) -> tuple[BinarySample, SampleScale]:
    s, rows = data.s, overlap.rows
    x = data.x[s][rows][:, overlap.columns]
    scalings = SampleScale(column_scale(data.w), column_scale(x), 0.0, 1.0)
    w, weight = scalings.w.apply(data.w), data.weight
    sign = np.where(data.y[s][rows] == 1.0, 1.0, -1.0)
    others = np.concatenate([w[~s], -w[s][~rows]])
    mass = np.concatenate([weight[~s], weight[s][~rows]])
    x = scalings.x.apply(x)
    return BinarySample(w[s][rows], x, sign, weight[s][rows], others, mass), scalings


def binary_scores(data: SelectionData, point: Point, sample: BinarySample) -> np.ndarray:
    """(n, p + q + 1) score of each unit in the data's row order, standardised, not weighted."""
    scores = np.zeros((data.n, sample.x.shape[1] + sample.q + 1))
    scores[data.s], scores[~data.s] = _scores(np.append(point.v, point.a), sample)
    return scores


def _scores(point: np.ndarray, sample: BinarySample) -> tuple[np.ndarray, np.ndarray]:
    """Those of selected and of unselected rows, in (beta, gamma, a); point : (gamma, beta, a)."""
    p, q = sample.x.shape[1], sample.q
    gamma, beta, a = point[:q], point[q:-1], point[-1]
    units = binary_units(sample.w_selected @ gamma, sample.x @ beta, a, sample.sign)
    d_index, d_f, d_a = units.gradient
    of_selected = [sample.x * d_f[:, None], sample.w_selected * d_index[:, None], d_a]
    slope = unselected_units(sample.w_unselected @ gamma)[1]
    of_unselected = np.zeros((len(sample.w_unselected), p + q + 1))
    of_unselected[:, p : p + q] = sample.w_unselected * slope[:, None]
    return np.column_stack(of_selected), of_unselected


def _in_order(hessian, sample: BinarySample) -> np.ndarray:
    """From (gamma, beta, a) to (beta, gamma, a)."""
    p, q = sample.x.shape[1], sample.q
    order = [*range(q, q + p), *range(q), p + q]
    return hessian[np.ix_(order, order)]
