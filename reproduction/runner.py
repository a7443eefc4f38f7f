"""Runs the cells of an experiment, chunk by chunk, and keeps existing results.

A chunk is trained as one batch and is the unit of resumption. Which cells it holds depends on the
grid only, not on what is missing, so a run that was killed and resumed produces the same bytes as
one without interruption. A file has one header for all its rows, so rows are added only if the
header of the current run is the same.
"""

import json
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, as_completed
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from heckesel.errors import DataError, HeckeselError, IdentificationWarning
from heckesel.io import write_atomically
from reproduction import load
from reproduction import result_files as files


def attempt(function: Callable, *arguments):
    """The result, or the exception: a failed cell is recorded and the others are run."""
    try:
        return function(*arguments)
    except Exception as error:
        return error


def run(
    name: str,
    folder: Path,
    *,
    quick: bool = False,
    device: str = "auto",
    executor: Executor | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> list[dict]:
    """Run the missing or failed cells of `name`, write `folder/<module>.json`, return all rows.

    Quick rows are written to `folder/quick`, so that they are not mistaken for full ones. An
    `executor` (processes, or a Dask cluster's) runs chunks side by side; rows and bytes are the
    same.
    """
    module = load(name)
    path = files.results_path(name, folder, quick)
    times_path = path.with_suffix(".times.json")
    grid = module.cells(quick)
    chunks = _chunks(module, grid)
    keys = {cell: files.cell_key(asdict(cell)) for cell in grid}
    hashes, packages = getattr(module, "DATA_HASHES", {}), getattr(module, "PACKAGES", ())
    made = files.provenance(_device_name(device), hashes, packages)
    kept = {files.cell_key(row["cell"]): row for row in files.rows_of_auto(name, path.parent)}
    chunks = {key: members for key, members in chunks.items() if keys[members[0]] not in kept}
    done = _finished(path, [[keys[cell] for cell in members] for members in chunks.values()], made)
    times = files.read_times(times_path) if times_path.exists() else {}
    missing = [chunk for chunk, members in chunks.items() if keys[members[0]] not in done]
    for chunk, (outcomes, seconds) in _outcomes(name, missing, quick, device, executor):
        for cell, outcome in zip(chunks[chunk], outcomes, strict=True):
            found = {"metrics": outcome}
            if isinstance(outcome, Exception):
                found = {"error": f"{type(outcome).__name__}: {outcome}"}
            done[keys[cell]] = {"cell": asdict(cell)} | found
        times[chunk] = seconds
        files.write_results(path, list(done.values()), made)
        write_atomically(times_path, json.dumps(times, indent=1, sort_keys=True) + "\n")
        failures = sum(isinstance(outcome, Exception) for outcome in outcomes)
        report(f"{name} {chunk}: {len(outcomes)} cells, {failures} failed, {seconds:.1f} s")
    return [(done | kept)[key] for key in keys.values()]


def run_chunk(name: str, chunk: str, quick: bool, device: str, threads: int | None = None):
    """The outcomes of one chunk and the seconds they took; a plain function, so that it can be sent
    to another process or machine."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
        with suppress(ModuleNotFoundError):  # comes with scikit-learn, which not every grid needs
            from threadpoolctl import threadpool_limits

            threadpool_limits(threads)
    module = load(name)
    members = _chunks(module, module.cells(quick))[chunk]
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)  # the results are in the rows
        outcomes = attempt(module.run_chunk, members, device)
    if isinstance(outcomes, Exception):
        outcomes = [outcomes] * len(members)
    return outcomes, round(time.perf_counter() - started, 3)


def _outcomes(name, missing, quick, device, executor) -> Iterator:
    if executor is None:
        for chunk in missing:
            yield chunk, run_chunk(name, chunk, quick, device)
        return
    # one thread each: threads of several workers would compete for the same cores
    jobs = {executor.submit(run_chunk, name, chunk, quick, device, 1): chunk for chunk in missing}
    lost: dict[str, Exception] = {}
    for job in as_completed(jobs):
        result = attempt(job.result)
        if isinstance(result, Exception):  # an error of the worker, not of a cell
            lost[jobs[job]] = result
        else:
            yield jobs[job], result
    if lost:
        chunk, reason = next(iter(lost.items()))
        raise HeckeselError(
            f"{len(lost)} of {len(jobs)} chunks of {name} were lost with their workers, first "
            f"{chunk!r} ({type(reason).__name__}: {reason}); all others are kept, and running "
            "again computes only these"
        )


def on_cluster(client) -> Executor:
    """The workers of a `dask.distributed.Client` as an `executor`.

    A chunk whose worker dies is sent to another one, up to the scheduler's `allowed-failures`
    times.
    """
    return client.get_executor(pure=False)


def _finished(path: Path, wanted: list[list[str]], made: dict) -> dict[str, dict]:
    """Rows by key, of the chunks that are complete and without an error; wanted : the keys of each
    chunk.

    If some are not, new rows will have the same header, so it must be that of the current run.
    """
    if not path.exists():
        return {}
    content = files.read_results_file(path)
    there = {files.cell_key(row["cell"]): row for row in content["rows"] if "metrics" in row}
    whole = [keys for keys in wanted if all(key in there for key in keys)]
    differs = files.difference(content, made)
    if whole and len(whole) < len(wanted) and differs:
        raise DataError(
            f"{path} {differs}, and {len(wanted) - len(whole)} of its {len(wanted)} chunks are "
            "missing or failed; one file holds rows of one environment only: finish it in that "
            "environment, give another folder as --out, or move the file away to run all cells"
        )
    return {key: there[key] for keys in whole for key in keys}


def failed(rows: list[dict]) -> list[dict]:
    """Rows with an exception, or whose `passed` is 0."""
    return [row for row in rows if "error" in row or row["metrics"].get("passed") == 0.0]


def _chunks(module, grid) -> dict[str, list]:
    chunks: dict[str, list] = {}
    for cell in grid:
        chunks.setdefault(str(module.chunk_of(cell)), []).append(cell)
    return chunks


def _device_name(device: str) -> str:
    """The device the rows were computed on: the name of the GPU, or the CPU."""
    from importlib.util import find_spec

    if device == "cpu" or find_spec("torch") is None:
        return "cpu"
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
