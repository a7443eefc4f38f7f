r"""Fits of the linear selection model as a `HeckmanFit`, without the verdict on identification."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from heckesel.classical.checks import (
    LEAST_INFORMATION,
    first_dependent,
    refuse,
    separating_combination,
    warn_without_density,
)
from heckesel.classical.covariance import fit_least_squares, labelled, least_squares_covariance
from heckesel.classical.forms import equation_labels, form_covariance, mode_at, search
from heckesel.classical.likelihood import ERROR_MODELS
from heckesel.classical.ml import (
    selected_mode,
)
from heckesel.classical.results import HeckmanFit
from heckesel.classical.rows import Rows, Sample, SampleScale, standardised_sample
from heckesel.classical.stream import (
    Stream,
    StreamedData,
    check_selection,
    check_stream,
    open_stream,
)
from heckesel.classical.two_step import in_user_units, two_step_covariance, two_steps
from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.io import cluster_of, in_threads
from heckesel.tables.formula import (
    FormulaDesign,
    check_instruments,
    covariance_kind,
    split_formula,
    split_outcome,
)
from heckesel.tables.stream import count_rows, learn_reader, parquet_parts


def fit_in_memory(
    data: SelectionData, design, kind, options, method, errors, sample=None
) -> HeckmanFit:
    """By the method asked for, or by least squares if every unit was selected.

    sample : `standardised_sample(data)`, if the caller has it
    """
    if data.s.all():
        return _fit_ols(data, design, kind, options)
    # Blocks are too small for several BLAS threads, which would spend their time waiting.
    with threadpool_limits(1, user_api="blas"):
        rows, scalings = sample or standardised_sample(data)
        if method == "ml":
            return fit_ml(rows, scalings, data, design, kind, options, errors)
        return fit_both_steps(rows, scalings, data, design, kind, options)


def _fit_ols(data: SelectionData, design, kind, options) -> HeckmanFit:
    fit = fit_least_squares(data.x, data.y, data.weight)
    covariance = least_squares_covariance(data.x, data.y, data.weight, fit, kind, **options)
    params, cov = labelled([("outcome", name) for name in data.x_names], fit.beta, covariance)
    return HeckmanFit(
        params=params,
        cov=cov,
        rho=float("nan"),
        sigma=fit.sigma,
        loglik=fit.loglik,
        status="converged",
        method="least squares",
        covariance=kind,
        data=data,
        design=design,
        **options,
    )


def fit_ml(
    rows: Rows,
    scalings: SampleScale,
    data: SelectionData | StreamedData,
    design,
    kind,
    options,
    errors="normal",
) -> HeckmanFit:
    form = ERROR_MODELS[errors]
    found = search(form, rows)
    # the scale of probability weights is arbitrary
    unit = rows.nonzero / rows.mass if options["weight_kind"] == "probability" else 1.0
    selected = selected_mode(found.modes, unit)
    point = found.modes[selected]
    of_point = partial(
        form_covariance, form, point, rows, scalings, kind, **_selected_first(options, data)
    )
    covariance, given_ends = of_point(), None
    if np.isnan(covariance[0, 0]):
        given_ends = of_point(given_ends=True)
    _check_separation_of_fit(rows, point.hessian[: rows.q, : rows.q], data.w_names)
    modes = tuple(mode_at(each, rows, scalings, form, data) for each in found.modes)
    index = modes[selected].params.index
    given_rho = None if given_ends is None else pd.DataFrame(given_ends, index, index)
    return HeckmanFit(
        **vars(modes[selected]),
        sigma=modes[selected].sigma,
        method="ml",
        covariance=kind,
        cov=pd.DataFrame(covariance, index, index),
        cov_given_rho=given_rho,
        data=data,
        design=design,
        modes=modes,
        selected=selected,
        scan=found,
        errors=errors,
        **options,
    )


def fit_both_steps(
    rows: Rows, scalings: SampleScale, data: SelectionData | StreamedData, design, kind, options
) -> HeckmanFit:
    stage = two_steps(rows, scalings)
    _check_separation_of_fit(rows, stage.probit.hessian, data.w_names)
    _check_mills(stage.gram, data.x_names)
    values = in_user_units(stage, scalings)
    covariance = two_step_covariance(rows, scalings, stage, kind, **_selected_first(options, data))
    params, cov = labelled([*equation_labels(data), ("mills", "lambda")], values, covariance)
    sigma = float(np.sqrt(stage.variance)) * scalings.y_scale
    return HeckmanFit(
        params=params,
        cov=cov,
        rho=float(values[-1]) / sigma,
        sigma=sigma,
        loglik=float("nan"),
        status=stage.probit.status,
        method="two-step",
        covariance=kind,
        data=data,
        design=design,
        **options,
    )


def _selected_first(options: dict, data: SelectionData | StreamedData) -> dict:
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
    refuse(separating_combination(np.concatenate([inside, outside]), s, names))


def _check_mills(gram, x_names) -> None:
    position, others = first_dependent(gram)
    if position is not None:
        raise DataError(
            "the inverse Mills ratio is a linear combination of "
            f"{', '.join(repr(x_names[j]) for j in others) or 'nothing'} among the selected rows, "
            "so the two-step cannot distinguish the correction from it; add a column to the "
            "selection equation"
        )


def fit_files(
    outcome,
    select,
    path,
    *,
    arrays: dict,
    method: str,
    errors: str,
    scale: str | None,
    instruments,
    covariance,
    clusters,
    weights,
    weight_kind: str,
    client,
) -> HeckmanFit:
    """A fit that still has its sample of rows, for the verdict.

    One pass over the files for levels and counts, one for moments, then one per evaluation.
    """
    _check_options(arrays, clusters, covariance, weights, weight_kind)
    if outcome is None or select is None:
        raise DataError("rows in files need both formulas: outcome='y ~ a', select='~ a + b'")
    left, right = split_outcome(outcome)
    indicator, select_right = split_formula(select, "selection")
    run: Callable = in_threads if client is None else cluster_of(client)
    parts = parquet_parts(path)
    with threadpool_limits(1, user_api="blas"):
        reader = learn_reader(
            parts,
            right,
            select_right,
            y=left,
            indicator=indicator,
            weights=weights,
            scale=scale,
            run=run,
        )
        if client is None and not reader.plain:
            run = map  # formulas keep the interpreter busy, so threads would only wait
        counts = list(run(partial(count_rows, reader), parts))
        parts, counts = _with_rows(parts, counts, left)
        rows, survey, kept = open_stream(Stream(parts, reader.checked, run), counts)
        design = FormulaDesign(reader.outcome, reader.select, None, reader.scale)
        check_instruments(instruments, kept, design)
        odd = np.array([1.0 if survey.fraction is None else survey.fraction])
        kind, _ = covariance_kind(covariance, None, odd, weight_kind, has_likelihood=method == "ml")
        check_stream(rows, survey, kept)
        if errors == "shape":
            warn_without_density(kept)
        rows = replace(rows, stream=replace(rows.stream, read=reader.read))
        data = StreamedData(
            rows=rows,
            scalings=rows.scalings,
            x_names=reader.outcome.names,
            w_names=reader.select.names,
            y_name=left,
            instruments=kept.instruments,
            n_selected=int(survey.xy.weight),
            scale_names=kept.scale_names,
        )
        fit = partial(fit_ml, errors=errors) if method == "ml" else fit_both_steps
        options = {"weight_kind": weight_kind, "clusters": None}
        return fit(rows, rows.scalings, data, design, kind, options)


def _check_options(arrays, clusters, covariance, weights, weight_kind) -> None:
    given = [name for name, value in arrays.items() if value is not None]
    if given:
        raise DataError(
            f"{given[0]}= is an array, but data= names files; name the columns in the formulas"
            + (", as in select='s ~ a + b'" if given[0] == "selected" else "")
        )
    if clusters is not None or covariance == "cluster":
        raise DataError(
            "a cluster covariance needs all rows of a cluster at once; use covariance='robust', or "
            "read the files into a frame"
        )
    if weight_kind == "analytic":
        raise DataError("analytic weights need a frame; read the files into one")
    if weights is not None and not isinstance(weights, str):
        raise DataError("data= names files, so weights= must be the name of one of their columns")


def _with_rows(parts, counts, y_name: str):
    """Parts that hold a row of positive weight, after checking that both kinds of row exist."""
    rows, selected = (sum(column) for column in zip(*counts, strict=True))
    check_selection(selected, rows, y_name)
    filled = [item for item in zip(parts, counts, strict=True) if item[1][0]]
    return tuple(part for part, _ in filled), [count for _, count in filled]
