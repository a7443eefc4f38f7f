"""`hk.heckman`: the classic selection model with inference."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from heckesel.classic.covariance import KINDS, WEIGHT_KINDS, inverse
from heckesel.classic.estimable import (
    check_estimable,
    check_joint_separation,
    dependent_columns,
)
from heckesel.classic.estimates import Estimates, estimates_at, mode_covariance
from heckesel.classic.joint import standardised_sample
from heckesel.classic.least_squares import fit_least_squares, least_squares_covariance
from heckesel.classic.probit import fit_probit
from heckesel.classic.profile import Scan, scan
from heckesel.classic.standardise import scaling_of
from heckesel.classic.student import StudentScan, scan_student, student_covariance
from heckesel.classic.two_step import fit_two_step, second_stage, two_step_covariance
from heckesel.data import SelectionData, selected_rows, selection_data
from heckesel.diagnostics.verdict import NO_SELECTION, Identification, exclusion_verdict
from heckesel.errors import DataError, IdentificationWarning
from heckesel.estimators.arrays import array_design, with_intercept
from heckesel.estimators.fit import HeckmanFit, Mode
from heckesel.estimators.formula import (
    FormulaDesign,
    build_equation,
    evaluate_column,
    number_column,
    split_formula,
)
from heckesel.estimators.frames import as_pandas
from heckesel.estimators.inference import labelled

METHODS = ("ml", "two-step")
ERRORS = ("normal", "t")
LEAST_INFORMATION = 1e-3


def heckman(
    outcome: str | None = None,
    select: str | None = None,
    data=None,
    *,
    y=None,
    x=None,
    w=None,
    selected=None,
    instruments=None,
    method: str = "ml",
    errors: str = "normal",
    covariance: str | None = None,
    clusters=None,
    weights=None,
    weight_kind: str = "frequency",
) -> HeckmanFit:
    """Fit Heckman's selection model.

    Either formulas and a frame, ``heckman("wage ~ educ", "~ educ + kids", df)``, or columns,
    ``heckman(y=y, x=x, w=w)``, to which intercepts are added. A missing outcome means
    unselected; ``select="s ~ ..."`` (or `selected`) names an indicator instead.

    * instruments: names you rely on as excluded from the outcome; checked, nothing else
    * method: "ml" (every mode of the likelihood, best first) or "two-step"
    * errors: "normal", or "t" (ml only): bivariate t with degrees of freedom to be estimated,
      ("ancillary", "log_df"); sigma is then the scale of the outcome error, not its sd
    * covariance: "information" (two-step: Heckman's own), "opg", "robust" or "cluster". The
      default is "information"; "robust" with probability weights; "cluster" with clusters
    * clusters, weights: column name or array
    * weight_kind: "frequency" (a row stands for several) or "probability" (a sampled row stands
      for others like it)
    """
    if method not in METHODS:
        raise DataError(f"method must be 'ml' or 'two-step', got {method!r}")
    if errors not in ERRORS:
        raise DataError(f"errors must be 'normal' or 't', got {errors!r}")
    if errors == "t" and method != "ml":
        raise DataError("two steps rest on normal errors; use method='ml' with errors='t'")
    if outcome is not None:
        checked, design = _from_formulas(outcome, select, data, weights, selected)
        clusters = side_column(clusters, as_pandas(data))
    elif y is not None and x is not None and w is not None:
        checked, design = _from_arrays(y, x, w, selected, weights)
    else:
        raise DataError("give two formulas and a frame, or y=, x= and w=")
    _check_instruments(instruments, checked, design)
    kind, codes = covariance_kind(
        covariance,
        clusters,
        checked.weight,
        weight_kind,
        has_likelihood=method == "ml" and not checked.s.all(),
    )
    if not checked.s.all() and checked.weight[~checked.s].sum() == 0:
        raise DataError("all unselected rows have weight zero")
    check_estimable(checked)
    options = {"weight_kind": weight_kind, "clusters": codes}
    if checked.s.all():
        return _least_squares(checked, design, kind, options)
    # Products of a cache-sized block are too small to share: several BLAS threads cost more
    # in waiting than they save, ten times so beside a busy neighbour.
    with threadpool_limits(1, user_api="blas"):
        if method == "ml":
            result = _ml(checked, design, kind, options, errors)
        else:
            result = _two_step(checked, design, kind, options)
    if not checked.instruments:
        warnings.warn(str(result.identification), IdentificationWarning, stacklevel=2)
    return result


def _from_formulas(outcome, select, data, weights, selected):
    if data is None:
        raise DataError("formulas need data=, a frame or a dict of columns")
    if select is None:
        raise DataError("the selection formula is missing: select='~ a + b'")
    frame = as_pandas(data)
    left, right = split_formula(outcome, "outcome")
    if left is None:
        raise DataError(f"the outcome formula {outcome!r} needs a left-hand side: 'y ~ a + b'")
    indicator, select_right = split_formula(select, "selection")
    y = evaluate_column(left, frame, "outcome")
    if indicator is not None and selected is not None:
        raise DataError(f"select= names the indicator {indicator!r}; leave selected= out")
    if indicator is not None:
        selected = evaluate_column(indicator, frame, "selection indicator")
    needed = selected_rows(y, selected, left)
    outcome_equation, x = build_equation(right, frame, needed, "outcome")
    select_equation, w = build_equation(select_right, frame, np.ones(len(frame), bool), "selection")
    for variable in (*outcome_equation.variables, *select_equation.variables):
        if variable == left:
            raise DataError(f"the outcome {left!r} cannot explain itself; remove it from the right")
    checked = selection_data(
        x,
        w,
        y,
        selected=selected,
        weight=side_column(weights, frame),
        x_names=outcome_equation.names,
        w_names=select_equation.names,
        y_name=left,
        excluded=select_equation.columns_beyond(outcome_equation.variables),
    )
    used = sorted({*outcome_equation.variables, *select_equation.variables})
    # a copy, so that what happens to the user's frame later does not reach the fit
    return checked, FormulaDesign(outcome_equation, select_equation, frame[used].copy())


def _from_arrays(y, x, w, selected, weights):
    design = array_design(x, w)
    if "Intercept" in (*design.x_names, *design.w_names):
        raise DataError("the name 'Intercept' is taken: one is added to each equation")
    checked = selection_data(
        with_intercept(design.x),
        with_intercept(design.w),
        y,
        selected=selected,
        weight=weights,
        x_names=("Intercept", *design.x_names),
        w_names=("Intercept", *design.w_names),
        y_name=str(getattr(y, "name", None) or "y"),
    )
    return checked, design


def side_column(values, frame):
    """Weights or clusters: a column's name or the values themselves."""
    if not isinstance(values, str):
        return values
    if values in frame.columns and frame[values].dtype.kind in "OUS":
        return frame[values].to_numpy()
    return number_column(frame, values)


def _check_instruments(instruments, checked: SelectionData, design) -> None:
    if instruments is None:
        return
    if not isinstance(instruments, str | list | tuple):
        raise DataError(f"instruments must be a name or a list of names, got {instruments!r}")
    for name in [instruments] if isinstance(instruments, str) else instruments:
        in_outcome, in_select = checked.x_names, checked.w_names
        if isinstance(design, FormulaDesign):
            in_outcome, in_select = design.outcome.variables, design.select.variables
        if name in in_outcome:
            raise DataError(
                f"the instrument {name!r} is also in the outcome equation, so it excludes "
                "nothing; remove it there"
            )
        if name not in in_select:
            raise DataError(f"the instrument {name!r} is not in the selection equation; add it")


def covariance_kind(kind, clusters, weight, weight_kind, *, has_likelihood: bool):
    """The covariance to compute and the clusters as integer codes, after checking that they,
    the weights and the method go together."""
    if weight_kind not in WEIGHT_KINDS:
        raise DataError(f"weight_kind must be 'frequency' or 'probability', got {weight_kind!r}")
    fractions = weight != np.round(weight)
    if weight_kind == "frequency" and fractions.any():
        raise DataError(
            f"frequency weights count rows but one is {weight[fractions][0]:g}; "
            "use weight_kind='probability'"
        )
    if kind is None:
        kind = "robust" if weight_kind == "probability" else "information"
        kind = "cluster" if clusters is not None else kind
    if kind not in KINDS:
        raise DataError(f"covariance must be one of {', '.join(KINDS)}, got {kind!r}")
    if kind == "opg" and not has_likelihood:
        raise DataError("opg needs a likelihood; use covariance='robust' here")
    if weight_kind == "probability" and kind in ("information", "opg"):
        raise DataError(f"{kind} does not hold under probability weights; use 'robust'")
    if (kind == "cluster") != (clusters is not None):
        raise DataError("clusters= and covariance='cluster' go together")
    return kind, _cluster_codes(clusters, len(weight))


def _cluster_codes(clusters, n: int):
    if clusters is None:
        return None
    values = np.asarray(clusters)
    if values.shape != (n,):
        raise DataError(f"clusters have shape {values.shape} but there are {n} rows")
    if pd.isna(values).any():
        raise DataError("clusters have missing values; every row needs one")
    labels, codes = np.unique(
        values.astype(str) if values.dtype == object else values, return_inverse=True
    )
    if len(labels) < 2:
        raise DataError("all rows are in one cluster; a cluster covariance needs at least two")
    return codes


def _ml(checked: SelectionData, design, kind, options, errors) -> HeckmanFit:
    sample, scalings = standardised_sample(checked)
    is_t = errors == "t"
    found: Scan | StudentScan = scan_student(sample) if is_t else scan(sample)
    best = found.modes[0]
    _check_separation_of_fit(checked, best.hessian[: sample.q, : sample.q])
    estimates = [estimates_at(point, sample, scalings) for point in found.modes]
    covariance_at: Callable = student_covariance if is_t else mode_covariance
    covariance = covariance_at(checked, best, sample, scalings, kind, **options)
    ancillary = ("atanh_rho", "log_sigma", "log_df") if is_t else ("atanh_rho", "log_sigma")
    equations = _equation_labels(checked)
    labels = [*equations, *(("ancillary", name) for name in ancillary)]
    size = len(equations)
    # numbers come as log sigma, atanh rho
    order = [*range(size), size + 1, size, *range(size + 2, len(labels))]
    modes = tuple(_mode(item, labels, order) for item in estimates)
    params, cov = labelled(labels, estimates[0].vector[order], covariance[np.ix_(order, order)])
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
        identification=_verdict(checked, params, cov, options["weight_kind"]),
        data=checked,
        design=design,
        scan=found,
        errors=errors,
        **options,
    )


