"""`heckesel reproduce`: run experiments and write their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock

import click
from reproduction import EXPERIMENTS

from heckesel.cli.dask_client import dask_client
from heckesel.cli.models import check_device_option
from heckesel.errors import DataError, HeckeselError

GATE = "e0"
# Experiments whose chunks the workers may have at the same time. The longest of the quick ones
# takes as long as the three after it.
AT_ONCE = 4
LOADING = Lock()  # imports and panels, one after the other


def _completed(context, parameter, begun: str) -> list[str]:
    return [name for name in (*EXPERIMENTS, "all") if name.startswith(begun)]


@click.command()
@click.argument("experiments", nargs=-1, shell_complete=_completed)
@click.option("--out", default="results", show_default=True, help="Folder for the JSON files.")
@click.option("--quick", is_flag=True, help="A small grid for two cores, kept apart in OUT/quick.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda.")
@click.option("--workers", default=1, show_default=True, help="Processes, one thread each.")
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

    Rows that are there already are kept and failed ones are tried again. A file whose rows
    were made with another version of Python or a package, or on another device, is not added to.

    The faithfulness gate e0 runs first, and nothing else runs unless it passes.

    \b
    heckesel reproduce e0                the gate, against Stata and R
    heckesel reproduce e1 e2 --quick     small grids in minutes on two cores
    heckesel reproduce all --workers 2
    """
    import os

    names = list(EXPERIMENTS) if not experiments or "all" in experiments else list(experiments)
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise DataError(f"there is no experiment {unknown[0]!r}; known: {', '.join(EXPERIMENTS)}")
    if workers < 1:
        raise DataError(f"--workers must be at least 1, got {workers}")
    check_device_option(device, dask)
    if data is not None:
        os.environ["HECKESEL_DATA"] = data
    _pass_the_gate()
    with _executor(workers, dask) as executor:
        run = partial(_run, out=Path(out), quick=quick, device=device, executor=executor)
        jobs = [partial(run, name, asked_for=name in experiments) for name in names]
        if executor is None:
            for job in jobs:
                job()
        else:
            overlapping(jobs)


def overlapping(jobs: Sequence[Callable[[], None]]) -> None:
    """Jobs begun in order, up to AT_ONCE of them not done, so that no worker waits for the last
    chunk of an experiment. After a failure nothing more begins."""
    from collections import deque
    from concurrent.futures import Future, ThreadPoolExecutor

    begun: deque[Future] = deque()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for job in jobs:
            if len(begun) == AT_ONCE:
                begun.popleft().result()
            begun.append(threads.submit(job))
        while begun:
            begun.popleft().result()


def _run(name: str, *, asked_for: bool, out: Path, quick: bool, device: str, executor) -> None:
    from reproduction import load
    from reproduction.result_files import results_path
    from reproduction.runner import failed, run

    try:
        with LOADING:
            module = load(name)
            module.cells(quick)
            getattr(module, "check_data", lambda: None)()
    except DataError as reason:  # benchmark panels do not ship
        if asked_for:
            raise
        click.echo(f"{name}: left out, since {reason}")
        return
    rows = run(name, out, quick=quick, device=device, executor=executor, report=click.echo)
    bad = failed(rows)
    if bad:
        raise HeckeselError(f"{len(bad)} of {len(rows)} cells of {name} failed")
    place = results_path(name, out, quick)
    found = _found(name, rows) if quick else ""  # of a whole grid the pages of `paper/` tell
    click.echo(f"{name}: {len(rows)} of {len(rows)} cells done, in {place}{found}")
    if name == "e1" and not quick:
        click.echo(_kill_verdict(rows))


def _found(name: str, rows: list[dict]) -> str:
    from reproduction.experiment_table import experiment_table

    table = experiment_table(name, rows)
    return "" if table is None else f"\n{table}\n"


def _kill_verdict(rows: list[dict]) -> str:
    from reproduction.kill_condition import kill_condition
    from reproduction.pages.rows import Results, flat

    return kill_condition(Results(e1=flat(rows))).sentence


def _pass_the_gate() -> None:
    """Always computed afresh: a result on disk says nothing about the program of today."""
    from reproduction import load

    module = load(GATE)
    grid = module.cells()
    outcomes = module.run_chunk(grid)
    bad = [
        f"{cell.data} {cell.method}"
        for cell, row in zip(grid, outcomes, strict=True)
        if isinstance(row, Exception) or row["passed"] != 1.0
    ]
    if bad:
        raise HeckeselError(f"the gate e0 fails for {', '.join(bad)}; nothing else is run")
    click.echo(f"gate: {len(grid)} of {len(grid)} cells passed")


@contextmanager
def _executor(workers: int, dask: str | None):
    """Processes, a Dask cluster, or None for this process alone."""
    if dask is not None:
        from reproduction.runner import on_cluster

        with dask_client(dask) as client:
            yield on_cluster(client)
    elif workers > 1:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as executor:
            yield executor
    else:
        yield None
