"""Covariance matrices of estimates from a Hessian and the scores of the units."""

from __future__ import annotations

import numpy as np

KINDS = ("information", "opg", "robust", "cluster")
WEIGHT_KINDS = ("frequency", "probability")


def covariance_of(kind, hessian, scores, weight, *, weight_kind="frequency", clusters=None):
    """Covariance of maximum-likelihood estimates.

    hessian : (k, k) of the weighted log-likelihood; scores : (n, k) of the units, not weighted;
    clusters : (n,) integer codes. `scores` may be None for "information".

    The sandwich carries Stata's factor: N/(N-1), or G/(G-1) for G clusters.
    """
    if kind == "information":
        return inverse(-hessian)
    if kind == "opg":
        return inverse(meat(scores, weight, weight_kind="frequency"))
    bread = inverse(-hessian)
    return sandwich(bread, scores, weight, weight_kind=weight_kind, clusters=clusters)


def sandwich(bread, scores, weight, *, weight_kind="frequency", clusters=None):
    """bread @ meat @ bread' times the small-sample factor."""
    middle = meat(scores, weight, weight_kind=weight_kind, clusters=clusters)
    if clusters is not None:
        units = len(np.unique(clusters[weight > 0]))
    else:
        units = weight.sum() if weight_kind == "frequency" else np.count_nonzero(weight)
    return bread @ middle @ bread.T * (units / (units - 1))


def meat(scores, weight, *, weight_kind="frequency", clusters=None):
    """Sum over units (or clusters) of the outer product of scores.

    A frequency weight stands for repeated rows, sum f s s'; a probability weight multiplies one
    row's score, sum w^2 s s'. Within a cluster weighted scores are added up first.
    """
    if clusters is not None:
        codes, labels = np.unique(clusters, return_inverse=True)
        sums = np.stack(
            [
                np.bincount(labels, weights=weight * column, minlength=len(codes))
                for column in scores.T
            ],
            axis=1,
        )
        return sums.T @ sums
    mass = weight if weight_kind == "frequency" else weight**2
    return scores.T @ (scores * mass[:, None])


def inverse(information: np.ndarray) -> np.ndarray:
    """Inverse of a positive definite matrix; all NaN where it is not one."""
    scale = np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    scaled = information / np.outer(scale, scale)
    try:
        np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        return np.full_like(information, np.nan)
    return np.linalg.inv(scaled) / np.outer(scale, scale)
