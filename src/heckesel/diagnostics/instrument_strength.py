"""Instrument strength from a probit of selection on all columns."""

from __future__ import annotations

import numpy as np

from heckesel.data import SelectionData
from heckesel.diagnostics.verdict import (
    STRONG_WALD_PER_INSTRUMENT,
    Identification,
    exclusion_verdict,
)
from heckesel.linear.covariance import inverse
from heckesel.linear.estimable import (
    check_columns,
    check_joint_separation,
    check_separation,
    says_next_to_nothing,
)
from heckesel.linear.probit import fit_probit, selection_probit

# Of the largest singular value of an information with ones on its diagonal: rounding is at 1e-16,
# and columns this close to one another are told apart by nothing else.
DEPENDENT = 1e-10


def probit_verdict(data: SelectionData) -> Identification:
    """The verdict by the instruments' Wald test in a probit; w has no constant column yet.

    A column that cannot be estimated there, or that predicts selection perfectly, is an error.
    """
    w = np.column_stack([np.ones(data.n), data.w])
    names = ("Intercept", *data.w_names)
    check_columns(w, names, f"over all {data.n} rows")
    check_separation(w, data.s, names)
    probit = fit_probit(w, data.s, data.weight)
    if says_next_to_nothing(w, probit.hessian):
        check_joint_separation(w, data.s, names)
    where = [names.index(name) for name in data.instruments]
    covariance = inverse(-probit.hessian)
    return exclusion_verdict(
        data.instruments,
        probit.gamma[where],
        covariance[np.ix_(where, where)],
        varying_columns=len(data.w_names),
    )


def instruments_are_strong(data: SelectionData) -> bool:
    r"""Whether excluded columns move selection, by the Wald rule of the verdict.

    With the information of the probit in blocks, z the instruments and r the rest, the statistic
    is :math:`\gamma_z'(I_{zz} - I_{zr}I_{rr}^{-}I_{rz})\gamma_z`. Any generalised inverse serves:
    columns of the rest may depend on one another, as all levels of a category do.
    """
    if not data.instruments:
        return False
    probit = selection_probit(data)
    chosen = np.array([name in data.instruments for name in (*data.w_names, None)])
    size = np.sqrt(np.maximum(np.diag(-probit.hessian), np.finfo(float).tiny))
    information, gamma = -probit.hessian / np.outer(size, size), (probit.gamma * size)[chosen]
    across = information[np.ix_(~chosen, chosen)]
    explained = np.linalg.lstsq(information[np.ix_(~chosen, ~chosen)], across, rcond=DEPENDENT)[0]
    left = information[np.ix_(chosen, chosen)] - across.T @ explained
    return bool(gamma @ left @ gamma >= STRONG_WALD_PER_INSTRUMENT * len(gamma))
