"""The verdict on the instruments, from a probit of selection on all columns."""

from __future__ import annotations

import numpy as np

from heckesel.data import SelectionData
from heckesel.diagnostics.verdict import Identification, exclusion_verdict
from heckesel.linear.covariance import inverse
from heckesel.linear.estimable import (
    check_columns,
    check_joint_separation,
    check_separation,
    says_next_to_nothing,
)
from heckesel.linear.probit import fit_probit


def probit_verdict(data: SelectionData) -> Identification:
    """The verdict by the instruments' Wald test in a probit; w has no constant column yet.

    A column that is collinear there, or that predicts selection perfectly, is an error.
    """
    w = np.column_stack([np.ones(data.n), data.w])
    names = ("Intercept", *data.w_names)
    check_columns(w, names, f"over all {data.n} rows")
    check_separation(w, data.s, names)
    probit = fit_probit(w, data.s, data.weight)
    if says_next_to_nothing(w, probit.hessian):
        check_joint_separation(w, data.s, names)
    where = [names.index(name) for name in data.instruments]
    return exclusion_verdict(
        data.instruments,
        probit.gamma[where],
        inverse(-probit.hessian)[np.ix_(where, where)],
        varying_columns=len(data.w_names),
    )
