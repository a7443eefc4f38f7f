r"""Probit by Newton's method: the selection equation alone."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from heckesel.classical.likelihood import unselected_units
from heckesel.classical.rows import (
    Rows,
    Sample,
    add_up,
    column_scale,
    cross_products,
    slices,
    sum_over,
    threads_of_blocks,
)
from heckesel.data import SelectionData
from heckesel.math.optimise import Nearby, Optimum, certified, maximise

# Against an information of about a row each: a relative change of 1e-6 over the rows.
HARDLY_ANY_RIDGE = 1e-6


@dataclass(frozen=True)
class ProbitFit:
    """gamma : (q,); hessian : (q, q) of the log-likelihood at gamma."""

    gamma: np.ndarray
    loglik: float
    hessian: np.ndarray
    status: str


def fit_probit(w, s, weight=None, *, start=None, ridge: float = 0.0) -> ProbitFit:
    """Maximum of sum weight log Phi(q w'gamma), q = +1 where s and -1 where not.

    w : (n, q), its constant included; s : (n,) bool; weight : (n,); ridge : half of it times the
    squared standardised coefficients is taken off the log-likelihood, and off its Hessian.
    """
    scaling = column_scale(w)
    signed = np.asfortranarray(np.where(s, 1.0, -1.0)[:, None] * scaling.apply(w))
    weight = np.ones(len(s)) if weight is None else weight

    def objective(gamma):
        def terms(block):
            return probit_terms(signed[block], weight[block], gamma)

        value, gradient, hessian = sum_over(terms, slices(len(signed)), len(signed))
        return penalised((float(value), gradient, hessian), gamma, ridge, slice(None))

    back = scaling.back
    first = np.zeros(w.shape[1]) if start is None else np.linalg.solve(back, start)
    with threads_of_blocks(len(signed)):
        return in_units(maximise(objective, first), back)


def selection_probit(data: SelectionData) -> ProbitFit:
    """The probit of s on w and a constant, which comes last.

    Columns may be collinear, for example all levels of a category and the constant. The fit is then
    not unique, and a ridge too small to matter otherwise selects one solution.
    """
    w = np.column_stack([data.w, np.ones(data.n)])
    found = fit_probit(w, data.s, data.weight)
    if found.status == "converged":
        return found
    return fit_probit(w, data.s, data.weight, ridge=HARDLY_ANY_RIDGE)


def penalised(parts, point, ridge: float, where: slice) -> tuple:
    """Value, score and Hessian less ridge/2 times the squares of point[where]; in place."""
    value, score, hessian = parts
    if not ridge:
        return parts
    score[where] -= ridge * point[where]
    held = np.arange(len(score))[where]
    hessian[held, held] -= ridge
    return value - 0.5 * ridge * float(point[where] @ point[where]), score, hessian


def in_units(found: Optimum, back: np.ndarray) -> ProbitFit:
    """An optimum in standardised coefficients in the user's units; back : `ColumnScale.back`."""
    forward = np.linalg.inv(back)
    return ProbitFit(
        gamma=back @ found.point,
        loglik=found.value,
        hessian=forward.T @ found.hessian @ forward,
        status=found.status,
    )


def maximise_probit(rows: Rows, start: np.ndarray | None = None) -> Optimum:
    """The same over standardised rows. Of a long table a part is fitted first, so that all rows
    need two or three passes instead of six.

    start : (q,) near the optimum, for files whose sample is gone
    """
    of_all = partial(_evaluate, rows)
    if start is not None:
        return maximise(of_all, start)
    some = rows.part()
    if some is rows:
        return maximise(of_all, np.zeros(rows.q))
    of_part = partial(_evaluate, some)
    start, stretch = maximise(of_part, np.zeros(rows.q)).point, rows.mass / some.mass
    *found, certain = certified(of_all, of_part, stretch, start, _maximum, rows.mass)
    point, value, _, hessian = found
    return Optimum(point, value, hessian, "converged") if certain else maximise(of_all, point)


def _maximum(around: Nearby, point: np.ndarray, parts: tuple) -> np.ndarray | None:
    found = maximise(around.evaluate, point)
    return found.point if found.status == "converged" else None


def _evaluate(rows: Rows, gamma) -> tuple:
    value, gradient, hessian = rows.sum(partial(_block_terms, gamma=gamma))
    return float(value), gradient, hessian


def _block_terms(block: Sample, *, gamma) -> tuple:
    inside = block.w_selected, block.weight_selected, gamma, 1.0
    outside = block.w_unselected, block.weight_unselected, gamma, -1.0
    return tuple(add_up(probit_terms(*side) for side in (inside, outside) if len(side[0])))


def probit_terms(w, mass, gamma, sign=1.0) -> tuple:
    """Value, score and Hessian of sum mass log Phi(sign w'gamma)."""
    value, slope, bend = unselected_units(w @ (-sign * gamma))
    (score,) = -sign * cross_products((mass * slope)[None], w)
    hessian = cross_products(w.T * (mass * bend), w)
    return mass @ value, score, hessian


def probit_scores(w, s, gamma) -> np.ndarray:
    """(n, q) gradient of each unit's log-likelihood, not weighted."""
    sign = np.where(s, 1.0, -1.0)
    slope = -sign * unselected_units(-sign * (w @ gamma))[1]
    return w * slope[:, None]


# The rule of thumb for instrumental variables: below ten per instrument, noise in the estimated
# effect of the instruments dominates the error of the correction. An irrelevant column passes
# about once in 600 datasets.
STRONG_WALD_PER_INSTRUMENT = 10.0
# Relative to the largest singular value of an information matrix with a unit diagonal. Rounding is
# near 1e-16, so columns this close to one another are collinear.
COLLINEAR = 1e-10


def instruments_are_strong(data: SelectionData) -> bool:
    r"""Whether the instruments pass the Wald rule of the verdict.

    Let z index the instruments and r the other columns in the information matrix of the probit. The
    statistic is :math:`\gamma_z'(I_{zz} - I_{zr}I_{rr}^{-}I_{rz})\gamma_z`. Any generalised inverse
    gives the same value, so the other columns may be collinear, as all levels of a category are.
    """
    if not data.instruments:
        return False
    probit = selection_probit(data)
    chosen = np.array([name in data.instruments for name in (*data.w_names, None)])
    size = np.sqrt(np.maximum(np.diag(-probit.hessian), np.finfo(float).tiny))
    information, gamma = -probit.hessian / np.outer(size, size), (probit.gamma * size)[chosen]
    across = information[np.ix_(~chosen, chosen)]
    explained = np.linalg.lstsq(information[np.ix_(~chosen, ~chosen)], across, rcond=COLLINEAR)[0]
    unexplained = information[np.ix_(chosen, chosen)] - across.T @ explained
    return bool(gamma @ unexplained @ gamma >= STRONG_WALD_PER_INSTRUMENT * len(gamma))