def _mode(item: Estimates, labels, order) -> Mode:
    params, _ = labelled(labels, item.vector[order], np.zeros((len(order),) * 2))
    return Mode(item.rho, item.sigma, item.loglik, item.status, params, item.near_boundary)


def _two_step(checked: SelectionData, design, kind, options) -> HeckmanFit:
    fit = fit_two_step(checked)
    back = scaling_of(checked.w).back
    _check_separation_of_fit(checked, back.T @ fit.probit.hessian @ back)
    _check_mills(checked, fit.gamma)
    covariance = two_step_covariance(checked, fit, kind, **options)
    labels = [*_equation_labels(checked), ("mills", "lambda")]
    p, q = len(checked.x_names), len(checked.w_names)
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
        near_boundary=abs(fit.rho) > 0.99,
        modes=(),
        identification=_verdict(checked, params, cov, options["weight_kind"]),
        data=checked,
        design=design,
        **options,
    )


def _check_separation_of_fit(checked: SelectionData, hessian) -> None:
    """Where the data says next to nothing about a standardised coefficient (an information of
    1e-3 is a standard error of 30) a linear program decides whether columns separate."""
    if np.linalg.eigvalsh(-hessian).min() < LEAST_INFORMATION:
        used = checked.weight > 0
        check_joint_separation(checked.w[used], checked.s[used], checked.w_names)


