"""Table files by suffix: CSV (compressed as pandas does), Parquet and Excel workbooks.

Values are kept as they were written; `TableFile.columns` and `TableFile.outcome` read them. Rows
are counted from 0, as everywhere in heckesel; messages about CSV files add the line.
"""

import csv
import io
import lzma
import re
import shlex
import sys
import zipfile
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from pandas.io.common import get_handle

from heckesel.errors import DataError, HeckeselError, did_you_mean, imported
from heckesel.io import replacing
from heckesel.tables.frames import numbers_of
from heckesel.tables.values import (
    MOST_GAP_WORDS,
    first_code,
    is_text,
    numbers_in,
    parsed,
    stripped,
    with_points,
)

CSV = (".csv", ".tsv")
METHODS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zip": "zip"}
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
OUTPUTS = (*CSV, ".parquet", ".xlsx")
DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
DECIMALS_FROM = 1000  # rows
YES_NO = {"true": "1", "false": "0", "yes": "1", "no": "0"}
DAMAGED = (OSError, EOFError, ValueError, ImportError, zlib.error, lzma.LZMAError)
# Text that looks like a formula or a link stays text.
EXCEL_TEXT = {"options": {"strings_to_formulas": False, "strings_to_urls": False}}


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

    def without_empty_rows(self) -> "TableFile":
        """The table without rows in which no column has a value, which a note counts."""
        empty = np.ones(len(self.frame), dtype=bool)
        for _, column in self.frame.items():
            some = column[empty]
            empty[empty] = stripped(some)[1] if is_text(column) else some.isna().to_numpy()
            if not empty.any():
                break
        if not empty.any() or empty.all():
            return self
        said = f"{int(empty.sum()):,} rows of {self.path} have no value in any column and are "
        return replace(self, frame=self.frame[~empty], notes=(*self.notes, f"{said}ignored"))

    def without_values(self, name: str, values: list[str]) -> "TableFile":
        """The table with these values of a column set to missing; 0 is also 0.0 and 00."""
        self.check(name, "outcome")
        column = self.frame[name]
        strings = stripped(column)[0] if is_text(column) else column.astype(object).map(str)
        numbers = parsed(with_points(strings, self.decimal))
        hidden = np.zeros(len(column), dtype=bool)
        for value in values:
            number = parsed(with_points(pd.Series([value]), self.decimal))[0]
            found = (strings == value).to_numpy() | (numbers == number)
            if not found.any():
                raise DataError(
                    f"--unobserved {value}: column {name!r} has this value in no row of {self.path}"
                )
            hidden |= found
        known = column.where(~hidden, "") if is_text(column) else column.mask(hidden)
        return replace(self, frame=self.frame.assign(**{name: known}))

    def columns(self, names: Iterable[str], *, categories: Container[str] = ()) -> pd.DataFrame:
        """Columns as numbers where all values are, else as strings; those with values such as 007
        are strings, too.

        categories : columns of codes, whatever their values
        """
        found = {}
        for name in names:
            self.check(name)
            column = self._column(name)
            found[name] = column.astype("category") if name in categories else column
        return pd.DataFrame(found, self.frame.index)

    def _column(self, name: str, *, whole: bool = False) -> pd.Series:
        """whole : whether whole numbers stay whole; as floats they lose digits from 2**53 on"""
        column = self.frame[name]
        if not is_text(column):
            return column
        values, absent = stripped(column)
        values = with_points(values, self.decimal).astype(object).where(~absent, None)
        if absent.all() or first_code(values) is not None:
            return values
        try:
            if whole:
                return pd.to_numeric(values, dtype_backend="numpy_nullable")
            return pd.to_numeric(values)
        except (ValueError, TypeError):
            return values

    def numbers(self, name: str, role: str) -> pd.Series:
        """A column that must hold numbers, missing ones NaN; true and yes are 1, false and no 0,
        and $1,200.00 and 95% are numbers."""
        self.check(name, role)
        column = self.frame[name]
        if not is_text(column):
            return pd.Series(numbers_of(column, name), column.index, name=name)
        values, absent = stripped(column)
        values = with_points(values, self.decimal)
        if role != "outcome" or set(values[~absent].str.lower()) <= {"true", "false"}:
            values = values.map(lambda value: YES_NO.get(value.lower(), value))
        numbers, bad = numbers_in(values.where(~absent, None))
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            value, hint = column.iloc[row].strip(), ""
            few = values[bad].nunique() <= MOST_GAP_WORDS
            if role == "outcome" and few and not re.search(r"\d", value):
                hint = f"; if it means a missing outcome, add --unobserved {shlex.quote(value)}"
            if self.decimal == "." and re.fullmatch(r"[+-]?\d+,\d+", value):
                hint = "; for decimal commas give --decimal ,"
            raise DataError(
                f"column {name!r} of {self.path} should hold numbers but {self.where(row)} has "
                f"{value[:57] + '...' * (len(value) > 57)!r}{hint}"
            )
        return pd.Series(numbers, column.index, name=name)

    def outcome(
        self, name: str, kind: str, selected: pd.Series | None
    ) -> tuple[pd.Series, tuple | None]:
        """Numbers and None, or labels (None where missing) and the two classes in order.

        There are two classes if the selected rows have two strings that are not numbers (yes and
        no), two booleans, or the numbers 0 and 1 and no other. Everything else is a number, unless
        `kind` says otherwise.
        """
        self.check(name, "outcome")
        if kind == "regression":
            return self.numbers(name, "outcome"), None
        column = self._column(name)
        numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        if numeric:
            if (column.dropna() % 1 == 0).all():  # inf % 1 is NaN
                column = column.astype("Int64")
        elif not (is_text(column) or _holds(column, str | bool | np.bool_)):
            self.numbers(name, "outcome")  # raises for dates and records
        labels = column.astype(object).where(column.notna(), None)
        seen = labels.notna() if selected is None else labels.notna() & (selected == 1.0)
        found = list(dict.fromkeys(labels[seen]))
        if kind == "auto":
            words = pd.Series([each for each in found if isinstance(each, str)], dtype=object)
            two = set(found) == {0, 1} if numeric else len(found) == 2
            if not two or np.isfinite(parsed(words)).any():
                return self.numbers(name, "outcome"), None
        return labels.rename(name), tuple(sorted(found))

    def typed(self) -> pd.DataFrame:
        """The frame with columns of numerals as numbers, for a format that has types."""
        return pd.DataFrame({name: self._column(name, whole=True) for name in self.frame.columns})


