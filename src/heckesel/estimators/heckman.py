"""`hk.heckman`: the classic selection model with inference."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from heckesel.data import SelectionData, selected_rows, selection_data, term_names
from heckesel.diagnostics.verdict import nothing_selected
from heckesel.errors import DataError, IdentificationWarning, is_one_of
from heckesel.estimators.heckman_files import fit_files
from heckesel.linear.estimable import check_estimable
from heckesel.linear.ols import fit_least_squares, least_squares_covariance
from heckesel.linear.results.assemble import fit_both_steps, fit_ml
from heckesel.linear.results.heckman_fit import HeckmanFit
from heckesel.linear.results.inference import in_given_weights, labelled
from heckesel.linear.sample.sample import standardised_sample
from heckesel.tables.array_design import array_design, with_intercept
from heckesel.tables.fit_options import check_instruments, covariance_kind, side_column
from heckesel.tables.formula import (
    FormulaDesign,
    build_equation,
    evaluate_column,
    split_formula,
)
from heckesel.tables.frames import as_pandas, check_same_order
from heckesel.tables.weights import scaled_weight

METHODS = ("ml", "two-step")
ERRORS = ("normal", "t")


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
    client=None,
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

    ``data`` may also be the path of a Parquet file, a folder of them or a pattern such as
    ``"part-*.parquet"``: the rows are then read again for every step and never held together, so
    memory does not grow with them. With ``client``, a `dask.distributed.Client`, the cluster's
    workers read them.
    """
    if not is_one_of(method, METHODS):
        raise DataError(f"method must be 'ml' or 'two-step', got {method!r}")
    if not is_one_of(errors, ERRORS):
        raise DataError(f"errors must be 'normal' or 't', got {errors!r}")
    if errors == "t" and method != "ml":
        raise DataError("two steps rest on normal errors; use method='ml' with errors='t'")
    if isinstance(data, str | os.PathLike):
        if errors == "t":
            raise DataError("files are fitted with normal errors; read them for errors='t'")
        arrays = {"y": y, "x": x, "w": w, "selected": selected}
        result = fit_files(
            outcome,
            select,
            data,
            arrays=arrays,
            method=method,
            instruments=instruments,
            covariance=covariance,
            clusters=clusters,
            weights=weights,
            weight_kind=weight_kind,
            client=client,
        )
        return _warned(result, stacklevel=3)
    if client is not None:
        raise DataError("client= reads files on a cluster; give data= as the path of Parquet files")
    if outcome is not None:
        checked, design = _from_formulas(outcome, select, data, weights, selected)
        clusters = side_column(clusters, as_pandas(data))
    elif y is not None and x is not None and w is not None:
        checked, design = _from_arrays(y, x, w, selected, weights)
    else:
        raise DataError("give two formulas and a frame, or y=, x= and w=")
    check_instruments(instruments, checked, design)
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
    if weight_kind == "frequency":
        return _fitted(checked, design, kind, options, method, errors)
    counted = replace(checked, weight=scaled_weight(checked.weight, weight_kind))
    return in_given_weights(_fitted(counted, design, kind, options, method, errors), checked)


def _fitted(checked: SelectionData, design, kind, options, method, errors) -> HeckmanFit:
    if checked.s.all():
        return _least_squares(checked, design, kind, options)
    # Products of a cache-sized block are too small to share: several BLAS threads cost more
    # in waiting than they save, ten times so beside a busy neighbour.
    with threadpool_limits(1, user_api="blas"):
        rows, scalings = standardised_sample(checked)
        if method == "ml":
            result = fit_ml(rows, scalings, checked, design, kind, options, errors)
        else:
            result = fit_both_steps(rows, scalings, checked, design, kind, options)
    return _warned(result, stacklevel=4)


def _warned(result: HeckmanFit, stacklevel: int) -> HeckmanFit:
    if not result.data.instruments or result.status == "boundary":
        warnings.warn(str(result.identification), IdentificationWarning, stacklevel=stacklevel)
    return result


def _from_formulas(outcome, select, data, weights, selected):
    if data is None:
        raise DataError("formulas need data=, a frame or a dict of columns")
    if select is None:
        raise DataError("the selection formula is missing: select='~ a + b'")
    check_same_order(data, of="data", selected=selected, weights=weights)
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
    check_same_order(x, of="x", w=w, y=y, selected=selected, weights=weights)
    design = array_design(x, w)
    checked = selection_data(
        with_intercept(design.x),
        with_intercept(design.w),
        y,
        selected=selected,
        weight=weights,
        x_names=("Intercept", *term_names(design.x_names)),
        w_names=("Intercept", *term_names(design.w_names)),
        y_name=str(getattr(y, "name", None) or "y"),
    )
    return checked, design


def _least_squares(checked: SelectionData, design, kind, options) -> HeckmanFit:
    warnings.warn(
        f"all {checked.n} rows have an outcome, so every unit was selected and there is nothing "
        "to correct: this is least squares",
        IdentificationWarning,
        stacklevel=4,
    )
    weight = checked.weight
    fit = fit_least_squares(checked.x, checked.y, weight)
    covariance = least_squares_covariance(checked.x, checked.y, weight, fit, kind, **options)
    params, cov = labelled([("outcome", name) for name in checked.x_names], fit.beta, covariance)
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
        identification=nothing_selected(),
        data=checked,
        design=design,
        **options,
    )
