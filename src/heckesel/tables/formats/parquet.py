"""The reader of Parquet files: parts of about a million rows, each read in batches."""

import glob
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from heckesel.errors import DataError
from heckesel.tables.frames import as_pandas

PART_ROWS = 1_000_000  # a second of work: enough to hand out, little to lose with a worker
READ_BUFFER = 1 << 20  # bytes of a column read at once, so that row groups are not held whole


@dataclass(frozen=True)
class Part:
    """Some row groups of one file; first_row : its place in the file."""

    path: str
    row_groups: tuple[int, ...]
    first_row: int
    rows: int


def parquet_parts(path, rows: int | None = None) -> tuple[Part, ...]:
    """The parts of a file, of all ``*.parquet`` in a folder, or of all files a pattern names; in
    the order of their names. rows : of a part at most, if its row groups are not larger."""
    most = PART_ROWS if rows is None else rows
    parts = [part for file in _files(os.fspath(path)) for part in _parts_of(file, most)]
    if not parts:
        raise DataError(f"{os.fspath(path)!r} has no rows")
    return tuple(parts)


def _files(path: str) -> list[str]:
    if os.path.isdir(path):
        found = sorted(str(file) for file in Path(path).rglob("*.parquet"))
        if not found:
            raise DataError(f"the folder {path!r} holds no *.parquet file")
        return found
    if os.path.exists(path):
        return [path]
    found = sorted(glob.glob(path))
    if not found:
        raise DataError(
            f"there is no file {path!r}; data= takes a frame, or a Parquet file, folder or pattern"
        )
    return found


def open_file(path: str):
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError("reading Parquet needs pyarrow: pip install 'heckesel[scale]'") from None
    if not os.path.isfile(path):
        raise DataError(f"{path!r} is not a regular file; pass a Parquet file, folder or pattern")
    try:
        return pq.ParquetFile(path, buffer_size=READ_BUFFER)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{path!r} is not a Parquet file ({error}); write one with frame.to_parquet(...)"
        ) from None


def _parts_of(path: str, most: int) -> list[Part]:
    """Neighbouring row groups together, up to `most` rows."""
    with open_file(path) as file:
        sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    parts: list[Part] = []
    first = 0
    for k, rows in enumerate(sizes):
        if parts and parts[-1].rows + rows <= most:
            last = parts[-1]
            parts[-1] = Part(path, (*last.row_groups, k), last.first_row, last.rows + rows)
        else:
            parts.append(Part(path, (k,), first, rows))
        first += rows
    return [part for part in parts if part.rows]


def read_part(part: Part, columns: list[str] | None, size: int, use: Callable) -> Iterator:
    """use(record batch) of the given columns, or of all, for every `size` rows of a part.

    Errors name the file and the row from which their row numbers count.
    """
    for first, batch in _batches(part, columns, size):
        try:
            result = use(batch)
        except DataError as error:
            place = os.path.basename(part.path)
            counted = f", counting rows from its row {first}" if first else ""
            raise DataError(f"in {place}{counted}: {error}") from None
        yield result


def read_frames(parts, columns: list[str] | None, size: int, use: Callable, run: Callable) -> list:
    """use(frame) for every `size` rows of all parts, which `run` maps over."""
    found = run(partial(_read_frames, columns=columns, size=size, use=use), parts)
    return [each for batches in found for each in batches]


def _read_frames(part: Part, *, columns, size: int, use: Callable) -> list:
    return list(read_part(part, columns, size, lambda batch: use(frame_of(batch))))


def frame_of(batch) -> pd.DataFrame:
    """A record batch as pandas, its columns named by strings."""
    frame = as_pandas(batch.to_pandas())
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _batches(part: Part, columns: list[str] | None, size: int) -> Iterator:
    with open_file(part.path) as file:
        missing = [name for name in columns or () if name not in file.schema_arrow.names]
        if missing:
            raise DataError(f"{part.path!r} lacks the column {missing[0]!r}")
        first = part.first_row
        for batch in file.iter_batches(
            size, row_groups=list(part.row_groups), columns=columns, use_threads=False
        ):
            yield first, batch
            first += batch.num_rows
