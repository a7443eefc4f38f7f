"""A mode of the joint likelihood in the user's units, with its covariance.

Parameters in the order (beta, gamma, log sigma, *scale, atanh rho, *extra): scale, coefficients of
log sigma(x) where it varies; extra, the other parameters of t and shape errors.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import block_diag

from heckesel.linear.covariance import covariance_of_rows
from heckesel.linear.forms.error_models import GAUSSIAN, Form
from heckesel.linear.forms.form_search import FormPoint
from heckesel.linear.joint import Point
from heckesel.linear.sample.sample import Rows, Sample, SampleScale

NEAR_BOUNDARY = 0.99


@dataclass(frozen=True)
class Estimates:
    """status: `converged`, `boundary` (no interior optimum) or `max_iterations`.

    scale : (k,) of log sigma(x) = log_sigma + z'scale; extra : log df, or skewness and log tail
    """

    beta: np.ndarray
    gamma: np.ndarray
    log_sigma: float
    atanh_rho: float
    loglik: float
    status: str
    scale: tuple[float, ...] = ()
    extra: tuple[float, ...] = ()

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
        return np.concatenate(
            [self.beta, self.gamma, [self.log_sigma], self.scale, [self.atanh_rho], self.extra]
        )


def estimates_at(point: Point | FormPoint, rows: Rows, scalings: SampleScale) -> Estimates:
    """Undo Olsen's coordinates, then the standardisation."""
    q = rows.q
    sigma = 1.0 / point.v[-1]
    beta = scalings.y_scale * scalings.x.back @ (point.v[q:-1] * sigma)
    if scalings.x.constant is not None:
        beta[scalings.x.constant] += scalings.y_centre / scalings.x.scale[scalings.x.constant]
    log_sigma, scale = float(np.log(sigma * scalings.y_scale)), point.scale
    if scalings.scale is not None:
        scale = scale / scalings.scale.scale
        log_sigma -= float(scalings.scale.centre @ scale)
    return Estimates(
        beta=beta,
        gamma=scalings.w.back @ point.v[:q],
        log_sigma=log_sigma,
        atanh_rho=point.a,
        loglik=point.value - rows.mass_selected * np.log(scalings.y_scale),
        status=point.status,
        scale=tuple(map(float, scale)),
        extra=tuple(map(float, point.shared[1:])),
    )


def standardised_hessian(point: Point | FormPoint, q: int) -> np.ndarray:
    """Hessian in standardised (beta, gamma, log sigma, ...) at an optimum.

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


def back_transform(scalings: SampleScale, shared: int = 1) -> np.ndarray:
    """Matrix that maps standardised parameters, and so their covariance, to the user's units."""
    log_sigma = np.eye(1)
    if scalings.scale is not None:
        per_unit = 1.0 / scalings.scale.scale
        log_sigma = np.diag(np.append(1.0, per_unit))
        log_sigma[0, 1:] = -scalings.scale.centre * per_unit
    return block_diag(
        scalings.y_scale * scalings.x.back, scalings.w.back, log_sigma, np.eye(shared)
    )


def mode_covariance(
    point: Point, rows: Rows, scalings: SampleScale, kind: str, **meat
) -> np.ndarray:
    """Covariance of (beta, gamma, log sigma, atanh rho); all NaN unless the mode converged.

    meat : options of `covariance_of_rows`
    """
    size = rows.p + rows.q + 2
    if point.status != "converged":
        return np.full((size, size), np.nan)
    hessian, back = standardised_hessian(point, rows.q), back_transform(scalings)
    scores = partial(unit_scores, form=GAUSSIAN, point=point)
    covariance = covariance_of_rows(kind, hessian, rows, scores, **meat)
    return back @ covariance @ back.T


def unit_scores(sample: Sample, *, form: Form, point: Point | FormPoint) -> np.ndarray:
    """(n, size) score of each unit in standardised (beta, gamma, log sigma, *scale, atanh rho,
    *extra), not weighted; selected units first."""
    p, q, k, n1 = sample.p, sample.q, sample.k, len(sample.w_selected)
    gamma, shrink = point.v[:q], point.v[-1]
    e = sample.residual_columns @ point.v[q:]
    if sample.scale_columns is not None:
        factor = np.exp(-sample.scale_columns @ point.scale)
        e, shrink = e * factor, shrink * factor
    d_index, d_e, *shared = form.selected(sample.w_selected @ gamma, e, *point.shared).gradient
    scores, last = np.zeros((sample.n, p + q + 1 + k + form.size)), p + q + 1 + k
    scores[:n1, :p] = sample.residual_columns[:, :p] * (shrink * d_e)[:, None]
    scores[:n1, p : p + q] = sample.w_selected * d_index[:, None]
    scores[:n1, p + q] = -d_e * e - 1.0
    if sample.scale_columns is not None:
        scores[:n1, p + q + 1 : last] = -sample.scale_columns * (d_e * e + 1.0)[:, None]
    scores[:n1, last:] = np.transpose(shared)
    d_index, *shared = form.unselected(sample.w_unselected @ gamma, *point.shared).gradient
    scores[n1:, p : p + q] = sample.w_unselected * d_index[:, None]
    scores[n1:, last:] = np.transpose(shared)
    return scores
