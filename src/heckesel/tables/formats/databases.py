"""A table or the result of a query from an SQLite or a DuckDB database, opened read-only."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd

from heckesel.errors import DataError, imported
from heckesel.tables.formats.names import chosen
from heckesel.tables.formats.written import as_written

SQLITE_TABLES = (
    "select name from sqlite_master where type in ('table', 'view') and name not like 'sqlite!_%' "
    "escape '!' order by name"
)
DUCKDB_TABLES = (
    "select table_name from information_schema.tables where table_schema = 'main' "
    "order by table_name"
)


def read_database(path: Path, table: str | None, query: str | None) -> pd.DataFrame:
    """The result of `query`, or a table: the one named, or the only one."""
    if table is not None and query is not None:
        raise DataError("--table and --query exclude each other; give one of them")
    with open(path, "rb") as file:
        start = file.read(16)
    if start == b"SQLite format 3\0":
        return _sqlite(path, table, query)
    if start[8:12] == b"DUCK":
        return _duckdb(path, table, query)
    raise DataError(f"{path} is neither an SQLite nor a DuckDB database")


def _sqlite(path: Path, table: str | None, query: str | None) -> pd.DataFrame:
    try:
        address = f"{path.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            if query is None:
                names = [name for (name,) in connection.execute(SQLITE_TABLES)]
                query = _all_of(chosen(table, names, path, "table"))
            cursor = connection.execute(query)
            names = [each[0] for each in cursor.description or ()]
            rows = cursor.fetchall()
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    columns = zip(*rows, strict=True) if rows else [[] for _ in names]
    found = [as_written(column) for column in columns]
    if not found:
        raise DataError(f"the query returns no table: {query}")
    return pd.concat(found, axis=1).set_axis(names, axis=1)


def _duckdb(path: Path, table: str | None, query: str | None) -> pd.DataFrame:
    duckdb = imported("duckdb", "DuckDB files need the files extra", "files")
    try:
        with closing(duckdb.connect(str(path), read_only=True)) as connection:
            if query is None:
                names = [name for (name,) in connection.execute(DUCKDB_TABLES).fetchall()]
                query = _all_of(chosen(table, names, path, "table"))
            result = connection.execute(query)
            names = [each[0] for each in result.description or ()]
            frame = result.df()
    except duckdb.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise DataError(f"{path} cannot be read: {reason}") from None
    return frame.set_axis(names, axis=1)  # a name that appears twice was renamed


def _all_of(table: str) -> str:
    quoted = table.replace('"', '""')
    return f'select * from "{quoted}"'
