"""Files whose columns have types: Parquet, Feather and Excel workbooks."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from heckesel.atomic_files import replacing
from heckesel.errors import DataError, imported
from heckesel.tables.formats.names import chosen
from heckesel.tables.formats.written import as_written

LARGEST_WHOLE = 2**53  # up to which every whole number is a float
# Text that looks like a formula or a link stays text.
EXCEL_TEXT = {"options": {"strings_to_formulas": False, "strings_to_urls": False}}


def pyarrow(what: str):
    return imported("pyarrow", f"{what} need the files extra", "files")


def xlsxwriter():
    return imported("xlsxwriter", "writing Excel files needs the files extra", "files")


def read_arrow(path: Path, what: str) -> pd.DataFrame:
    """A Parquet or Feather file; what : which of them, as messages call it"""
    arrow = pyarrow(f"{what} files")
    with _readable(path, what):
        if what == "Parquet":
            from pyarrow.parquet import ParquetFile

            return as_frame(ParquetFile(path).read(), arrow)
        from pyarrow.feather import read_table

        return as_frame(read_table(path), arrow)


@contextmanager
def _readable(path: Path, what: str) -> Iterator[None]:
    arrow = pyarrow(f"{what} files")
    try:
        yield
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(f"{path} cannot be read as {what}: {reason}") from None


def parquet_rows(path: Path) -> int:
    pyarrow("Parquet files")
    with _readable(path, "Parquet"):
        from pyarrow.parquet import read_metadata

        return read_metadata(path).num_rows


def parquet_blocks(path: Path, rows: int) -> Iterator:
    """The arrow tables of a Parquet file, with so many rows each."""
    arrow = pyarrow("Parquet files")
    with _readable(path, "Parquet"):
        from pyarrow.parquet import ParquetFile

        file = ParquetFile(path)
        batches = file.iter_batches(rows)
    while True:
        with _readable(path, "Parquet"):
            batch = next(batches, None)
        if batch is None:
            return
        yield arrow.Table.from_batches([batch])


@contextmanager
def parquet_output(path) -> Iterator[Callable]:
    """Writes arrow tables with further columns one after another: the file is there whole, or not
    at all. The types of the first table hold for all."""
    arrow, writer = pyarrow("Parquet files"), None
    from pyarrow.parquet import ParquetWriter

    def write(table, added: dict) -> None:
        nonlocal writer
        for name, values in added.items():
            column = arrow.array(values, from_pandas=True)
            if column.type == arrow.null():  # later rows may have text
                column = column.cast(arrow.string())
            table = table.append_column(name, column)
        writer = writer or ParquetWriter(scratch, table.schema)
        writer.write_table(table.cast(writer.schema))

    with replacing(path) as scratch:
        try:
            yield write
        finally:
            if writer is not None:
                writer.close()


def as_frame(table, arrow) -> pd.DataFrame:
    """With the index that pandas wrote as columns, if it has names. Whole numbers stay whole where
    some are missing; as floats they would lose digits from 2**53 on."""
    frame = table.to_pandas()
    named = [name for name in frame.index.names if name is not None]
    frame = frame.reset_index(named).reset_index(drop=True)
    for place, field in enumerate(table.schema):
        column = table.column(place)
        if arrow.types.is_integer(field.type) and column.null_count and field.name in frame:
            unsigned = arrow.types.is_unsigned_integer(field.type)
            whole = pd.UInt64Dtype() if unsigned else pd.Int64Dtype()
            frame[field.name] = column.to_pandas(types_mapper={field.type: whole}.get)
    return frame


def read_excel(path: Path, sheet: str | None) -> pd.DataFrame:
    """A sheet of a workbook, whose first row names the columns; rows without a value are none."""
    calamine = imported("python_calamine", "Excel files need the files extra", "files")
    try:
        book = calamine.load_workbook(str(path))
        sheets = {name: book.get_sheet_by_name(name) for name in book.sheet_names}
        filled = [name for name, each in sheets.items() if each.total_height]
        name = chosen(sheet, filled, path, "sheet")
        lines = sheets[name].to_python()
    except (calamine.CalamineError, OSError) as error:
        raise DataError(f"{path} cannot be read as an Excel workbook: {error}") from None
    header, *rows = lines
    rows = [row for row in rows if any(value != "" for value in row)]
    columns = zip(*rows, strict=True) if rows else [[] for _ in header]
    found = [as_written([_value(value) for value in column]) for column in columns]
    names = [str(name).strip() for name in header]
    return pd.concat(found, axis=1).set_axis(names, axis=1)


def _value(value):
    """A value of a workbook, in which every number is a float."""
    if value == "":
        return None
    whole = isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_WHOLE
    return int(value) if whole else value


def excel_bytes(frame: pd.DataFrame, path) -> bytes:
    xlsxwriter()
    content = io.BytesIO()
    try:
        with pd.ExcelWriter(content, engine="xlsxwriter", engine_kwargs=EXCEL_TEXT) as writer:
            frame.apply(_for_floats).to_excel(writer, index=False)
    except ValueError as error:  # more rows than a sheet has, or times with a zone
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(f"{path} cannot hold this table: {reason}; write CSV or Parquet") from None
    return content.getvalue()


def _for_floats(column: pd.Series) -> pd.Series:
    """Whole numbers as text if workbooks, in which every number is a float, would change them."""
    whole = pd.api.types.is_integer_dtype(column)
    if not whole or not (column.max() > LARGEST_WHOLE or column.min() < -LARGEST_WHOLE):
        return column
    return column.astype(object).map(str, na_action="ignore")
