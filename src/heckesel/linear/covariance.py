"""Covariance matrices of estimates from a Hessian and the scores of the units."""

from functools import partial

import numpy as np

from heckesel.linear.sample.sample import Rows, Sample


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
