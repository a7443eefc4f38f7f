"""Files whose columns have types: Parquet, Feather and Excel workbooks."""

import io
from pathlib import Path

import pandas as pd

from heckesel.errors import DataError, imported
from heckesel.tables.formats.names import chosen
from heckesel.tables.formats.written import as_written

# Text that looks like a formula or a link stays text.
EXCEL_TEXT = {"options": {"strings_to_formulas": False, "strings_to_urls": False}}


def pyarrow(what: str):
    return imported("pyarrow", f"{what} files need the files extra", "files")


def xlsxwriter():
    return imported("xlsxwriter", "writing Excel files needs the files extra", "files")


def read_arrow(path: Path, what: str) -> pd.DataFrame:
    """A Parquet or Feather file; what : which of them, as messages call it"""
    arrow = pyarrow(what)
    try:
        if what == "Parquet":
            return pd.read_parquet(path, engine="pyarrow")
        return pd.read_feather(path)
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(f"{path} cannot be read as {what}: {reason}") from None


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
    found = [as_written([None if v == "" else v for v in column]) for column in columns]
    names = [str(name).strip() for name in header]
    return pd.concat(found, axis=1).set_axis(names, axis=1)


def excel_bytes(frame: pd.DataFrame, path) -> bytes:
    xlsxwriter()
    content = io.BytesIO()
    try:
        with pd.ExcelWriter(content, engine="xlsxwriter", engine_kwargs=EXCEL_TEXT) as writer:
            frame.to_excel(writer, index=False)
    except ValueError as error:  # more rows than a sheet has, or times with a zone
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(f"{path} cannot hold this table: {reason}; write CSV or Parquet") from None
    return content.getvalue()
