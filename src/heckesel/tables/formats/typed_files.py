"""Files whose columns have types: Parquet, Feather and Excel workbooks."""

import io
from pathlib import Path

import pandas as pd

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
    try:
        if what == "Parquet":
            from pyarrow.parquet import ParquetFile

            return _as_frame(ParquetFile(path).read(), arrow)
        from pyarrow.feather import read_table

        return _as_frame(read_table(path), arrow)
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(f"{path} cannot be read as {what}: {reason}") from None


def _as_frame(table, arrow) -> pd.DataFrame:
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
