"""A mode of the joint likelihood in the user's units, with its covariance.

Parameters in the order they are listed everywhere: (beta, gamma, log sigma, atanh rho), and for t
errors log df last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from heckesel.classic.climb import FormPoint
from heckesel.classic.covariance import covariance_of
from heckesel.classic.joint import Point, Sample, Scalings
from heckesel.data import SelectionData
from heckesel.likelihoods.normal import selected_units, unselected_units

NEAR_BOUNDARY = 0.99


@dataclass(frozen=True)
class Estimates:
    """status: `converged`, `boundary` (no interior optimum) or `max_iterations`."""

    beta: np.ndarray
    gamma: np.ndarray
    log_sigma: float
    atanh_rho: float
    loglik: float
    status: str
    log_df: float | None = None

    @property
    def sigma(self) -> float:
        return float(np.exp(self.log_sigma))

    @property
    def rho(self) -> float:
        return float(np.tanh(self.atanh_rho))

    @property
    def near_boundary(self) -> bool:
        return abs(self.rho) > NEAR_BOUNDARY

    @property
    def vector(self) -> np.ndarray:
        extra = [] if self.log_df is None else [self.log_df]
        return np.concatenate([self.beta, self.gamma, [self.log_sigma, self.atanh_rho], extra])


def estimates_at(point: Point | FormPoint, sample: Sample, scalings: Scalings) -> Estimates:
    """Undo Olsen's coordinates, then the standardisation."""
    q = sample.q
    sigma = 1.0 / point.v[-1]
    beta = scalings.y_scale * scalings.x.back @ (point.v[q:-1] * sigma)
    if scalings.x.constant is not None:
        beta[scalings.x.constant] += scalings.y_centre / scalings.x.scale[scalings.x.constant]
    return Estimates(
        beta=beta,
        gamma=scalings.w.back @ point.v[:q],
        log_sigma=float(np.log(sigma * scalings.y_scale)),
        atanh_rho=point.a,
        loglik=point.value - sample.weight_selected.sum() * np.log(scalings.y_scale),
        status=point.status,
        log_df=point.log_df,
    )


def standardised_hessian(point: Point | FormPoint, q: int) -> np.ndarray:
    """Hessian in standardised (beta, gamma, log sigma, atanh rho, ...) at an optimum.

    delta = theta beta and theta = exp(-log sigma); the score is zero here, so only first
    derivatives of the map enter.
    """
    p, theta = len(point.v) - 1 - q, point.v[-1]
    size = len(point.hessian)
    jacobian = np.zeros((size, size))  # rows gamma, delta, theta, a, ...
    jacobian[:q, p : p + q] = np.eye(q)
    jacobian[q : q + p, :p] = theta * np.eye(p)
    jacobian[q : q + p, p + q] = -point.v[q:-1]
    jacobian[p + q, p + q] = -theta
    jacobian[p + q + 1 :, p + q + 1 :] = np.eye(size - p - q - 1)
    return jacobian.T @ point.hessian @ jacobian


def back_transform(scalings: Scalings, shared: int = 1) -> np.ndarray:
    """Matrix that maps standardised parameters, and so their covariance, to the user's units."""
    return block_diag(scalings.y_scale * scalings.x.back, scalings.w.back, np.eye(1 + shared))


def mode_covariance(
    data: SelectionData,
    point: Point,
    sample: Sample,
    scalings: Scalings,
    kind: str,
    *,
    weight_kind="frequency",
    clusters=None,
) -> np.ndarray:
    """Covariance of (beta, gamma, log sigma, atanh rho); all NaN unless the mode converged."""
    size = sample.p + sample.q + 2
    if point.status != "converged":
        return np.full((size, size), np.nan)
    scores = None if kind == "information" else standardised_scores(data, point, sample)
    covariance = covariance_of(
        kind,
        standardised_hessian(point, sample.q),
        scores,
        data.weight,
        weight_kind=weight_kind,
        clusters=clusters,
    )
    back = back_transform(scalings)
    return back @ covariance @ back.T


def standardised_scores(data: SelectionData, point: Point, sample: Sample) -> np.ndarray:
    """(n, p + q + 2) score of each unit in the data's row order, not weighted."""
    p, q, s = sample.p, sample.q, data.s
    gamma, residual_weights, theta = point.v[:q], point.v[q:], point.v[-1]
    e = sample.residual_columns @ residual_weights
    units = selected_units(sample.w_selected @ gamma, e, point.a)
    scores = np.zeros((data.n, p + q + 2))
    selected = np.empty((int(s.sum()), p + q + 2))
    selected[:, :p] = sample.residual_columns[:, :p] * (theta * units.d_e)[:, None]
    selected[:, p : p + q] = sample.w_selected * units.d_index[:, None]
    selected[:, -2] = -units.d_e * e - 1.0
    selected[:, -1] = units.d_a
    scores[s] = selected
    slope = unselected_units(sample.w_unselected @ gamma).d_index
    scores[~s, p : p + q] = sample.w_unselected * slope[:, None]
    return scores
