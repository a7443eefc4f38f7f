"""`python -m reproduction e1 e2 --quick`: run experiments and write their results."""

import os
from contextlib import contextmanager
from pathlib import Path

import click

from heckesel.cli.fitting import check_device_option
from heckesel.errors import DataError, HeckeselError, imported
from reproduction import EXPERIMENTS, load
from reproduction.result_files import results_path
from reproduction.runner import failed, on_cluster, run

GATE = "e0"


def _completed(context, parameter, begun: str) -> list[str]:
    return [name for name in (*EXPERIMENTS, "all") if name.startswith(begun)]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("experiments", nargs=-1, shell_complete=_completed)
@click.option("--out", default="results", show_default=True, help="Folder for the JSON files.")
@click.option("--quick", is_flag=True, help="Run a small grid and write it to OUT/quick.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda.")
@click.option("--workers", default=1, show_default=True, help="Processes, with one thread each.")
@click.option("--dask", metavar="ADDRESS", help="Scheduler of a running Dask cluster.")
@click.option("--data", metavar="FOLDER", help="Benchmark panels (or set HECKESEL_DATA).")
def reproduce(
    experiments: tuple[str, ...],
    out: str,
    quick: bool,
    device: str,
    workers: int,
    dask: str | None,
    data: str | None,
) -> None:
    """Run EXPERIMENTS (default: all) and write one JSON file each.

    Existing rows are kept, and failed ones are run again. A file whose rows come from another
    version of Python or of a package, or from another device, is not extended.

    The faithfulness gate e0 runs first, and nothing else runs unless it passes.

    \b
    python -m reproduction e0                the gate, against Stata and R
    python -m reproduction e1 e2 --quick     small grids in minutes on two cores
    python -m reproduction all --workers 2
    """
    names = list(EXPERIMENTS) if not experiments or "all" in experiments else list(experiments)
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise DataError(f"there is no experiment {unknown[0]!r}; known: {', '.join(EXPERIMENTS)}")
    if workers < 1:
        raise DataError(f"--workers must be at least 1, got {workers}")
    check_device_option(device, elsewhere=dask is not None)
    if data is not None:
        os.environ["HECKESEL_DATA"] = data
    gate = load(GATE)  # always computed again: a result on disk may come from an earlier program
    outcomes = dict(zip(gate.cells(), gate.run_chunk(gate.cells()), strict=True))
    bad = [
        f"{cell.data} {cell.method}"
        for cell, row in outcomes.items()
        if isinstance(row, Exception) or row["passed"] != 1.0
    ]
    if bad:
        raise HeckeselError(f"the gate e0 fails for {', '.join(bad)}; nothing else is run")
    click.echo(f"gate: {len(outcomes)} of {len(outcomes)} cells passed")
    folder = Path(out)
    with _executor(workers, dask) as executor:
        for name in names:
            try:
                module = load(name)
                module.cells(quick)
                getattr(module, "check_data", lambda: None)()
            except DataError as reason:  # the benchmark panels are not in the repository
                if name in experiments:
                    raise
                click.echo(f"{name}: skipped, because {reason}")
                continue
            rows = run(
                name, folder, quick=quick, device=device, executor=executor, report=click.echo
            )
            if bad := failed(rows):
                raise HeckeselError(f"{len(bad)} of {len(rows)} cells of {name} failed")
            place = results_path(name, folder, quick)
            click.echo(f"{name}: {len(rows)} of {len(rows)} cells done, in {place}")
            if name == "e1" and not quick:
                # imported here, because e0 needs no torch
                from reproduction.pages.claims.controlled import kill_condition
                from reproduction.pages.rows import Results, flat

                click.echo(kill_condition(Results(e1=flat(rows)))[1])


@contextmanager
def _executor(workers: int, dask: str | None):
    """Processes, a Dask cluster, or None for this process alone."""
    if dask is not None:
        distributed = imported("distributed", "--dask needs the scale extra", "scale")
        try:
            client = distributed.Client(dask, timeout=30)
        except (OSError, ValueError) as error:
            raise HeckeselError(f"no Dask scheduler answers at {dask!r}: {error}") from None
        with client:
            yield on_cluster(client)
    elif workers > 1:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as executor:
            yield executor
    else:
        yield None