def _holds(column: pd.Series, kinds) -> bool:
    return all(isinstance(value, kinds) for value in column.dropna())


def suffixes_of(path, known: tuple[str, ...] | None = None) -> tuple[str, str]:
    """The suffix of the format, and that of the compression of a CSV file or an empty one."""
    known = known or (*CSV, ".parquet", *WORKBOOKS)
    inner, last = ("", "", *(suffix.lower() for suffix in Path(path).suffixes))[-2:]
    if last in known:
        return last, ""
    if last in METHODS and inner in CSV:
        return inner, last
    *most, end = known
    raise DataError(
        f"{path} must end in {', '.join(most)} or {end}, which determines its format; CSV may be "
        f"compressed, such as .csv.gz ({', '.join(METHODS)})"
    )


@contextmanager
def _readable(path, what: str) -> Iterator[None]:
    """Errors of readers as one sentence."""
    try:
        yield
    except HeckeselError:
        raise
    except UnicodeError:
        raise DataError(f"{path} is not {what} text; set its --encoding") from None
    except (*DAMAGED, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        reason = reason.removeprefix("Error tokenizing data. C error: ").rstrip(".")
        raise DataError(f"{path} cannot be read as {what}: {reason}") from None
    except Exception as error:  # of packages that need not be installed
        if type(error).__module__.split(".")[0] not in ("pyarrow", "python_calamine"):
            raise
        reason = " ".join(str(error).split())
        raise DataError(f"{path} cannot be read as {what}: {reason}") from None


def read_table(
    path,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> TableFile:
    """The table in a file, or CSV from standard input if `path` is "-".

    delimiter, decimal : of CSV text; detected if not given
    encoding : of CSV text; UTF-8 if not given
    sheet : of a workbook with several
    """
    standard_input = str(path) == "-"
    path = Path("standard input") if standard_input else _existing(path)
    suffix, compression = (".csv", "") if standard_input else suffixes_of(path)
    if sheet is not None and suffix not in WORKBOOKS:
        raise DataError(f"--sheet needs a workbook, but {path} is not one")
    if suffix in CSV:
        source = io.BytesIO(sys.stdin.buffer.read()) if standard_input else path
        text = _text(source, path, encoding or "utf-8-sig", compression)
        return _csv(text, path, delimiter, decimal)
    if suffix == ".parquet":
        arrow = pyarrow()
        with _readable(path, "Parquet"):
            frame = _of_arrow(arrow.parquet.read_table(path), arrow)
    else:
        frame = _workbook(path, sheet)
    if not len(frame):
        raise DataError(f"{path} has columns but no rows")
    return _named(TableFile(frame, path, is_csv=False))


def _existing(path) -> Path:
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path} is not a file" if path.exists() else f"there is no file {path}")
    return path


def _text(source, path, encoding: str, compression: str) -> str:
    try:
        with (
            _readable(path, encoding.removesuffix("-sig").upper()),
            get_handle(
                source, "r", encoding=encoding, compression=METHODS.get(compression)
            ) as opened,
        ):
            text = opened.handle.read()
    except LookupError:
        raise DataError(
            f"--encoding must be the name of an encoding, such as utf-8 or cp1252, got {encoding!r}"
        ) from None
    if "\0" in text:
        raise DataError(f"{path} contains zero bytes, so it is not text; set its --encoding")
    if not text.strip():
        raise DataError(f"{path} is empty")
    return text


def _csv(text: str, path: Path, delimiter: str | None, decimal: str | None) -> TableFile:
    if decimal not in (".", ",", None):
        raise DataError(f"--decimal must be '.' or ',', got {decimal!r}")
    notes = []
    if delimiter is None:  # the one that cuts the header into most names
        header = re.sub(r'"[^"]*"', "", text.lstrip().split("\n", 1)[0])
        delimiter = max(DELIMITERS, key=header.count)
        if delimiter != ("\t" if ".tsv" in path.suffixes else ",") and delimiter in header:
            notes.append(f"the columns of {path} are separated by {DELIMITERS[delimiter]}")
    delimiter = "\t" if delimiter == "\\t" else delimiter  # as it is typed in a shell
    if len(delimiter) != 1 or delimiter in '"\r\n ':
        raise DataError(
            f"--delimiter must be one character other than a quote, space or line break; got "
            f"{delimiter!r}"
        )
    frame = _plain_rows(text, delimiter)
    if frame is None:
        frame = _checked_rows(text, path, delimiter)
    if decimal is None:
        decimal = "," if delimiter != "," and _has_decimal_commas(frame) else "."
        if decimal == ",":
            notes.append(
                f"numbers in {path} are read with decimal commas (otherwise set --decimal .)"
            )
    return _named(TableFile(frame, path, delimiter, decimal, notes=tuple(notes)))


def _plain_rows(text: str, delimiter: str) -> pd.DataFrame | None:
    """The rows of text without quotes that all have as many fields as the header; else None."""
    if '"' in text:
        return None
    options: Any = {"sep": delimiter, "header": None, "dtype": object, "na_filter": False}
    try:
        rows = pd.read_csv(io.StringIO(text), quoting=csv.QUOTE_NONE, **options)
    except ValueError:  # a row is too long
        return None
    if len(rows) < 2 or text.count(delimiter) != len(rows) * (rows.shape[1] - 1):
        return None
    return rows[1:].set_axis(list(rows.iloc[0]), axis=1).reset_index(drop=True)


def _checked_rows(text: str, path: Path, delimiter: str) -> pd.DataFrame:
    """The rows of any text; an error names the line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[list[str]] = []
    try:
        for row in reader:
            if row and rows and len(row) != len(rows[0]):  # pandas fills short ones with nothing
                raise DataError(
                    f"line {reader.line_num} of {path} has {len(row)} fields, but the header has "
                    f"{len(rows[0])}"
                )
            rows += [row] if row else []
    except csv.Error as error:
        raise DataError(f"line {reader.line_num} of {path} is not valid CSV: {error}") from None
    if "\n" in rows[-1][-1] and text.count('"') % 2:
        raise DataError(f"{path} is not valid CSV: a quote is not closed")
    names, *rows = rows
    if not rows:
        raise DataError(f"{path} has a header but no rows")
    return pd.DataFrame(rows, columns=names, dtype=object)


def _has_decimal_commas(frame: pd.DataFrame) -> bool:
    """Whether the first rows have numbers such as 1,5 and none such as 1.5."""
    values = pd.Series(frame.head(DECIMALS_FROM).to_numpy().ravel()).str.strip()
    commas = values.str.fullmatch(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+")
    points = values.str.fullmatch(r"[+-]?\d*\.\d+")
    thousands = values.str.fullmatch(r"[+-]?[1-9]\d{0,2}\.\d{3}")
    return bool(commas.any() and not (points & ~thousands).any())


def _workbook(path: Path, sheet: str | None) -> pd.DataFrame:
    imported("python_calamine", "Excel files need the excel extra", "excel")
    with _readable(path, "an Excel workbook"):
        every = pd.read_excel(path, sheet_name=None, engine="calamine")
    names = [name for name, each in every.items() if each.shape[1]]
    if sheet is not None and sheet not in names:
        hint = did_you_mean(sheet, names) or f"; it has {', '.join(names)}"
        raise DataError(f"{path} has no sheet {sheet!r}{hint}")
    if sheet is None and len(names) != 1:
        held = f"{len(names)} sheets ({', '.join(names)})" if names else "no sheet with values"
        raise DataError(f"{path} has {held}" + "; choose one with --sheet" * bool(names))
    frame = every[names[0] if sheet is None else sheet].dropna(how="all", ignore_index=True)
    unnamed = {name: "" for name in frame.columns if re.fullmatch(r"Unnamed: \d+", str(name))}
    return frame.rename(columns=unnamed)


def _named(table: TableFile) -> TableFile:
    """The table with a name for every column: `column 4` for a fourth one without."""
    given = [str(name).strip() for name in table.frame.columns]
    names = [name or f"column {place}" for place, name in enumerate(given, 1)]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"the column name {repeated!r} appears twice in {table.path}; rename one")
    unnamed = tuple(name for name, had in zip(names, given, strict=True) if not had)
    notes = table.notes
    if unnamed:
        called = f"{' and '.join(map(repr, unnamed[:3]))}{', ...' * (len(unnamed) > 3)}"
        notes = (*notes, f"{table.path} has columns without a name, which are called {called}")
    frame = table.frame.set_axis(names, axis=1)
    return replace(table, frame=frame, notes=notes, unnamed=unnamed)


def pyarrow():
    """pyarrow with its `parquet`."""
    imported("pyarrow.parquet", "Parquet files need the scale extra", "scale")
    return imported("pyarrow", "Parquet files need the scale extra", "scale")


def _of_arrow(table, arrow) -> pd.DataFrame:
    """With the index that pandas wrote as columns, if it has names. Whole numbers stay whole where
    some are missing; as floats they would lose digits from 2**53 on."""
    kinds = {
        getattr(arrow, name)(): getattr(pd, f"{name.replace('i', 'I').replace('u', 'U')}Dtype")()
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    }
    whole = [
        place
        for place, field in enumerate(table.schema)
        if field.type in kinds and table.column(place).null_count
    ]
    frame = table.to_pandas()
    named = [name for name in frame.index.names if name is not None]
    frame = frame.reset_index(named).reset_index(drop=True)
    for place in whole:
        name = table.schema[place].name
        if name in frame:
            frame[name] = table.column(place).to_pandas(types_mapper=kinds.get)
    return frame


def is_parquet(path) -> bool:
    return Path(path).suffix.lower() == ".parquet"


def parquet_rows(path) -> int:
    with _readable(path, "Parquet"):
        return pyarrow().parquet.read_metadata(_existing(path)).num_rows


def parquet_blocks(path, rows: int) -> Iterator[tuple[Any, TableFile]]:
    """A Parquet file with so many rows at once: as arrow has them, and as `read_table` would."""
    path, arrow, first = _existing(path), pyarrow(), 0
    with _readable(path, "Parquet"):
        file = arrow.parquet.ParquetFile(path)
        for batch in file.iter_batches(rows):
            block = arrow.Table.from_batches([batch])
            frame = _of_arrow(block, arrow)
            frame.index = pd.RangeIndex(first, first + len(frame))
            yield block, _named(TableFile(frame, path, is_csv=False))
            first += len(frame)
    if not first:
        raise DataError(f"{path} has columns but no rows")


@contextmanager
def parquet_output(path) -> Iterator[Callable]:
    """Writes arrow tables with further columns one after another: the file is there whole, or not
    at all. The types of the first table hold for all."""
    arrow, writer = pyarrow(), None

    def write(table, added: dict) -> None:
        nonlocal writer
        for name, values in added.items():
            column = arrow.array(values, from_pandas=True)
            if column.type == arrow.null():  # later rows may have text
                column = column.cast(arrow.string())
            table = table.append_column(name, column)
        writer = writer or arrow.parquet.ParquetWriter(scratch, table.schema)
        writer.write_table(table.cast(writer.schema))

    with replacing(path) as scratch:
        try:
            yield write
        finally:
            if writer is not None:
                writer.close()


def check_table_output(path) -> None:
    """Refuse an unknown suffix, and a format that cannot be written here."""
    suffix, _ = suffixes_of(path, OUTPUTS)
    if suffix == ".xlsx":
        imported("xlsxwriter", "writing Excel files needs the excel extra", "excel")
    elif suffix == ".parquet":
        pyarrow()


def as_csv(frame: pd.DataFrame, like: TableFile) -> str:
    """A field with a line break of any kind is quoted. Before Python 3.13 csv does so only for the
    characters that end its lines: they are written as CRLF, one at a time, and cut to LF."""
    text = io.StringIO(newline="")
    rows: Any = SimpleNamespace(write=lambda row: text.write(row.removesuffix("\r\n") + "\n"))
    frame.to_csv(rows, index=False, sep=like.delimiter, decimal=like.decimal, lineterminator="\r\n")
    return text.getvalue()


def write_table(path, table: TableFile) -> None:
    """A table in the format of the suffix, CSV as it was read: there whole or not at all."""
    suffix, compression = suffixes_of(path, OUTPUTS)
    with replacing(path) as scratch:
        if suffix == ".parquet":
            table.typed().to_parquet(scratch, engine="pyarrow", index=False)
        elif suffix == ".xlsx":
            try:
                content = io.BytesIO()
                with pd.ExcelWriter(content, "xlsxwriter", engine_kwargs=EXCEL_TEXT) as writer:
                    table.typed().to_excel(writer, index=False)
                scratch.write_bytes(content.getvalue())
            except ValueError as error:  # more rows than a sheet has, or times with a zone
                reason = str(error).splitlines()[0].rstrip(".")
                raise DataError(
                    f"{path} cannot hold this table: {reason}; write CSV or Parquet"
                ) from None
        else:
            how: Any = {"method": METHODS.get(compression)}
            how |= {".gz": {"mtime": 0}, ".zip": {"archive_name": Path(path).stem}}.get(
                compression, {}
            )
            tabs = replace(table, delimiter="\t") if suffix == ".tsv" else table
            content = io.BytesIO()
            with get_handle(
                content, "w", encoding="utf-8", compression=how if compression else None
            ) as opened:
                opened.handle.write(as_csv(table.frame, tabs))
            scratch.write_bytes(content.getvalue())
