"""A table or the result of a query from an SQLite or a DuckDB database, and a new database.

A query can read only: that a database is opened read-only does not stop one from writing other
files, as COPY ... TO of DuckDB and VACUUM INTO of SQLite do.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

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
SQLITE_READS = (
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
)
ONLY_SELECT = "--query must be one SELECT, since a table is only read; got {}"
WRITTEN = "predictions"  # the table of a database that is an output


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
            connection.set_authorizer(_reads_only)
            if query is None:
                names = [name for (name,) in connection.execute(SQLITE_TABLES)]
                query = _all_of(chosen(table, names, path, "table"))
            cursor = connection.execute(query)
            names = [each[0] for each in cursor.description or ()]
            rows = cursor.fetchall()
    except (sqlite3.Error, sqlite3.Warning) as error:
        if "not authorized" in str(error):
            raise DataError(ONLY_SELECT.format(repr(query))) from None
        raise DataError(f"{path} cannot be read: {error}") from None
    if not names:
        raise DataError(ONLY_SELECT.format(repr(query)))
    columns = zip(*rows, strict=True) if rows else [[] for _ in names]
    return pd.concat([as_written(column) for column in columns], axis=1).set_axis(names, axis=1)


def _reads_only(action: int, *_) -> int:
    return sqlite3.SQLITE_OK if action in SQLITE_READS else sqlite3.SQLITE_DENY


def _duckdb(path: Path, table: str | None, query: str | None) -> pd.DataFrame:
    duckdb = duckdb_package()
    try:
        with closing(duckdb.connect(str(path), read_only=True)) as connection:
            if query is None:
                names = [name for (name,) in connection.execute(DUCKDB_TABLES).fetchall()]
                query = _all_of(chosen(table, names, path, "table"))
            kinds = [each.type for each in connection.extract_statements(query)]
            if kinds != [duckdb.StatementType.SELECT]:
                raise DataError(ONLY_SELECT.format(repr(query)))
            result = connection.execute(query)
            names = [each[0] for each in result.description]
            frame = result.df()
    except duckdb.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise DataError(f"{path} cannot be read: {reason}") from None
    return frame.set_axis(names, axis=1)  # a name that appears twice was renamed


def _all_of(table: str) -> str:
    quoted = table.replace('"', '""')
    return f'select * from "{quoted}"'


def database_bytes(frame: pd.DataFrame, path, suffix: str) -> bytes:
    """A database with the table WRITTEN."""
    repeated = frame.columns[frame.columns.str.lower().duplicated()]
    if len(repeated):
        raise DataError(
            f"{path} cannot hold two columns whose names differ from {repeated[0]!r} in case only; "
            "rename one"
        )
    duckdb = duckdb_package() if suffix == ".duckdb" else None
    of_sqlite = (sqlite3.Error, pd.errors.DatabaseError, ValueError)
    refused = of_sqlite if duckdb is None else (duckdb.Error,)
    try:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "new"
            if duckdb is None:
                with closing(sqlite3.connect(file)) as connection:
                    _with_sqlite_types(frame).to_sql(WRITTEN, connection, index=False)
            else:
                with closing(duckdb.connect(str(file))) as connection:
                    connection.register("frame", frame)
                    connection.execute(f"create table {WRITTEN} as select * from frame")
            return file.read_bytes()
    except refused as error:
        reason = str(error.__cause__ or error).strip().splitlines()[0].rstrip(".")
        raise DataError(f"{path} cannot hold this table: {reason}; write CSV or Parquet") from None


def _with_sqlite_types(frame: pd.DataFrame) -> pd.DataFrame:
    """Decimals as floats, and dates, times and durations as the text of a CSV file."""
    columns: dict[str, pd.Series] = {}
    for name, column in frame.items():
        kind = pd.api.types.infer_dtype(column, skipna=True)
        if kind == "decimal":
            columns[str(name)] = column.astype(float)
        elif kind in ("date", "datetime64", "datetime", "time", "timedelta64", "timedelta"):
            columns[str(name)] = column.map(str, na_action="ignore").astype(object)
    return frame.assign(**columns)


def duckdb_package():
    return imported("duckdb", "DuckDB files need the files extra", "files")
