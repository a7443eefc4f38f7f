"""The verdict on a linear fit, from its selection equation and its profile likelihood."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from heckesel.data import SelectionData, scaled_weight
from heckesel.diagnostics.profile_curve import profile_curve
from heckesel.diagnostics.verdict import (
    NOT_IDENTIFIED,
    Identification,
    exclusion_verdict,
    nothing_selected,
    with_profile,
)
from heckesel.linear.covariance import inverse
from heckesel.linear.probit import fit_probit, in_units, maximise_probit
from heckesel.linear.results.heckman_fit import HeckmanFit
from heckesel.linear.results.heckman_probit_fit import HeckmanProbitFit
from heckesel.linear.results.resampling import rows_of
from heckesel.linear.rho_scan import Scan
from heckesel.linear.sample.stream import StreamedData


def heckman_verdict(fit: HeckmanFit) -> Identification:
    """The verdict on a fit of `hk.heckman`.

    Probability weights of `fit` have an average of one; a fit from files still has its rows.
    """
    data, probability = fit.data, fit.weight_kind == "probability"
    if not fit.has_selection:
        return nothing_selected()
    gamma, covariance = _selection_equation(fit)
    if data.instruments and not np.isfinite(covariance).all():
        with threadpool_limits(1, user_api="blas"):
            rows, scale, _ = rows_of(data, None)
            probit = in_units(maximise_probit(rows), scale.w.back)
        gamma, covariance = probit.gamma, inverse(-probit.hessian)
        if probability:  # whose scale is arbitrary
            covariance = covariance * rows.mass / rows.nonzero
    found = wald_verdict(data, gamma, covariance)
    if not isinstance(fit.scan, Scan):
        return found
    curve = profile_curve(fit.scan, unit=_rows_per_weight(data) if probability else 1.0)
    return with_profile(found, curve, independent=fit.clusters is None)


def classifier_verdict(fit: HeckmanProbitFit) -> Identification:
    """The verdict on a probit with sample selection."""
    data = fit.data
    if not fit.has_selection:
        return nothing_selected()
    if fit.scan is None:
        return Identification(
            NOT_IDENTIFIED,
            f"the columns separate the classes of all {int(data.s.sum())} observed rows, so that "
            "every rho fits them equally well; more rows, or fewer columns, are needed.",
            {"instruments": list(data.instruments)},
        )
    gamma, covariance = _selection_equation(fit)
    if not np.isfinite(covariance).all():
        with threadpool_limits(1, user_api="blas"):
            probit = fit_probit(data.w, data.s, scaled_weight(data.weight, fit.weight_kind))
        gamma, covariance = probit.gamma, inverse(-probit.hessian)
    return with_profile(wald_verdict(data, gamma, covariance), profile_curve(fit.scan))


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


def _selection_equation(fit) -> tuple[np.ndarray, np.ndarray]:
    return fit.params["select"].to_numpy(), fit.cov["select"].loc["select"].to_numpy()


def _rows_per_weight(data: SelectionData | StreamedData) -> float:
    """The factor that turns the weights into a number of rows."""
    if isinstance(data, StreamedData):
        return data.rows.nonzero / data.rows.mass
    selected, others = data.weight[data.s], data.weight[~data.s]
    rows = np.count_nonzero(selected) + np.count_nonzero(others)
    return int(rows) / (float(selected.sum()) + float(others.sum()))
