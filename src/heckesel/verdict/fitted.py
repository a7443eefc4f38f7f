"""The verdict on data and on fits: the evidence is collected here and judged by `conclude`."""

from functools import partial
from typing import Any

import numpy as np
from scipy.special import chdtrc
from threadpoolctl import threadpool_limits

from heckesel.classical.checks import checked_probit, unexplained_share
from heckesel.classical.covariance import covariance_of, inverse
from heckesel.classical.ml import Scan
from heckesel.classical.probit import (
    ProbitFit,
    fit_probit,
    in_units,
    maximise_probit,
    probit_scores,
)
from heckesel.classical.probit_results import HeckmanProbitFit
from heckesel.classical.results import HeckmanFit, rows_of
from heckesel.classical.rows import Rows, SampleScale, do_all
from heckesel.classical.stream import StreamedData
from heckesel.data import SelectionData, scaled_weight
from heckesel.tables.fit_input import question
from heckesel.verdict.checks import linearity_test, model_evidence, repeated_rows
from heckesel.verdict.identify import Identification, conclude, nothing_to_correct
from heckesel.verdict.profile_curve import profile_curve
from heckesel.verdict.strength import error_of_rho, wald_evidence
from heckesel.verdict.validity import agreement

LEAK = 1e-6  # share of the outcome's variance that a column which contains it leaves unexplained


def identify_data(data: SelectionData) -> Identification:
    """The verdict on data, whatever model is fitted afterwards; x and w have no constant column.

    A column that is collinear in w, or that predicts selection perfectly, is an error.
    """
    if data.s.all():
        return nothing_to_correct(question(data))
    if not data.weight.all():  # a row of weight zero must not affect the knots
        data = data.take(data.weight > 0)
    with threadpool_limits(1, user_api="blas"):
        probit, covariance = checked_selection(data)
        names = ("Intercept", *data.w_names)
        evidence = wald_evidence(data.instruments, names, probit.gamma, covariance)
        evidence |= {"rows": data.n, "selected": int(data.s.sum())}
        if data.instruments:
            kept = [j for j, name in enumerate(data.w_names) if name not in data.instruments]
            others = np.column_stack([np.ones(data.n), data.w[:, kept]])
            ratio = 2 * (probit.loglik - fit_probit(others, data.s, data.weight).loglik)
            evidence["likelihood_ratio"] = max(ratio, 0.0)
            evidence["likelihood_ratio_p"] = float(chdtrc(len(data.instruments), max(ratio, 0.0)))
        evidence = error_of_rho(evidence, data, probit.gamma[1:], probit.gamma[0])
        return conclude(evidence | agreement(data) | repeated_rows(data) | leaking_column(data))


def checked_selection(data: SelectionData) -> tuple[ProbitFit, np.ndarray]:
    """A probit of selection, its constant first, with its covariance, clustered by groups; w has no
    constant column yet."""
    w = np.column_stack([np.ones(data.n), data.w])
    probit = checked_probit(w, data.s, ("Intercept", *data.w_names), data.weight)
    if data.groups is None:
        return probit, inverse(-probit.hessian)
    scores, groups = probit_scores(w, data.s, probit.gamma), data.groups
    return probit, covariance_of("cluster", probit.hessian, scores, data.weight, clusters=groups)


def leaking_column(data: SelectionData) -> dict:
    """A column of x or w that alone explains almost all of the outcome among the selected."""
    y, weight = data.y[data.s], data.weight[data.s]
    for values, names in ((data.x, data.x_names), (data.w, data.w_names)):
        for name, column in zip(names, values[data.s].T, strict=True):
            if np.ptp(column) > 0 and unexplained_share(column[:, None], y, weight) < LEAK:
                return {"leak": name}
    return {}


