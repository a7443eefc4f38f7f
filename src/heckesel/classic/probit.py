"""Probit by Newton: the selection equation on its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckesel.classic.blocks import sum_over_blocks
from heckesel.classic.newton import Optimum, maximise
from heckesel.classic.standardise import scaling_of
from heckesel.likelihoods.normal import unselected_units


@dataclass(frozen=True)
class ProbitFit:
    """gamma : (q,); hessian : (q, q) of the log-likelihood at gamma."""

    gamma: np.ndarray
    loglik: float
    hessian: np.ndarray
    status: str
    iterations: int


def fit_probit(w, s, weight=None, *, start=None) -> ProbitFit:
    """Maximum of sum weight log Phi(q w'gamma), q = +1 where s and -1 where not.

    w : (n, q), its constant included; s : (n,) bool; weight : (n,)
    """
    scaling = scaling_of(w)
    signed = np.where(s, 1.0, -1.0)[:, None] * scaling.apply(w)
    weight = np.ones(len(s)) if weight is None else weight
    back = scaling.back
    first = np.zeros(w.shape[1]) if start is None else np.linalg.solve(back, start)
    found = maximise_probit(signed, weight, first)
    forward = np.linalg.inv(back)
    return ProbitFit(
        gamma=back @ found.point,
        loglik=found.value,
        hessian=forward.T @ found.hessian @ forward,
        status=found.status,
        iterations=found.iterations,
    )


def maximise_probit(signed, weight, start) -> Optimum:
    """The same on rows already multiplied by +-1: sum weight log Phi(signed @ gamma)."""

    def objective(gamma):
        def block_sums(block):
            rows, mass = signed[block], weight[block]
            units = unselected_units(-(rows @ gamma))
            score = -(rows.T @ (mass * units.d_index))
            return (
                mass @ units.value,
                score,
                rows.T @ (rows * (mass * units.d_index_index)[:, None]),
            )

        value, gradient, hessian = sum_over_blocks(block_sums, len(signed))
        return float(value), gradient, hessian

    return maximise(objective, start)


def probit_scores(w, s, gamma) -> np.ndarray:
    """(n, q) gradient of each unit's log-likelihood, not weighted."""
    sign = np.where(s, 1.0, -1.0)
    slope = -sign * unselected_units(-sign * (w @ gamma)).d_index
    return w * slope[:, None]
