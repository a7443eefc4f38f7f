"""Both estimators of the selection model on standardised rows, wherever these are, as a
`HeckmanFit`."""

from __future__ import annotations

import numpy as np

from heckesel.data import SelectionData
from heckesel.diagnostics.profile_curve import profile_curve
from heckesel.diagnostics.verdict import Identification, exclusion_verdict, with_profile
from heckesel.errors import DataError
from heckesel.linear.covariance import inverse
from heckesel.linear.estimable import LEAST_INFORMATION, check_joint_separation, dependent_in
from heckesel.linear.estimates import NEAR_BOUNDARY, Estimates, estimates_at, mode_covariance
from heckesel.linear.forms.form_search import FormPoint
from heckesel.linear.forms.student_fit import StudentScan, scan_student, student_covariance
from heckesel.linear.probit import in_units, maximise_probit
from heckesel.linear.results.heckman_fit import HeckmanFit, Mode
from heckesel.linear.results.inference import labelled
from heckesel.linear.rho_scan import Scan, scan
from heckesel.linear.sample.sample import Rows, Sample, Scalings
from heckesel.linear.sample.stream import StreamedData
from heckesel.linear.two_step import in_user_units, two_step_covariance, two_steps

Data = SelectionData | StreamedData


def fit_ml(
    rows: Rows, scalings: Scalings, data: Data, design, kind, options, errors="normal"
) -> HeckmanFit:
    is_t = errors == "t"
    found: Scan | StudentScan = scan_student(_in_memory(rows)) if is_t else scan(rows)
    best = found.modes[0]
    _check_separation_of_fit(rows, best.hessian[: rows.q, : rows.q], data.w_names)
    estimates = [estimates_at(point, rows, scalings) for point in found.modes]
    if isinstance(best, FormPoint):
        assert isinstance(data, SelectionData)
        covariance = student_covariance(data, best, _in_memory(rows), scalings, kind, **options)
    else:
        covariance = mode_covariance(best, rows, scalings, kind, **_selected_first(options, data))
    ancillary = ("atanh_rho", "log_sigma", "log_df") if is_t else ("atanh_rho", "log_sigma")
    equations = equation_labels(data)
    labels = [*equations, *(("ancillary", name) for name in ancillary)]
    size = len(equations)
    # numbers come as log sigma, atanh rho
    order = [*range(size), size + 1, size, *range(size + 2, len(labels))]
    modes = tuple(_mode(item, labels, order) for item in estimates)
    params, cov = labelled(labels, estimates[0].vector[order], covariance[np.ix_(order, order)])
    verdict = _verdict(rows, scalings, data, params, cov, options["weight_kind"])
    if isinstance(found, Scan):
        # probability weights have no scale of their own
        unit = rows.nonzero / rows.mass if options["weight_kind"] == "probability" else 1.0
        verdict = with_profile(
            verdict, profile_curve(found, unit=unit), independent=options["clusters"] is None
        )
    return HeckmanFit(
        method="ml",
        covariance=kind,
        params=params,
        cov=cov,
        rho=modes[0].rho,
        sigma=modes[0].sigma,
        loglik=modes[0].loglik,
        status=modes[0].status,
        near_boundary=modes[0].near_boundary,
        modes=modes,
        identification=verdict,
        data=data,
        design=design,
        scan=found,
        errors=errors,
        **options,
    )


def _in_memory(rows: Rows) -> Sample:
    assert isinstance(rows, Sample)  # t errors are refused for rows in files
    return rows


def _mode(item: Estimates, labels, order) -> Mode:
    params, _ = labelled(labels, item.vector[order], np.zeros((len(order),) * 2))
    return Mode(item.rho, item.sigma, item.loglik, item.status, params, item.near_boundary)


def fit_both_steps(rows: Rows, scalings: Scalings, data: Data, design, kind, options) -> HeckmanFit:
    stage = two_steps(rows, scalings)
    _check_separation_of_fit(rows, stage.probit.hessian, data.w_names)
    _check_mills(stage.gram, data.x_names)
    fit = in_user_units(stage, scalings)
    covariance = two_step_covariance(rows, scalings, stage, kind, **_selected_first(options, data))
    labels = [*equation_labels(data), ("mills", "lambda")]
    p, q = rows.p, rows.q
    order = [*range(p), *range(p + 1, p + 1 + q), p]  # numbers come as beta, lambda, gamma
    vector = np.concatenate([fit.beta, [fit.lambda_coef], fit.gamma])
    params, cov = labelled(labels, vector[order], covariance[np.ix_(order, order)])
    return HeckmanFit(
        method="two-step",
        covariance=kind,
        params=params,
        cov=cov,
        rho=fit.rho,
        sigma=fit.sigma,
        loglik=float("nan"),
        status=fit.probit.status,
        near_boundary=abs(fit.rho) > NEAR_BOUNDARY,
        modes=(),
        identification=_verdict(rows, scalings, data, params, cov, options["weight_kind"]),
        data=data,
        design=design,
        **options,
    )


def _selected_first(options: dict, data: Data) -> dict:
    """Cluster codes in the order of a `Sample`."""
    if options["clusters"] is None:
        return options
    assert isinstance(data, SelectionData)
    return options | {"clusters": options["clusters"][np.argsort(~data.s, kind="stable")]}


def _check_separation_of_fit(rows: Rows, hessian, names) -> None:
    if np.linalg.eigvalsh(-hessian).min() >= LEAST_INFORMATION:
        return
    held = rows if isinstance(rows, Sample) else rows.part()
    inside = held.w_selected[held.weight_selected > 0]
    outside = held.w_unselected[held.weight_unselected > 0]
    s = np.arange(len(inside) + len(outside)) < len(inside)
    check_joint_separation(np.concatenate([inside, outside]), s, names)


def _check_mills(gram, x_names) -> None:
    position, others = dependent_in(gram)
    if position is not None:
        raise DataError(
            "the Mills ratio is a linear combination of "
            f"{', '.join(repr(x_names[j]) for j in others) or 'nothing'} among the "
            "selected, so two steps cannot tell the correction from it; add a column to select"
        )


def equation_labels(data: Data):
    return [
        *(("outcome", name) for name in data.x_names),
        *(("select", name) for name in data.w_names),
    ]


def _verdict(rows: Rows, scalings, data: Data, params, cov, weight_kind: str) -> Identification:
    """From the excluded columns' Wald test; a fit without a covariance asks the probit alone."""
    gamma, covariance = params["select"].to_numpy(), cov["select"].loc["select"].to_numpy()
    if data.instruments and not np.isfinite(covariance).all():
        probit = in_units(maximise_probit(rows), scalings.w.back)
        gamma, covariance = probit.gamma, inverse(-probit.hessian)
        if weight_kind == "probability":  # they have no scale of their own
            covariance = covariance * rows.mass / rows.nonzero
    return verdict_by_wald(data, gamma, covariance)


def verdict_by_wald(data: Data, gamma, covariance) -> Identification:
    """gamma : (q,) of the selection equation with its covariance, the constant included."""
    names = data.instruments
    where = [data.w_names.index(name) for name in names]
    return exclusion_verdict(
        names,
        gamma[where],
        covariance[np.ix_(where, where)],
        varying_columns=sum(name != "Intercept" for name in data.w_names),
    )
