"""The linear selection model on Parquet files, which are read again for every sum."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from heckesel.errors import DataError
from heckesel.linear.estimable import warn_without_density
from heckesel.linear.results.assemble import fit_both_steps, fit_ml
from heckesel.linear.results.heckman_fit import HeckmanFit
from heckesel.linear.sample.stream import (
    Stream,
    StreamedData,
    check_selection,
    check_stream,
    open_stream,
)
from heckesel.tables.both_equations import split_outcome
from heckesel.tables.cluster import cluster_of, in_threads
from heckesel.tables.fit_options import check_instruments, covariance_kind
from heckesel.tables.formats.parquet import parquet_parts
from heckesel.tables.formula import FormulaDesign, split_formula
from heckesel.tables.formula_reader import count_rows, learn_reader


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
    _check_options(arrays, clusters, covariance, weights)
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


def _check_options(arrays, clusters, covariance, weights) -> None:
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
    if weights is not None and not isinstance(weights, str):
        raise DataError("data= names files, so weights= must be the name of one of their columns")


def _with_rows(parts, counts, y_name: str):
    """Parts that hold a row of positive weight, after checking that both kinds of row exist."""
    rows, selected = (sum(column) for column in zip(*counts, strict=True))
    check_selection(selected, rows, y_name)
    filled = [item for item in zip(parts, counts, strict=True) if item[1][0]]
    return tuple(part for part, _ in filled), [count for _, count in filled]