def identify_fit(fit: HeckmanFit, sample: tuple[Rows, SampleScale] | None = None) -> Identification:
    """The verdict on a fit of `hk.heckman`.

    Probability weights of `fit` have an average of one; a fit from files still has its rows.

    sample : the standardised rows of the fit, if the caller has them
    """
    data: Any = fit.data  # that of a loaded fit explains that it has no rows
    probability = fit.weight_kind == "probability"
    if not fit.has_selection:
        return nothing_to_correct(question(data))
    with threadpool_limits(1, user_api="blas"):
        rows, scalings = sample or rows_of(data, None)[:2]
        gamma, covariance = _selection_equation(fit)
        if data.instruments and not np.isfinite(covariance).all():
            probit = in_units(maximise_probit(rows), scalings.w.back)
            gamma, covariance = probit.gamma, inverse(-probit.hessian)
            if probability:  # whose scale is arbitrary
                covariance = covariance * rows.mass / rows.nonzero
        is_normal, some = isinstance(fit.scan, Scan), _standardised(data, rows)
        tasks: list = [
            partial(_instruments, data, some, rows, scalings, gamma, covariance),
            partial(linearity_test, some),
            partial(repeated_rows, some) if fit.clusters is None else dict,
            partial(leaking_column, some),
            partial(model_evidence, fit, rows, scalings) if is_normal else dict,
        ]
        evidence = {name: value for found in do_all(tasks, rows.n) for name, value in found.items()}
        if is_normal:
            unit = _rows_per_weight(data) if probability else 1.0
            evidence |= profile_curve(fit.scan, unit=unit).as_evidence()
            if fit.clusters is not None:
                evidence["independent_rows"] = False
        elif fit.method == "two-step":
            evidence["rho"] = fit.rho
        return conclude(evidence)


def identify_classes(fit: HeckmanProbitFit) -> Identification:
    """The verdict on a probit with sample selection."""
    data = fit.data
    if not fit.has_selection:
        return nothing_to_correct()
    gamma, covariance = _selection_equation(fit)
    with threadpool_limits(1, user_api="blas"):
        if not np.isfinite(covariance).all():
            probit = fit_probit(data.w, data.s, scaled_weight(data.weight, fit.weight_kind))
            gamma, covariance = probit.gamma, inverse(-probit.hessian)
        rows, scalings, _ = rows_of(data, None)
        some = _standardised(data, rows)
        evidence = _instruments(data, some, rows, scalings, gamma, covariance)
        if fit.scan is None:
            evidence["reason"] = (
                f"the columns separate the classes of all {int(data.s.sum())} observed rows, so "
                "every rho fits equally well"
            )
            evidence["action"] = "Use more rows or fewer columns."
            return conclude(evidence)
        return conclude(evidence | profile_curve(fit.scan).as_evidence())


def _instruments(data, standardised, rows: Rows, scalings: SampleScale, gamma, covariance) -> dict:
    """Strength of the instruments, and whether they agree."""
    evidence = wald_evidence(data.instruments, tuple(data.w_names), gamma, covariance)
    slopes = np.linalg.solve(scalings.w.back, gamma)
    evidence = error_of_rho(evidence, standardised, slopes, 0.0, mass=rows.mass_selected)
    return evidence | agreement(standardised)


def _standardised(data: SelectionData | StreamedData, rows: Rows) -> SelectionData:
    """The rows of a fit, or a part of them, without constants in x."""
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


def _selection_equation(fit) -> tuple[np.ndarray, np.ndarray]:
    return fit.params["select"].to_numpy(), fit.cov["select"].loc["select"].to_numpy()


def _rows_per_weight(data: SelectionData | StreamedData) -> float:
    """The factor that turns the weights into a number of rows."""
    if isinstance(data, StreamedData):
        return data.rows.nonzero / data.rows.mass
    selected, others = data.weight[data.s], data.weight[~data.s]
    rows = np.count_nonzero(selected) + np.count_nonzero(others)
    return int(rows) / (float(selected.sum()) + float(others.sum()))
