"""Instrument strength from a probit of selection on all columns."""

from __future__ import annotations

import numpy as np

from heckesel.classic.covariance import inverse
from heckesel.classic.estimable import check_columns, check_joint_separation, check_separation
from heckesel.classic.probit import fit_probit
from heckesel.data import SelectionData
from heckesel.diagnostics.verdict import Identification, exclusion_verdict


def probit_verdict(data: SelectionData) -> Identification:
    """The verdict by the instruments' Wald test in a probit; w has no constant column yet.

    A column that cannot be estimated there, or that predicts selection perfectly, is an error.
    """
    w = np.column_stack([np.ones(data.n), data.w])
    names = ("Intercept", *data.w_names)
    check_columns(w, names, f"over all {data.n} rows")
    check_separation(w, data.s, names)
    probit = fit_probit(w, data.s, data.weight)
    if probit.status != "converged":
        check_joint_separation(w, data.s, names)
    where = [names.index(name) for name in data.instruments]
    covariance = inverse(-probit.hessian)
    return exclusion_verdict(
        data.instruments,
        probit.gamma[where],
        covariance[np.ix_(where, where)],
        varying_columns=len(data.w_names),
    )
