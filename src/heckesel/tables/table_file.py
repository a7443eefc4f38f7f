"""Table files, CSV or Parquet by suffix, with their values as they were written.

Rows are counted from 0, as everywhere in heckesel; messages about CSV files add the line.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pandas as pd

from heckesel.atomic_files import replacing
from heckesel.errors import DataError, HeckeselError, did_you_mean

SUFFIXES = (".csv", ".parquet")
DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
DETECTED_FROM = 20  # lines


@dataclass(frozen=True)
class TableFile:
    """A table as it was read; every column of a CSV file is text.

    delimiter, decimal : of a CSV file, and so of predictions written beside it
    """

    frame: pd.DataFrame
    path: Path
    delimiter: str = ","
    decimal: str = "."

    @property
    def is_csv(self) -> bool:
        return suffix_of(self.path) == ".csv"

    def check(self, name: str, role: str = "column") -> None:
        """Refuse a name that is no column, with the nearest one."""
        if name not in self.frame.columns:
            hint = did_you_mean(name, self.frame.columns)
            raise DataError(f"{self.path} lacks the {role} {name!r}{hint}")

    def where(self, row: int) -> str:
        return f"row {row} (line {row + 2})" if self.is_csv else f"row {row}"


def suffix_of(path) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"{path} must end in {' or '.join(SUFFIXES)}, which says what it is")
    return suffix


def read_table(path, *, delimiter: str | None = None, decimal: str = ".") -> TableFile:
    """The table in `path`; a CSV file says by itself what separates its columns, or is told."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path} is no file" if path.exists() else f"there is no file {path}")
    if suffix_of(path) == ".parquet":
        return TableFile(_parquet(path), path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text; save it as CSV in UTF-8") from None
    except OSError as error:
        raise HeckeselError(f"{path} cannot be read: {error.strerror}") from None
    if "\0" in text:
        raise DataError(f"{path} holds bytes that no text has; save it as CSV in UTF-8")
    if not text.strip():
        raise DataError(f"{path} is empty")
    if decimal not in (".", ","):
        raise DataError(f"--decimal must be '.' or ',', got {decimal!r}")
    delimiter = _delimiter(text, path) if delimiter is None else delimiter
    if len(delimiter) != 1 or delimiter in '"\r\n ':
        raise DataError(
            f"--delimiter must be one character, and no quote, space or line break; got "
            f"{delimiter!r}"
        )
    return TableFile(_csv(text, path, delimiter), path, delimiter, decimal)


def _pyarrow():
    try:
        import pyarrow
    except ImportError:
        raise HeckeselError(
            "Parquet files need the scale extra: pip install 'heckesel[scale]'"
        ) from None
    return pyarrow


def _parquet(path: Path) -> pd.DataFrame:
    arrow = _pyarrow()
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(f"{path} cannot be read as Parquet: {reason}") from None
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    _check_names(list(frame.columns), path)
    if not len(frame):
        raise DataError(f"{path} has columns but no rows")
    return frame


def _csv(text: str, path: Path, delimiter: str) -> pd.DataFrame:
    names = _checked_fields(text, path, delimiter)
    try:
        frame = pd.read_csv(
            io.StringIO(text, newline=""),
            sep=delimiter,
            dtype=object,
            keep_default_na=False,
            index_col=False,
        )
    except (pd.errors.ParserError, ValueError) as error:
        reason = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
        raise DataError(f"{path} cannot be read as CSV: {reason}") from None
    if not len(frame):
        raise DataError(f"{path} has a header but no rows")
    return frame.set_axis(names, axis=1)


def _checked_fields(text: str, path: Path, delimiter: str) -> list[str]:
    """The names of the columns, after a look at whether every line has a field for each; pandas
    would fill short lines without a word."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    names: list[str] = []
    try:
        for fields in reader:
            if fields and not names:
                names = [name.strip() for name in fields]
                _check_names(names, path)
            elif fields and len(fields) != len(names):
                raise DataError(
                    f"line {reader.line_num} of {path} has {len(fields)} fields, and the header "
                    f"has {len(names)}"
                )
    except csv.Error as error:
        raise DataError(f"line {reader.line_num} of {path} is no CSV: {error}") from None
    return names


def _check_names(names: Sequence[str], path) -> None:
    for position, name in enumerate(names):
        if not name:
            raise DataError(
                f"column {position + 1} of {path} has no name; give it one, or leave row labels "
                "out when the file is written"
            )
        if name in names[:position]:
            raise DataError(f"the column name {name!r} appears twice in {path}; rename one")


def _delimiter(text: str, path) -> str:
    """The one character of DELIMITERS that cuts every one of the first lines alike."""
    lines = text.lstrip("\r\n").split("\n")[:DETECTED_FROM]
    lines = [line for line in lines if line.strip()]
    unquoted = re.sub(r'"[^"]*"', "", lines[0])
    inside = [each for each in DELIMITERS if each in unquoted]
    if len(inside) < 2:
        return inside[0] if inside else ","
    alike = []
    for each in inside:
        try:
            counts = {len(row) for row in csv.reader(lines, delimiter=each)}
        except csv.Error:  # no CSV under this one
            continue
        if len(counts) == 1:
            alike.append(each)
    if len(alike) != 1:
        options = " or ".join(DELIMITERS[each] for each in inside)
        raise DataError(f"{path} may be separated by {options}; say which with --delimiter")
    return alike[0]


def check_table_output(path) -> None:
    """Refuse a suffix that says nothing, and Parquet where it cannot be written."""
    if suffix_of(path) == ".parquet":
        _pyarrow()


def as_csv(frame: pd.DataFrame, like: TableFile) -> str:
    """A field with a line break of any kind is quoted. Before Python 3.13 csv does so only for the
    characters that end its lines: they are written as CRLF, one at a time, and cut to LF."""
    text = io.StringIO(newline="")
    rows = SimpleNamespace(write=lambda row: text.write(row.removesuffix("\r\n") + "\n"))
    frame.to_csv(
        rows,  # type: ignore[call-overload]
        index=False,
        sep=like.delimiter,
        decimal=like.decimal,
        lineterminator="\r\n",
    )
    return text.getvalue()


def write_table(path, frame: pd.DataFrame, like: TableFile) -> None:
    """`frame` as CSV, written as `like` was, or as Parquet: there whole or not at all."""
    with replacing(path) as scratch:
        if suffix_of(path) == ".csv":
            scratch.write_text(as_csv(frame, like), encoding="utf-8", newline="")
        else:
            frame.to_parquet(scratch, engine="pyarrow", index=False)