def _check_mills(checked: SelectionData, gamma) -> None:
    columns, _ = second_stage(checked, gamma)
    position, others = dependent_columns(columns)
    if position is not None:
        raise DataError(
            "the Mills ratio is a linear combination of "
            f"{', '.join(repr(checked.x_names[j]) for j in others) or 'nothing'} among the "
            "selected, so two steps cannot tell the correction from it; add a column to select"
        )


def _least_squares(checked: SelectionData, design, kind, options) -> HeckmanFit:
    warnings.warn(
        f"all {checked.n} rows have an outcome, so nothing was selected: this is least squares",
        IdentificationWarning,
        stacklevel=3,
    )
    weight = checked.weight
    if options["weight_kind"] == "probability":  # they have no scale of their own
        weight = weight * np.count_nonzero(weight) / weight.sum()
    fit = fit_least_squares(checked.x, checked.y, weight)
    covariance = least_squares_covariance(checked.x, checked.y, weight, fit, kind, **options)
    params, cov = labelled([("outcome", name) for name in checked.x_names], fit.beta, covariance)
    verdict = Identification(
        NO_SELECTION, "every unit has an outcome, so there is nothing to correct.", {}
    )
    return HeckmanFit(
        method="least squares",
        covariance=kind,
        params=params,
        cov=cov,
        rho=float("nan"),
        sigma=fit.sigma,
        loglik=fit.loglik,
        status="converged",
        near_boundary=False,
        modes=(),
        identification=verdict,
        data=checked,
        design=design,
        **options,
    )


def _equation_labels(checked: SelectionData):
    return [
        *(("outcome", name) for name in checked.x_names),
        *(("select", name) for name in checked.w_names),
    ]


def _verdict(checked: SelectionData, params, cov, weight_kind: str) -> Identification:
    """From the excluded columns' Wald test; a fit without a covariance asks the probit alone."""
    names = checked.instruments
    where = [checked.w_names.index(name) for name in names]
    gamma, covariance = params["select"].to_numpy(), cov.loc["select", "select"].to_numpy()
    if names and not np.isfinite(covariance).all():
        weight = checked.weight
        if weight_kind == "probability":  # they have no scale of their own
            weight = weight * np.count_nonzero(weight) / weight.sum()
        probit = fit_probit(checked.w, checked.s, weight)
        gamma, covariance = probit.gamma, inverse(-probit.hessian)
    return exclusion_verdict(
        names,
        gamma[where],
        covariance[np.ix_(where, where)],
        varying_columns=sum(name != "Intercept" for name in checked.w_names),
    )
