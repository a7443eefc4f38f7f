"""The verdict on a linear fit, from its selection equation and its profile likelihood."""

from dataclasses import replace
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from heckesel.classical.covariance import inverse
from heckesel.classical.ml import Scan
from heckesel.classical.probit import fit_probit, in_units, maximise_probit
from heckesel.classical.probit_results import HeckmanProbitFit
from heckesel.classical.results import HeckmanFit, rows_of
from heckesel.classical.rows import Rows, SampleScale, do_all
from heckesel.classical.stream import StreamedData
from heckesel.data import SelectionData, scaled_weight
from heckesel.diagnostics.caveats import with_model
from heckesel.diagnostics.data_verdict import smooth_shares
from heckesel.diagnostics.instrument_strength import wald_verdict
from heckesel.diagnostics.model_evidence import model_evidence
from heckesel.diagnostics.profile_curve import profile_curve
from heckesel.diagnostics.row_evidence import linearity_test, repeated_rows
from heckesel.diagnostics.validity.overidentification import with_agreement
from heckesel.diagnostics.verdict import (
    IDENTIFIED,
    NOT_IDENTIFIED,
    Identification,
    beyond_smooth,
    nothing_selected,
    with_profile,
)
from heckesel.tables.fit_input import question


def heckman_verdict(
    fit: HeckmanFit, sample: tuple[Rows, SampleScale] | None = None
) -> Identification:
    """The verdict on a fit of `hk.heckman`.

    Probability weights of `fit` have an average of one; a fit from files still has its rows.

    sample : the standardised rows of the fit, if the caller has them
    """
    data, probability = fit.data, fit.weight_kind == "probability"
    if not fit.has_selection:
        return nothing_selected(question(data))
    with threadpool_limits(1, user_api="blas"):
        rows, scalings = sample or rows_of(data, None)[:2]
        gamma, covariance = _selection_equation(fit)
        if data.instruments and not np.isfinite(covariance).all():
            probit = in_units(maximise_probit(rows), scalings.w.back)
            gamma, covariance = probit.gamma, inverse(-probit.hessian)
            if probability:  # whose scale is arbitrary
                covariance = covariance * rows.mass / rows.nonzero
        found = wald_verdict(data, gamma, covariance)
        some, is_normal = _standardised(data, rows), isinstance(fit.scan, Scan)
        tasks: list = [
            partial(_beyond_smooth, found, some, rows, scalings, gamma),
            partial(linearity_test, some),
            partial(repeated_rows, some) if fit.clusters is None else dict,
            partial(model_evidence, fit, rows, scalings) if is_normal else dict,
        ]
        found, linearity, repeated, of_model = do_all(tasks, rows.n)
        evidence = linearity | repeated
        if fit.method == "two-step":
            evidence["two_step_rho"] = fit.rho
        if not isinstance(fit.scan, Scan):
            return with_model(found, evidence)
        curve = profile_curve(fit.scan, unit=_rows_per_weight(data) if probability else 1.0)
        found = with_profile(found, curve, independent=fit.clusters is None)
        return with_model(found, evidence | of_model)


def classifier_verdict(fit: HeckmanProbitFit) -> Identification:
    """The verdict on a probit with sample selection."""
    data = fit.data
    if not fit.has_selection:
        return nothing_selected()
    if fit.scan is None:
        return Identification(
            NOT_IDENTIFIED,
            f"the columns separate the classes of all {int(data.s.sum())} observed rows, so every "
            "rho fits equally well; use more rows or fewer columns.",
            {"instruments": list(data.instruments)},
        )
    gamma, covariance = _selection_equation(fit)
    if not np.isfinite(covariance).all():
        with threadpool_limits(1, user_api="blas"):
            probit = fit_probit(data.w, data.s, scaled_weight(data.weight, fit.weight_kind))
        gamma, covariance = probit.gamma, inverse(-probit.hessian)
    found = wald_verdict(data, gamma, covariance)
    with threadpool_limits(1, user_api="blas"):
        rows, scalings, _ = rows_of(data, None)
        found = _beyond_smooth(found, _standardised(data, rows), rows, scalings, gamma)
    return with_profile(found, profile_curve(fit.scan), independent=fit.clusters is None)


def _standardised(data: SelectionData | StreamedData, rows: Rows) -> SelectionData:
    """The rows of a fit, or a part of them, without constants."""
    some = rows.part()
    n1, unknown = len(some.w_selected), np.full((len(some.w_unselected), some.p), np.nan)
    varies = [name != "Intercept" for name in data.x_names]
    return SelectionData(
        x=np.concatenate([-some.residual_columns[:, :-1], unknown])[:, varies],
        w=np.concatenate([some.w_selected, some.w_unselected]),
        s=np.arange(some.n) < n1,
        y=np.append(some.residual_columns[:, -1], np.full(some.n - n1, np.nan)),
        weight=np.append(some.weight_selected, some.weight_unselected),
        x_names=tuple(name for name in data.x_names if name != "Intercept"),
        w_names=data.w_names,
        y_name=data.y_name,
        excluded=data.instruments,
        groups=some.group_codes,
    )


def _beyond_smooth(
    found: Identification,
    standardised: SelectionData,
    rows: Rows,
    scalings: SampleScale,
    gamma: np.ndarray,
) -> Identification:
    """The verdict after two further checks: whether functions of x can replace the instruments, on
    the selected rows, and whether the instruments contradict each other."""
    if found.verdict != IDENTIFIED:
        return found
    shares = smooth_shares(standardised, np.linalg.solve(scalings.w.back, gamma), 0.0)
    shares["rho_error"] *= float(
        np.sqrt(standardised.weight[standardised.s].sum() / rows.mass_selected)
    )
    found = beyond_smooth(replace(found, evidence=found.evidence | shares))
    return with_agreement(found, standardised)


def _selection_equation(fit) -> tuple[np.ndarray, np.ndarray]:
    return fit.params["select"].to_numpy(), fit.cov["select"].loc["select"].to_numpy()


def _rows_per_weight(data: SelectionData | StreamedData) -> float:
    """The factor that turns the weights into a number of rows."""
    if isinstance(data, StreamedData):
        return data.rows.nonzero / data.rows.mass
    selected, others = data.weight[data.s], data.weight[~data.s]
    rows = np.count_nonzero(selected) + np.count_nonzero(others)
    return int(rows) / (float(selected.sum()) + float(others.sum()))
