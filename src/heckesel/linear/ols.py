"""Least squares with the usual covariances, for data in which every unit was selected."""

from dataclasses import dataclass

import numpy as np

from heckesel.linear.covariance import inverse, meat
from heckesel.linear.sample.standardise import column_scale


@dataclass(frozen=True)
class LeastSquaresFit:
    """sigma divides by n - p, as least squares is usually reported; loglik is at its maximum."""

    beta: np.ndarray
    sigma: float
    loglik: float


def fit_least_squares(x, y, weight) -> LeastSquaresFit:
    scaling = column_scale(x)
    root = np.sqrt(weight)
    standardised = np.linalg.lstsq(scaling.apply(x) * root[:, None], y * root, rcond=None)[0]
    beta = scaling.back @ standardised
    squares, units = float(weight @ (y - x @ beta) ** 2), float(weight.sum())
    with np.errstate(divide="ignore"):  # an exact fit is infinitely likely
        loglik = float(-0.5 * units * (np.log(2 * np.pi * squares / units) + 1))
    return LeastSquaresFit(beta, float(np.sqrt(squares / (units - x.shape[1]))), loglik)


def least_squares_covariance(x, y, weight, fit, kind, *, weight_kind="frequency", clusters=None):
    """information: s^2 (X'X)^-1; robust: HC1; cluster: G/(G-1) (N-1)/(N-p), all as Stata."""
    scaling = column_scale(x)
    columns, back = scaling.apply(x), scaling.back
    gram = inverse(columns.T @ (columns * weight[:, None]))
    if kind == "information":
        return back @ (fit.sigma**2 * gram) @ back.T
    scores = columns * (y - x @ fit.beta)[:, None]
    units = weight.sum() if weight_kind == "frequency" else np.count_nonzero(weight)
    factor = units / (units - x.shape[1])
    if clusters is not None:
        groups = len(np.unique(clusters[weight > 0]))
        factor = groups / (groups - 1) * (units - 1) / (units - x.shape[1])
    middle = meat(scores, weight, weight_kind=weight_kind, clusters=clusters)
    return back @ (gram @ middle @ gram * factor) @ back.T
