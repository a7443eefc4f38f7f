"""`DeepHeckmanRegressor` on Parquet files: passes for columns, moments and the probit, then one
pass per epoch."""

from collections.abc import Callable

from threadpoolctl import threadpool_limits

from heckesel.classical.covariance import inverse
from heckesel.classical.probit import ProbitFit, in_units, maximise_probit
from heckesel.classical.stream import Stream, check_selection, check_stream, open_stream
from heckesel.data import SelectionData
from heckesel.errors import DataError, is_one_of, warn_user
from heckesel.estimators.network_options import AUTO, predicting_in_float64, seed_of
from heckesel.io import progress_bar
from heckesel.methods import DEEP, load_method, names_of
from heckesel.networks.ensembles.convergence import check_training
from heckesel.networks.training.batches import data_scale_from_moments
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.streamed import RowsOnDisk
from heckesel.scales import LOG
from heckesel.tables import column_reader
from heckesel.tables.fit_input import keep_columns
from heckesel.tables.stream import parquet_parts
from heckesel.verdict.identify import Identification, conclude
from heckesel.verdict.strength import error_of_rho, wald_evidence


def fit_files(
    model, path, y, *, selected, sample_weight, groups, columns, config: NetworkConfig, workers
) -> None:
    """Fit `model`: set its `columns_`, `identification_` and `fitted_`."""
    if groups is not None:
        raise DataError(
            "groups= needs folds, which need all rows in memory; read the files into a frame"
        )
    method = load_method(names_of(DEEP)[model.method])
    _check_options(model, in_memory=not hasattr(method, "fit_files"))
    fit = method.fit_files(config)
    assert config.batch_size is not None  # checked with the other options
    run: Callable = map if workers is None else workers
    size = max(column_reader.BUFFER_ROWS, config.batch_size)
    seed = seed_of(model)
    parts = parquet_parts(path, rows=1)
    reader = column_reader.learn_table(
        parts,
        {"y": y, "selected": selected, "sample_weight": sample_weight},
        columns,
        model.instruments,
        size=size,
        log=is_one_of(model.target_transform, (LOG,)),
        run=run,
    )
    items = column_reader.split_row_groups(parts, size=size, seed=seed)
    seen = column_reader.survey(reader, items, run)
    filled = [pair for pair in zip(items, seen, strict=True) if sum(map(sum, pair[1].counts))]
    table = RowsOnDisk(
        tuple(item for item, _ in filled), reader.read, tuple(part.counts for _, part in filled)
    )
    whole = column_reader.together(seen)
    counts = [pair for item in table.counts for pair in item]
    observed, rows = sum(pair[0] for pair in counts), sum(map(sum, counts))
    check_selection(observed, rows, y)
    with threadpool_limits(1, user_api="blas"):
        probit, kept = _probit(table, reader, run)
    model.identification_ = _identified(probit, kept, whole.kept, observed, rows)
    keep_columns(model, reader.columns, y)
    scaling = data_scale_from_moments(whole.x, whole.w, whole.y)
    mass = whole.y.weight, whole.x.weight - whole.y.weight
    with progress_bar("training", enabled=model.progress) as progress:
        fitted = fit(table, scaling, probit.gamma, mass, seed=seed, run=run, progress=progress)
    fitted = predicting_in_float64(fitted)
    check_training(fitted, config, whole.kept, rows=rows)
    model.fitted_ = fitted


def _check_options(model, *, in_memory: bool) -> None:
    """Refuse options that need all rows in memory; in_memory : the method does."""
    if model.batch_size is None:
        raise DataError("fits to files use mini-batches; set batch_size, such as batch_size=4096")
    refused = {
        f"method={model.method!r}": in_memory,
        f"folds={model.folds}": model.folds not in (None, AUTO),
        "selection='network'": model.selection == "network",
        "unobserved": model.unobserved is not None,
        "errors='shape'": is_one_of(model.errors, ("shape",)),
        "scale=": model.scale is not None,
        "missing='indicator'": model.missing != "error",
        "on_problem='fix'": model.on_problem != "error",
        "target_transform other than 'log'": model.target_transform is not None
        and not is_one_of(model.target_transform, (LOG,)),
    }
    for what, asked in refused.items():
        if asked:
            raise DataError(f"{what} needs all rows in memory; read the files into a frame first")


def _probit(table: RowsOnDisk, reader, run) -> tuple[ProbitFit, SelectionData]:
    """The probit on all files, its constant last, and the sample that it started from."""
    counts = [(sum(map(sum, item)), sum(pair[0] for pair in item)) for item in table.counts]
    rows, seen, kept = open_stream(Stream(table.items, reader.read_selection, run), counts)
    check_stream(rows, seen, kept)
    return in_units(maximise_probit(rows), rows.scalings.w.back), kept


def _identified(
    probit: ProbitFit, kept: SelectionData, sample: SelectionData, selected: int, rows: int
) -> Identification:
    """The verdict: instruments on all rows, the shape of the errors on a sample."""
    evidence = wald_evidence(kept.instruments, kept.w_names, probit.gamma, inverse(-probit.hessian))
    evidence |= {"rows": rows, "selected": selected}
    slopes, constant = probit.gamma[:-1], probit.gamma[-1]
    evidence = error_of_rho(evidence, sample, slopes, constant, mass=selected)
    found = conclude(evidence)
    if not sample.instruments:
        warn_user(str(found))
    return found
