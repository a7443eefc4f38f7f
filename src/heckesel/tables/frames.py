"""Frames of any library as pandas, with unique column names."""

import narwhals.stable.v1 as nw
import pandas as pd

from heckesel.data import numeric
from heckesel.errors import DataError


def as_pandas(data, name="data") -> pd.DataFrame:
    """Any frame that narwhals supports, or a mapping of columns, as pandas."""
    if isinstance(data, pd.DataFrame):
        frame = data
    elif isinstance(data, dict):
        try:
            frame = pd.DataFrame(data)
        except ValueError as error:
            raise DataError(
                f"{name} cannot be read as a table: {error}; pass each column as a list"
            ) from None
    else:
        try:
            frame = nw.from_native(data, eager_only=True).to_pandas()
        except TypeError:
            raise DataError(
                f"{name} must be a pandas or polars frame or a dict of columns, "
                f"not {type(data).__name__}"
            ) from None
    names = frame.columns.map(str)  # which 1 and "1" share
    repeated = names[names.duplicated()]
    if len(repeated):
        raise DataError(f"the column name {repeated[0]!r} appears twice in {name}; rename one")
    # text with pandas' own missing value trips formulaic; plain objects do not
    nullable = [c for c in frame.columns if str(frame[c].dtype).startswith("string")]
    frame = frame.astype(dict.fromkeys(nullable, object)) if nullable else frame
    if not len(frame):
        raise DataError(f"{name} has no rows")
    return frame


def numbers_of(column: pd.Series, name: str):
    """A column as float64, missing values NaN."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column):
        return column.to_numpy(dtype=float, na_value=float("nan"))
    return numeric(column.astype(object).where(column.notna(), None).to_numpy(), name)


def check_same_order(table, *, of: str = "X", **columns) -> None:
    """Refuse a pandas column whose labels are those of the pandas `table` in another order: rows
    are paired by place, so each would get the value of another.

    Labels of other kinds, or repeated ones, do not identify rows.
    """
    index = getattr(table, "index", None)
    if not isinstance(index, pd.Index) or not len(index):
        return
    for name, column in columns.items():
        other = getattr(column, "index", None)
        if not isinstance(other, pd.Index) or len(other) != len(index) or other.equals(index):
            continue
        if index.is_unique and other.is_unique and other.isin(index).all():
            raise DataError(
                f"{of} and {name} have the same labels in another order (row 0 is {index[0]!r} "
                f"and {other[0]!r}); pass {name}.reindex({of}.index), or {name}.to_numpy() if "
                "rows correspond by position"
            )


def row_labels(table) -> pd.Index | None:
    """Labels of the rows of a pandas frame; other tables have none."""
    return table.index if isinstance(table, pd.DataFrame) else None


def library_of(table) -> str | None:
    """The module of the library that a frame comes from; None for pandas, arrays and dicts."""
    if isinstance(table, pd.DataFrame | dict) or not hasattr(table, "columns"):
        return None
    return nw.get_native_namespace(nw.from_native(table, eager_only=True)).__name__
