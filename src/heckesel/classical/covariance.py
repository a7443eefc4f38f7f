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
    clusters : (n,) integer codes, or (n, 2) of two ways. `scores` may be None for "information".
    """
    if kind == "information":
        return inverse(-hessian)
    if kind == "opg":
        return inverse(meat(scores, weight))
    bread, options = inverse(-hessian), {"weight_kind": weight_kind, "clusters": clusters}
    return bread @ meat(scores, weight, corrected=True, **options) @ bread


def covariance_of_rows(
    kind, hessian, rows: Rows, unit_scores, *, weight_kind="frequency", clusters=None
):
    """The same, with scores that are computed block by block and not kept.

    unit_scores : block -> (m, k), its selected units first; clusters in that order too
    """
    if kind == "information":
        return inverse(-hessian)
    if kind == "opg":
        (middle,) = rows.sum(partial(_block_meat, unit_scores=unit_scores, weight_kind="frequency"))
        return inverse(middle)
    bread = inverse(-hessian)
    return bread @ meat_of_rows(rows, unit_scores, weight_kind, clusters) @ bread


def meat_of_rows(rows: Rows, unit_scores, weight_kind="frequency", clusters=None):
    """The corrected `meat`; clusters : codes, those of the selected units first; they need rows in
    memory"""
    if clusters is not None:
        assert isinstance(rows, Sample)
        return meat(unit_scores(rows), rows.weight, clusters=clusters, corrected=True)
    (middle,) = rows.sum(partial(_block_meat, unit_scores=unit_scores, weight_kind=weight_kind))
    units = rows.mass if weight_kind == "frequency" else rows.nonzero
    return middle * (units / (units - 1))


def _block_meat(block: Sample, *, unit_scores, weight_kind) -> tuple:
    return (meat(unit_scores(block), block.weight, weight_kind=weight_kind),)


def meat(scores, weight, *, weight_kind="frequency", clusters=None, corrected=False):
    """Sum over units (or clusters) of the outer product of scores.

    A frequency weight stands for repeated rows, sum f s s'; any other weight multiplies one row's
    score, sum w^2 s s'. Within a cluster weighted scores are added up first. For clusters in two
    ways, (n, 2), it is that of either way less that of their intersections (Cameron, Gelbach and
    Miller 2011).

    corrected : whether to multiply with Stata's factor: N/(N-1), or G/(G-1) for G clusters
    """
    if clusters is not None and clusters.ndim == 2:
        both = np.unique(clusters, axis=0, return_inverse=True)[1].ravel()
        one, other, cut = (
            meat(scores, weight, clusters=codes, corrected=corrected)
            for codes in (*clusters.T, both)
        )
        return one + other - cut
    if clusters is not None:
        units = len(np.unique(clusters[weight > 0]))
        _, labels = np.unique(clusters, return_inverse=True)
        sums = np.stack([np.bincount(labels, weight * column) for column in scores.T], axis=1)
        found = sums.T @ sums
    else:
        is_frequency = weight_kind == "frequency"
        units = weight.sum() if is_frequency else np.count_nonzero(weight)
        found = scores.T @ (scores * (weight if is_frequency else weight**2)[:, None])
    return found * (units / (units - 1)) if corrected else found


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
    options = {"weight_kind": weight_kind, "clusters": clusters}
    middle = meat(scores, weight, corrected=True, **options)
    return back @ (gram @ middle @ gram * (units - 1) / (units - x.shape[1])) @ back.T


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
    whose sums a cluster covariance averages (of two ways the fewer), and infinity (a normal)
    without clusters."""
    if clusters is None:
        return float("inf")
    used = clusters[weight > 0].reshape(np.count_nonzero(weight), -1)
    return float(min(len(np.unique(codes)) for codes in used.T) - 1)


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
