"""Pairs bootstrap of the two-step estimator, all replicates of a chunk in one tensor program.

A replicate is a vector of row counts, so resampling moves no data: counts weight the rows.
"""

from __future__ import annotations

import numpy as np

from heckesel.classic.blocks import BLOCK_ROWS
from heckesel.classic.standardise import scaling_of
from heckesel.data import SelectionData
from heckesel.likelihoods.normal import unselected_units
from heckesel.numerics.normal import inverse_mills, mills_delta

CELLS_AT_ONCE = 4_000_000  # replicates times rows held at once, 32 MB an array
PROBIT_STEPS = 25
STEP_TOLERANCE = 1e-10


def bootstrap_two_step(
    data: SelectionData, start, *, replicates, seed, weight_kind="frequency", clusters=None
) -> np.ndarray:
    """(replicates, p + 1 + q + 2) draws of (beta, lambda, gamma, rho, sigma).

    start : (q,) the probit of the data itself. A replicate without a finite estimate is NaN.
    """
    chunk = max(1, CELLS_AT_ONCE // data.n)
    seeds = np.random.SeedSequence(seed).spawn(-(-replicates // chunk))
    draws = []
    for number, child in enumerate(seeds):
        size = min(chunk, replicates - number * chunk)
        counts = _counts(data, size, np.random.default_rng(child), weight_kind, clusters)
        draws.append(_fit_all(data, counts, start))
    return np.concatenate(draws)


def _counts(data, size, rng, weight_kind, clusters) -> np.ndarray:
    """(size, n) weights of the rows in each replicate."""
    if clusters is not None:
        codes, labels = np.unique(clusters, return_inverse=True)
        drawn = rng.multinomial(len(codes), np.full(len(codes), 1 / len(codes)), size)
        return drawn[:, labels] * data.weight
    if weight_kind == "frequency":
        total = data.weight.sum()
        return rng.multinomial(round(total), data.weight / total, size).astype(float)
    return rng.multinomial(data.n, np.full(data.n, 1 / data.n), size) * data.weight


def _fit_all(data, counts, start) -> np.ndarray:
    scaling = scaling_of(data.w)
    signed = np.where(data.s, 1.0, -1.0)[:, None] * scaling.apply(data.w)
    forward = np.linalg.inv(scaling.back)
    gamma = np.tile(forward @ start, (len(counts), 1))
    finished = np.zeros(len(counts), bool)
    for _ in range(PROBIT_STEPS):
        step = _probit_steps(signed, counts, gamma)
        gamma = gamma + step
        finished = np.abs(step).max(axis=1) < STEP_TOLERANCE
        if finished.all():
            break
    gamma = np.where(finished[:, None], gamma @ scaling.back.T, np.nan)
    return _second_stage(data, counts, gamma)


def _probit_steps(signed, counts, gamma) -> np.ndarray:
    """(b, q) Newton steps; second derivatives of all replicates are one matrix product."""
    b, q = gamma.shape
    upper = np.triu_indices(q)
    gradient, packed = np.zeros((b, q)), np.zeros((b, len(upper[0])))
    for first in range(0, len(signed), BLOCK_ROWS):
        rows, mass = signed[first : first + BLOCK_ROWS], counts[:, first : first + BLOCK_ROWS]
        units = unselected_units(-(gamma @ rows.T))
        gradient -= (mass * units.d_index) @ rows
        packed -= (mass * units.d_index_index) @ (rows[:, upper[0]] * rows[:, upper[1]])
    return _solve(_unpack(packed, q), gradient)


def _second_stage(data, counts, gamma) -> np.ndarray:
    s = data.s
    x, y, w, mass = data.x[s], data.y[s], data.w[s], counts[:, s]
    scaling = scaling_of(x)
    x = scaling.apply(x)
    p, upper = x.shape[1], np.triu_indices(x.shape[1])
    index = gamma @ w.T  # (b, n1)
    mills = inverse_mills(index)
    gram = np.zeros((len(counts), p + 1, p + 1))
    gram[:, :p, :p] = _unpack(mass @ (x[:, upper[0]] * x[:, upper[1]]), p)
    gram[:, :p, p] = gram[:, p, :p] = (mass * mills) @ x
    gram[:, p, p] = (mass * mills**2).sum(axis=1)
    target = np.column_stack([(mass * y) @ x, (mass * mills) @ y])
    coefficients = _solve(gram, target)
    c = coefficients[:, -1]
    residual = y - coefficients[:, :p] @ x.T - c[:, None] * mills
    total = mass.sum(axis=1)
    variance = (mass * (residual**2 + c[:, None] ** 2 * mills_delta(index, mills))).sum(axis=1)
    sigma = np.sqrt(variance / total)
    return np.column_stack([coefficients[:, :p] @ scaling.back.T, c, gamma, c / sigma, sigma])


def _unpack(packed, size) -> np.ndarray:
    rows, columns = np.triu_indices(size)
    full = np.empty((len(packed), size, size))
    full[:, rows, columns] = full[:, columns, rows] = packed
    return full


def _solve(matrices, vectors) -> np.ndarray:
    """Batched solve; a singular or unfinished replicate becomes NaN."""
    solved = np.full_like(vectors, np.nan)
    usable = np.isfinite(matrices).all(axis=(1, 2)) & np.isfinite(vectors).all(axis=1)
    usable[usable] = np.linalg.matrix_rank(matrices[usable]) == matrices.shape[1]
    solved[usable] = np.linalg.solve(matrices[usable], vectors[usable][..., None])[..., 0]
    return solved
