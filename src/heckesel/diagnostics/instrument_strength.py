"""The verdict on the instruments, by their Wald test in the selection equation."""

from dataclasses import replace

import numpy as np

from heckesel.classical.checks import checked_probit
from heckesel.classical.covariance import covariance_of, inverse
from heckesel.classical.probit import ProbitFit, probit_scores
from heckesel.classical.stream import StreamedData
from heckesel.data import SelectionData
from heckesel.diagnostics.verdict import Identification, exclusion_verdict


def wald_verdict(data: SelectionData | StreamedData, gamma, covariance) -> Identification:
    """The verdict by the Wald test of the instruments.

    gamma : (q,) of the selection equation with its covariance, the constant included
    """
    names = data.instruments
    where = [data.w_names.index(name) for name in names]
    return exclusion_verdict(
        names,
        gamma[where],
        covariance[np.ix_(where, where)],
        varying_columns=sum(name != "Intercept" for name in data.w_names),
    )


def probit_and_verdict(data: SelectionData) -> tuple[ProbitFit, Identification]:
    """A probit of selection, its constant first, and its verdict; w has no constant column yet.

    A column that is collinear there, or that predicts selection perfectly, is an error.
    """
    w = np.column_stack([np.ones(data.n), data.w])
    data = replace(data, w=w, w_names=("Intercept", *data.w_names))
    probit = checked_probit(w, data.s, data.w_names, data.weight)
    covariance = inverse(-probit.hessian)
    if data.groups is not None:
        scores = probit_scores(w, data.s, probit.gamma)
        covariance = covariance_of(
            "cluster", probit.hessian, scores, data.weight, clusters=data.groups
        )
    return probit, wald_verdict(data, probit.gamma, covariance)


def probit_verdict(data: SelectionData) -> Identification:
    """The verdict of `probit_and_verdict`."""
    return probit_and_verdict(data)[1]
