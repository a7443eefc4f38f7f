"""`DeepHeckmanRegressor` on Parquet files: passes for columns, moments and the probit, then one
for each epoch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

from threadpoolctl import threadpool_limits

from heckesel.data import SelectionData
from heckesel.diagnostics.evidence import identify_shape, smooth_shares
from heckesel.diagnostics.verdict import NOT_IDENTIFIED, Identification
from heckesel.errors import DataError, IdentificationWarning
from heckesel.estimators.convergence import check_training
from heckesel.estimators.network_options import AUTO, ON_FOLDS, predicting_in_float64, seed_of
from heckesel.estimators.regression import keep_columns
from heckesel.linear.covariance import inverse
from heckesel.linear.probit import ProbitFit, in_units, maximise_probit
from heckesel.linear.results.assemble import verdict_by_wald
from heckesel.linear.sample.stream import Stream, check_stream, open_stream
from heckesel.methods.from_files import fit_joint, fit_two_step
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.streamed import Table, scaling_from
from heckesel.predictive.transformed import target_transform
from heckesel.progress import progress_bar
from heckesel.tables.column_reader import BUFFER_ROWS, deal_out, learn_table, survey, together
from heckesel.tables.parquet import parquet_parts


def fit_files(
    model, path, y, *, selected, sample_weight, columns, config: NetworkConfig, spread
) -> None:
    """Leave on `model` what a fit leaves there: `columns_`, `transform_`, `identification_`,
    `fitted_`."""
    _check_options(model)
    assert config.batch_size is not None  # checked with the other options
    run: Callable = map if spread is None else spread
    size = max(BUFFER_ROWS, config.batch_size)
    seed = seed_of(model)
    parts = parquet_parts(path, rows=1)
    reader = learn_table(
        parts,
        y=y,
        selected=selected,
        weights=sample_weight,
        columns=columns,
        instruments=model.instruments,
        size=size,
        log=model.target_transform == "log",
        run=run,
    )
    items = deal_out(parts, size=size, seed=seed)
    seen = survey(reader, items, run)
    filled = [pair for pair in zip(items, seen, strict=True) if sum(map(sum, pair[1].counts))]
    table = Table(
        tuple(item for item, _ in filled), reader.read, tuple(part.counts for _, part in filled)
    )
    whole = together(seen)
    _check_selection(table, y)
    with threadpool_limits(1, user_api="blas"):
        probit, kept = _probit(table, reader, run)
    model.identification_ = _identified(probit, kept, whole.kept, table)
    keep_columns(model, reader.columns, y)
    model.transform_ = target_transform(model.target_transform)
    scaling = scaling_from(whole.x, whole.w, whole.y)
    mass = whole.y.weight, whole.x.weight - whole.y.weight
    with progress_bar("training", enabled=model.progress) as progress:
        options = {"seed": seed, "config": config, "progress": progress}
        if model.method == "joint":
            fitted = fit_joint(table, scaling, mass, **options)
        else:
            fitted = fit_two_step(table, scaling, probit.gamma, mass, run=run, **options)
    fitted = predicting_in_float64(fitted)
    check_training(fitted, config, whole.kept, rows=sum(sum(p) for i in table.counts for p in i))
    model.fitted_ = fitted


def _check_options(model) -> None:
    """Refuse what needs all rows at once, and name the way out."""
    if model.batch_size is None:
        raise DataError("rows in files are trained in mini-batches; set batch_size, say to 4096")
    refused = {
        f"method={model.method!r}": model.method in ON_FOLDS,
        f"folds={model.folds}": model.folds not in (None, AUTO),
        "selection='network'": model.selection == "network",
        "missing='indicator'": model.missing != "error",
        "target_transform with functions": model.target_transform not in (None, "log"),
    }
    for what, asked in refused.items():
        if asked:
            raise DataError(f"{what} needs all rows at once; read the files into a frame")
    if model.method == "joint" and model.warm_up >= model.epochs:
        raise DataError(
            f"warm_up={model.warm_up} holds rho at 0 in all {model.epochs} epochs; an epoch of a "
            "long table is many steps, so take warm_up=1"
        )
    if model.errors == "t" and model.method != "joint":
        raise DataError('the two-step has normal errors; take method="joint" for errors="t"')


def _check_selection(table: Table, y: str) -> None:
    selected, unselected = (
        sum(pair[kind] for item in table.counts for pair in item) for kind in (0, 1)
    )
    if not selected:
        raise DataError(f"no row is selected: the outcome {y!r} is missing in all of them")
    if not unselected:
        raise DataError(
            f"all {selected} rows have an outcome, so every unit was selected; for a selection "
            "model leave the outcome of unselected rows missing"
        )


def _probit(table: Table, reader, run) -> tuple[ProbitFit, SelectionData]:
    """The streamed probit, its constant last, and the sample it started from."""
    counts = [(sum(map(sum, item)), sum(pair[0] for pair in item)) for item in table.counts]
    rows, seen, kept = open_stream(Stream(table.items, reader.read_selection, run), counts)
    check_stream(rows, seen, kept)
    return in_units(maximise_probit(rows), rows.scalings.w.back), kept


def _identified(
    probit: ProbitFit, kept: SelectionData, sample: SelectionData, table: Table
) -> Identification:
    """Instruments judged on all rows, the shape of the errors on a sample of them."""
    found = verdict_by_wald(kept, probit.gamma, inverse(-probit.hessian))
    if found.verdict != NOT_IDENTIFIED:
        selected = sum(pair[0] for item in table.counts for pair in item)
        rows = sum(sum(pair) for item in table.counts for pair in item)
        evidence = found.evidence | {"rows": rows, "selected": selected}
        if sample.instruments and sample.s.any():
            evidence |= smooth_shares(sample, probit.gamma[:-1], probit.gamma[-1])
        found = identify_shape(replace(found, evidence=evidence), sample)
    if not sample.instruments:
        warnings.warn(str(found), IdentificationWarning, stacklevel=5)
    return found
