r"""Covariance matrices of estimates, Wald statistics, and least squares."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy.special import chdtrc, fdtrc, ndtri, stdtrit

from heckesel.classical.rows import Rows, Sample, column_scale
from heckesel.errors import DataError


def covariance_of(kind, hessian, scores, weight, *, weight_kind="frequency", clusters=None):
    """Covariance of maximum-likelihood estimates.

    hessian : (k, k) of the weighted log-likelihood; scores : (n, k) of the units, not weighted;
    clusters : (n,) integer codes. `scores` may be None for "information".
    """
    if kind == "information":
        return inverse(-hessian)
    weight_kind = "frequency" if kind == "opg" else weight_kind
    middle = meat(scores, weight, weight_kind=weight_kind, clusters=clusters)
    if kind == "opg":
        return inverse(middle)
    return sandwich(inverse(-hessian), middle, _units(weight, weight_kind, clusters))


def covariance_of_rows(
    kind, hessian, rows: Rows, unit_scores, *, weight_kind="frequency", clusters=None
):
    """The same, with scores that are computed block by block and not kept.

    unit_scores : block -> (m, k), its selected units first; clusters in that order too
    """
    if kind == "information":
        return inverse(-hessian)
    weight_kind = "frequency" if kind == "opg" else weight_kind
    middle, units = meat_of_rows(rows, unit_scores, weight_kind=weight_kind, clusters=clusters)
    return inverse(middle) if kind == "opg" else sandwich(inverse(-hessian), middle, units)


def meat_of_rows(rows: Rows, unit_scores, *, weight_kind="frequency", clusters=None):
    """The meat, and the number of units (or clusters) in its sum.

    clusters : (n,) integer codes, those of the selected units first; they need rows in memory
    """
    if clusters is not None:
        assert isinstance(rows, Sample)
        weight = _weights(rows)
        middle = meat(unit_scores(rows), weight, clusters=clusters)
        return middle, _units(weight, weight_kind, clusters)
    (middle,) = rows.sum(partial(_block_meat, unit_scores=unit_scores, weight_kind=weight_kind))
    return middle, rows.mass if weight_kind == "frequency" else rows.nonzero


def _block_meat(block: Sample, *, unit_scores, weight_kind) -> tuple:
    return (meat(unit_scores(block), _weights(block), weight_kind=weight_kind),)


def _weights(rows: Sample) -> np.ndarray:
    return np.concatenate([rows.weight_selected, rows.weight_unselected])


def _units(weight, weight_kind, clusters) -> float:
    if clusters is not None:
        return len(np.unique(clusters[weight > 0]))
    return float(weight.sum() if weight_kind == "frequency" else np.count_nonzero(weight))


def sandwich(bread, middle, units):
    """bread @ meat @ bread' times Stata's factor: N/(N-1), or G/(G-1) for G clusters."""
    return bread @ middle @ bread.T * (units / (units - 1))


def meat(scores, weight, *, weight_kind="frequency", clusters=None):
    """Sum over units (or clusters) of the outer product of scores.

    A frequency weight stands for repeated rows, sum f s s'; a probability weight multiplies one
    row's score, sum w^2 s s'. Within a cluster weighted scores are added up first.
    """
    if clusters is not None:
        _, labels = np.unique(clusters, return_inverse=True)
        sums = np.stack([np.bincount(labels, weight * column) for column in scores.T], axis=1)
        return sums.T @ sums
    mass = weight if weight_kind == "frequency" else weight**2
    return scores.T @ (scores * mass[:, None])


def inverse(information: np.ndarray) -> np.ndarray:
    """Inverse of a positive definite matrix; all NaN if it is not positive definite."""
    scale = np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    scaled = information / np.outer(scale, scale)
    try:
        np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        return np.full_like(information, np.nan)
    return np.linalg.inv(scaled) / np.outer(scale, scale)


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


def wald_test(estimate, covariance) -> tuple[float, float]:
    """estimate' V^-1 estimate and its chi-squared p-value; NaN if V is not a covariance matrix."""
    if not np.isfinite(covariance).all():
        return float("nan"), float("nan")
    try:
        np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:  # a two-step |rho| > 1 can make V indefinite
        return float("nan"), float("nan")
    statistic = float(estimate @ np.linalg.solve(covariance, estimate))
    return statistic, float(chdtrc(len(estimate), statistic))


def labelled(labels, values, covariance) -> tuple[pd.Series, pd.DataFrame]:
    """Series and frame indexed by (equation, term)."""
    index = pd.MultiIndex.from_tuples(labels, names=["equation", "term"])
    return pd.Series(values, index), pd.DataFrame(covariance, index, index)


def cluster_freedom(clusters, weight) -> float:
    """Degrees of freedom of the t that estimates are compared with: G - 1 for G clusters, over
    whose sums a cluster covariance averages, and infinity (a normal) without clusters."""
    if clusters is None:
        return float("inf")
    return float(len(np.unique(clusters[weight > 0])) - 1)


def critical_value(level: float, freedom: float = float("inf")) -> float:
    """Half the width of a central interval, in standard errors."""
    p = (1 + level) / 2
    return float(ndtri(p) if np.isinf(freedom) else stdtrit(freedom, p))


@dataclass(frozen=True)
class Test:
    """One hypothesis test.

    Attributes
    ----------
    statistic : float
        Chi-squared with `degrees_of_freedom`. If `denominator` is finite,
        statistic / degrees_of_freedom is F with that many degrees of freedom in the denominator.
    degrees_of_freedom : int
    p_value : float
    denominator : float
        Infinite unless the covariance is clustered.
    """

    __test__ = False  # not a test class for pytest

    statistic: float
    degrees_of_freedom: int
    p_value: float
    denominator: float = float("inf")

    def __str__(self) -> str:
        k = self.degrees_of_freedom
        if np.isinf(self.denominator):
            return f"chi2({k}) = {self.statistic:.2f}"
        return f"F({k}, {self.denominator:.0f}) = {self.statistic / k:.2f}"


def f_test(statistic: float, restrictions: int, freedom: float) -> Test:
    """A quadratic form in estimates, chi-squared or with `freedom` degrees in the denominator."""
    if np.isinf(freedom):
        return Test(statistic, restrictions, float(chdtrc(restrictions, statistic)))
    p = float(fdtrc(restrictions, freedom, statistic / restrictions))
    return Test(statistic, restrictions, p, freedom)


def likelihood_ratio(
    loglik: float, restricted: float, weight_kind: str, restrictions: int = 1
) -> Test:
    """The likelihood-ratio test of restrictions."""
    if weight_kind == "probability":
        raise DataError("with probability weights there is no likelihood ratio; use 'wald'")
    statistic = max(2 * (loglik - restricted), 0.0)
    return Test(statistic, restrictions, float(chdtrc(restrictions, statistic)))
