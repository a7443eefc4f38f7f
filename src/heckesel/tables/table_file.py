"""Table files, by suffix, with their values as they were written.

Rows are counted from 0, as everywhere in heckesel; messages about CSV files add the line.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from heckesel.atomic_files import replacing
from heckesel.errors import DataError, HeckeselError, did_you_mean
from heckesel.tables.formats import databases, typed_files
from heckesel.tables.formats.compressed import COMPRESSIONS, packed, unpacked
from heckesel.tables.formats.csv_text import (
    DELIMITERS,
    csv_frame,
    csv_text,
    decoded,
    delimiter_of,
    has_decimal_commas,
)
from heckesel.tables.formats.names import full_names

CSV = (".csv", ".tsv")  # and compressed
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
DATABASES = (".sqlite", ".sqlite3", ".duckdb", ".db")
OUTPUTS = (*CSV, ".parquet", ".feather", ".xlsx", *DATABASES)
SUFFIXES = (*CSV, ".parquet", ".feather", *WORKBOOKS, *DATABASES)
STANDARD_INPUT = "-"


@dataclass(frozen=True)
class TableFile:
    """A table as it was read; every column of a CSV file is text.

    delimiter, decimal : of a CSV file, and so of predictions written beside it
    notes : detected properties other than the usual ones, as sentences
    unnamed : columns named by their position
    """

    frame: pd.DataFrame
    path: Path
    delimiter: str = ","
    decimal: str = "."
    is_csv: bool = True
    notes: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()

    def check(self, name: str, role: str = "column") -> None:
        """Refuse a name that is not a column; the error suggests the most similar one."""
        if name not in self.frame.columns:
            hint = did_you_mean(name, self.frame.columns)
            raise DataError(f"{self.path} lacks the {role} {name!r}{hint}")

    def where(self, row: int) -> str:
        row = int(self.frame.index[row])
        return f"row {row} (line {row + 2})" if self.is_csv else f"row {row}"


def suffixes_of(path, known: tuple[str, ...] = SUFFIXES) -> tuple[str, str]:
    """The suffix of the format, and that of the compression of a CSV file or an empty one."""
    inner, last = ("", "", *(suffix.lower() for suffix in Path(path).suffixes))[-2:]
    if last in known:
        return last, ""
    if last in COMPRESSIONS and inner in CSV:
        return inner, last
    *most, end = known
    raise DataError(
        f"{path} must end in {', '.join(most)} or {end}, which determines its format; CSV may be "
        f"compressed, such as .csv.gz ({', '.join(COMPRESSIONS)})"
    )


def read_table(
    path,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    table: str | None = None,
    query: str | None = None,
) -> TableFile:
    """The table in a file, or CSV from standard input if `path` is "-".

    delimiter, decimal, encoding : of CSV text; detected if not given
    table : of a database or workbook with several; query : SQL, for a database
    """
    if str(path) == STANDARD_INPUT:
        _refuse("standard input", "", table=table, query=query)
        raw = sys.stdin.buffer.read()
        return _read_csv(raw, Path("standard input"), delimiter, decimal, encoding)
    path = _existing(path)
    suffix, compression = suffixes_of(path)
    _refuse(path, suffix, table=table, query=query)
    try:
        if suffix in CSV:
            raw = unpacked(path.read_bytes(), path, compression)
            return _read_csv(raw, path, delimiter, decimal, encoding)
        frame = _typed(path, suffix, table, query)
    except OSError as error:
        raise HeckeselError(f"{path} cannot be read: {error.strerror or error}") from None
    if not len(frame):
        raise DataError(f"{path} has columns but no rows")
    return _named(TableFile(frame, path, is_csv=False))


def is_parquet(path) -> bool:
    return Path(path).suffix.lower() == ".parquet"


def parquet_blocks(path, rows: int, **options) -> Iterator[tuple[Any, TableFile]]:
    """A Parquet file with so many rows at once: as arrow has them, and as `read_table` would.

    options : as of `read_table`
    """
    path = _existing(path)
    _refuse(path, ".parquet", table=options.get("table"), query=options.get("query"))
    arrow, first = typed_files.pyarrow("Parquet files"), 0
    for block in typed_files.parquet_blocks(path, rows):
        frame = typed_files.as_frame(block, arrow)
        frame.index = pd.RangeIndex(first, first + len(frame))
        yield block, _named(TableFile(frame, path, is_csv=False))
        first += len(frame)
    if not first:
        raise DataError(f"{path} has columns but no rows")


def parquet_rows(path) -> int:
    return typed_files.parquet_rows(_existing(path))


def _existing(path) -> Path:
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path} is not a file" if path.exists() else f"there is no file {path}")
    return path


def _named(table: TableFile) -> TableFile:
    """The table with a name for every column."""
    given = [str(name).strip() for name in table.frame.columns]
    names = full_names(given, table.path)
    unnamed = tuple(name for name, had in zip(names, given, strict=True) if not had)
    notes = table.notes
    if unnamed:
        called = f"{' and '.join(map(repr, unnamed[:3]))}{', ...' * (len(unnamed) > 3)}"
        notes = (*notes, f"{table.path} has columns without a name, which are called {called}")
    frame = table.frame.set_axis(names, axis=1)
    return replace(table, frame=frame, notes=notes, unnamed=unnamed)


def _refuse(path, suffix: str, *, table: str | None, query: str | None) -> None:
    if query is not None and suffix not in DATABASES:
        raise DataError(f"--query needs a database, but {path} is not one")
    if table is not None and suffix not in (*DATABASES, *WORKBOOKS):
        raise DataError(f"--table needs a database or a workbook, but {path} is neither")


def _typed(path: Path, suffix: str, table: str | None, query: str | None) -> pd.DataFrame:
    if suffix in WORKBOOKS:
        return typed_files.read_excel(path, table)
    if suffix in DATABASES:
        return databases.read_database(path, table, query)
    return typed_files.read_arrow(path, suffix[1:].capitalize())


def _read_csv(raw: bytes, path: Path, delimiter, decimal, encoding) -> TableFile:
    if decimal not in (".", ",", None):
        raise DataError(f"--decimal must be '.' or ',', got {decimal!r}")
    text, found = decoded(raw, path, encoding)
    notes = []
    if encoding is None and found not in ("utf-8", "utf-8-sig"):
        notes.append(
            f"{path} is not UTF-8; it was read as {found} (if letters are wrong, set --encoding)"
        )
    if delimiter is None:
        delimiter = delimiter_of(text, path)
        if delimiter != ("\t" if ".tsv" in path.suffixes else ","):
            notes.append(f"the columns of {path} are separated by {DELIMITERS[delimiter]}")
    frame = csv_frame(text, path, delimiter)
    if decimal is None:
        decimal = "," if delimiter != "," and has_decimal_commas(frame) else "."
        if decimal == ",":
            notes.append(
                f"numbers in {path} are read with decimal commas (otherwise set --decimal .)"
            )
    return _named(TableFile(frame, path, delimiter, decimal, notes=tuple(notes)))


def check_table_output(path) -> None:
    """Refuse an unknown suffix, a format that cannot be written here, and a database that
    exists: other tables would be lost."""
    suffix, compression = suffixes_of(path, OUTPUTS)
    if suffix in DATABASES and Path(path).exists():
        raise DataError(f"{path} exists, and only a new database is written; name another file")
    if suffix == ".xlsx":
        typed_files.xlsxwriter()
    elif suffix == ".duckdb":
        databases.duckdb_package()
    elif suffix in (".parquet", ".feather") or compression == ".zst":
        typed_files.pyarrow(f"{compression or suffix} files")


def as_csv(frame: pd.DataFrame, like: TableFile) -> str:
    return csv_text(frame, delimiter=like.delimiter, decimal=like.decimal)


def write_table(path, frame: pd.DataFrame, like: TableFile) -> None:
    """`frame` in the format of the suffix, CSV as `like` was written: there whole or not at all."""
    suffix, compression = suffixes_of(path, OUTPUTS)
    with replacing(path) as scratch:
        match suffix:
            case ".csv" | ".tsv":
                tabs = replace(like, delimiter="\t") if suffix == ".tsv" else like
                raw = as_csv(frame, tabs).encode()
                scratch.write_bytes(packed(raw, path, compression))
            case ".xlsx":
                scratch.write_bytes(typed_files.excel_bytes(frame, path))
            case ".feather":
                frame.reset_index(drop=True).to_feather(scratch)
            case ".parquet":
                frame.to_parquet(scratch, engine="pyarrow", index=False)
            case _:
                scratch.write_bytes(databases.database_bytes(frame, path, suffix))
