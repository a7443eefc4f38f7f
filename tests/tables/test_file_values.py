"""Values of typed files, compressed text, queries that would write, and databases as outputs."""

import bz2
import datetime
import gzip
import io
import lzma
import sqlite3
import zipfile
from contextlib import closing
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.tables.file_columns import with_numbers
from heckesel.tables.table_file import read_table, write_table
from tests.cli.command_line import drawn, run

BEYOND = 2**53 + 1  # no float
ROLES = ["--outcome", "y", "--instruments", "z", "--method", "linear-ml"]


def typed(**columns) -> pd.DataFrame:
    whole = {"key": [BEYOND, BEYOND + 2, 5], "age": pd.array([34, None, 36], dtype="Int64")}
    return pd.DataFrame(
        {**whole, "share": [0.5, None, 1.0], "town": ["Köln", None, "Bonn"]} | columns
    )


def as_arrow(frame, path, metadata=True):
    import pyarrow as pa
    from pyarrow import feather, parquet

    table = pa.Table.from_pandas(frame)
    table = table if metadata else table.replace_schema_metadata(None)
    write = parquet.write_table if path.suffix == ".parquet" else feather.write_feather
    write(table, path)


def as_database(frame, path):
    if path.suffix == ".duckdb":
        duckdb = pytest.importorskip("duckdb")
        with closing(duckdb.connect(str(path))) as connection:
            connection.register("frame", frame)
            connection.execute("create table people as select * from frame")
        return
    with closing(sqlite3.connect(path)) as connection:
        frame.to_sql("people", connection, index=False)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.sqlite", "t.duckdb"])
def test_whole_numbers_keep_all_digits_beside_missing_ones(name, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / name
    large = typed(large=pd.array([BEYOND, None, -BEYOND], dtype="Int64"))
    if path.suffix in (".sqlite", ".duckdb"):
        as_database(large, path)
    else:
        as_arrow(large, path, metadata=False)  # as other programs write it
    found = read_table(path)
    write_table(tmp_path / "o.csv", found.frame, found)
    assert (tmp_path / "o.csv").read_text().splitlines() == [
        "key,age,share,town,large",
        f"{BEYOND},34,0.5,Köln,{BEYOND}",
        f"{BEYOND + 2},,,,",
        f"5,36,1.0,Bonn,-{BEYOND}",
    ]


def test_whole_numbers_of_a_csv_file_stay_whole_in_a_format_with_types(tmp_path):
    pytest.importorskip("pyarrow")
    text = f"key,age,share,code\n{BEYOND},34,0.5,01\n{BEYOND + 2},,1,02\n"
    (tmp_path / "t.csv").write_text(text)
    found = read_table(tmp_path / "t.csv")
    frame = with_numbers(found.frame, ".")
    write_table(tmp_path / "o.parquet", frame, found)
    again = pd.read_parquet(tmp_path / "o.parquet")
    assert list(again["key"]) == [BEYOND, BEYOND + 2]
    assert (again["age"].iloc[0], again["age"].isna().sum()) == (34, 1)
    assert list(again["share"]) == [0.5, 1.0]
    assert list(again["code"]) == ["01", "02"]


def test_a_workbook_has_long_whole_numbers_as_text(tmp_path):
    pytest.importorskip("python_calamine")
    write_table(tmp_path / "o.xlsx", typed(), like=None)
    found = read_table(tmp_path / "o.xlsx").frame
    assert list(found["key"]) == [str(BEYOND), str(BEYOND + 2), "5"]
    assert str(found["age"].dtype) == "Int64"
    pd.DataFrame({"x": [1e300, 2.0]}).to_excel(tmp_path / "large.xlsx", engine="xlsxwriter")
    assert list(read_table(tmp_path / "large.xlsx").frame["x"]) == [1e300, 2.0]


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_a_named_index_of_pandas_is_a_column(name, tmp_path):
    pytest.importorskip("pyarrow")
    frame = typed().set_index("town")
    as_arrow(frame, tmp_path / name)
    found = read_table(tmp_path / name)
    assert set(found.frame.columns) == {"key", "age", "share", "town"}
    assert list(found.frame["town"])[::2] == ["Köln", "Bonn"]
    assert found.where(2) == "row 2"
    as_arrow(typed().iloc[::-1], tmp_path / name)  # an index without a name says nothing
    assert list(read_table(tmp_path / name).frame.columns) == ["key", "age", "share", "town"]


TYPES = {
    "date": [datetime.date(2020, 1, 31), None, datetime.date(2020, 2, 1)],
    "time": [datetime.time(12, 30), None, datetime.time(1, 2)],
    "at": pd.to_datetime(["2020-01-31 12:00", None, "2020-02-01 01:00"], utc=True),
    "lag": pd.to_timedelta([1, None, 2], unit="D"),
    "price": [Decimal("0.10"), None, Decimal("2.50")],
    "yes": [True, None, False],
    "kind": pd.Categorical(["a", None, "b"]),
}


@pytest.mark.parametrize("suffix", ["sqlite", "db", "duckdb", "parquet", "feather", "csv.zst"])
def test_every_type_of_a_parquet_file_can_be_written(suffix, tmp_path):
    pytest.importorskip("duckdb")
    as_arrow(typed(**TYPES), tmp_path / "t.parquet")
    found, path = read_table(tmp_path / "t.parquet"), tmp_path / f"o.{suffix}"
    write_table(path, found.frame, found)
    again = read_table(path).frame
    assert list(again.columns) == list(found.frame.columns)
    gaps = again.eq("") if suffix == "csv.zst" else again.isna()
    assert (gaps.sum()[["age", *TYPES]] == 1).all()
    assert [str(value)[:10] for value in again["date"]][::2] == ["2020-01-31", "2020-02-01"]
    assert [float(value) for value in again["price"][::2]] == [0.1, 2.5]
    assert [str(value) for value in again["key"]] == [str(BEYOND), str(BEYOND + 2), "5"]


PACKERS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda raw: pytest.importorskip("pyarrow").compress(raw, codec="zstd", asbytes=True),
}


def as_zip(members: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)
    return content.getvalue()


@pytest.mark.parametrize("suffix", [*PACKERS, ".zip"])
def test_compressed_csv_is_read_and_written(suffix, tmp_path, monkeypatch):
    raw = drawn().to_csv(index=False, sep="\t").encode()
    pack = PACKERS.get(suffix, lambda raw: as_zip({"t.tsv": raw}))
    path = tmp_path / f"t.tsv{suffix}"
    path.write_bytes(pack(raw))
    found = read_table(path)
    assert list(found.frame.columns) == ["x", "z", "y"]
    assert found.notes == ()  # the suffix says that tabs separate the columns
    out = tmp_path / f"o.csv{suffix}"
    write_table(out, found.frame, found)
    pd.testing.assert_frame_equal(
        pd.read_csv(out, sep="\t") if suffix != ".zst" else drawn(), drawn()
    )
    before = out.read_bytes()
    with monkeypatch.context() as later:
        later.setattr("time.time", lambda: 2e9)
        write_table(out, found.frame, found)
    assert out.read_bytes() == before  # no time stamp
    path.write_bytes(pack(raw)[:-30])
    with pytest.raises(hk.DataError, match=f"is not a complete {suffix[1:]} file"):
        read_table(path)


def test_an_archive_holds_one_table(tmp_path):
    (tmp_path / "t.csv.zip").write_bytes(as_zip({"a.csv": b"a\n1\n", "b.csv": b"a\n1\n"}))
    with pytest.raises(hk.DataError, match="holds 2 files; give an archive with one"):
        read_table(tmp_path / "t.csv.zip")
    of_a_mac = {"a.csv": b"a\n1\n", "__MACOSX/._a.csv": b"?"}
    (tmp_path / "t.csv.zip").write_bytes(as_zip(of_a_mac))
    assert list(read_table(tmp_path / "t.csv.zip").frame["a"]) == ["1"]


def test_a_tsv_file_is_written_with_tabs_and_the_delimiter_may_be_typed_as_such(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    found = read_table(tmp_path / "t.csv")
    write_table(tmp_path / "o.tsv", found.frame, found)
    assert (tmp_path / "o.tsv").read_text() == "a\tb\n1\t2\n"
    assert list(read_table(tmp_path / "o.tsv", delimiter="\\t").frame.columns) == ["a", "b"]


def test_other_workbooks_are_read(tmp_path):
    pytest.importorskip("python_calamine")
    drawn().to_excel(tmp_path / "t.xlsx", index=False, engine="xlsxwriter")
    (tmp_path / "t.xlsx").rename(tmp_path / "t.xlsm")
    np.testing.assert_allclose(read_table(tmp_path / "t.xlsm").frame, drawn(), rtol=1e-14)
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    rows = "".join(
        f"<table:table-row>{''.join(map(cell.format, row))}</table:table-row>"
        for row in (("town", "x"), ("Köln", "a"))
    )
    spaces = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    content = (
        f"<office:document-content{spaces}><office:body><office:spreadsheet><table:table "
        f'table:name="a">{rows}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )
    kind = b"application/vnd.oasis.opendocument.spreadsheet"
    parts = {"mimetype": kind, "content.xml": content.encode(), "META-INF/manifest.xml": b"<a/>"}
    (tmp_path / "t.ods").write_bytes(as_zip(parts))
    assert read_table(tmp_path / "t.ods").frame.to_dict("list") == {"town": ["Köln"], "x": ["a"]}


WRITES = [
    "copy (select 1) to '{d}/new.csv'",
    "export database '{d}/new'",
    "attach '{d}/new.db' as other",
    "vacuum into '{d}/new.db'",
    "create temp table t as select 1",
    "create table t as select 1",
    "insert into people select * from people",
    "select 1; drop table people",
    "pragma journal_mode = delete",
    "",
    "-- nothing",
]


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
@pytest.mark.parametrize("query", WRITES)
def test_a_query_writes_nothing_anywhere(query, kind, tmp_path, capsys):
    path = tmp_path / f"t.{kind}"
    as_database(drawn(), path)
    before = path.read_bytes()
    given = ["--query", query.format(d=tmp_path), "--outcome", "y"]
    shown = run(capsys, "diagnose", path, *given)
    assert (shown.code, shown.out, shown.err.count("\n")) == (2, "", 1)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == before
    with_clause = "with a as (select x, z, y from people) select * from a; -- comment"
    assert len(read_table(path, query=with_clause).frame) == 300


@pytest.mark.parametrize("name", ["o.sqlite", "o.duckdb", "o.db"])
def test_predictions_fill_a_new_database_and_replace_none(name, tmp_path, capsys):
    pytest.importorskip("duckdb")
    drawn().to_csv(tmp_path / "t.csv", index=False)
    typed = [tmp_path / "m", tmp_path / "t.csv"]
    assert run(capsys, "fit", typed[1], *ROLES, "--out", typed[0]).code == 0
    assert run(capsys, "predict", *typed, "--out", tmp_path / name).code == 0
    expected = hk.load(tmp_path / "m").predict(drawn()[["x", "z"]])
    found = read_table(tmp_path / name, query="select x, mean from predictions").frame
    np.testing.assert_array_equal(found["mean"], expected)
    np.testing.assert_array_equal(found["x"], drawn()["x"])
    before = (tmp_path / name).read_bytes()
    shown = run(capsys, "predict", *typed, "--out", tmp_path / name)
    assert (shown.code, "only a new database is written" in shown.err) == (2, True)
    assert (tmp_path / name).read_bytes() == before


def test_names_that_a_database_confuses_leave_no_file(tmp_path):
    frame = pd.DataFrame({"x": [1.0], "X": [2.0]})
    for name in ("o.sqlite", "o.duckdb"):
        pytest.importorskip("duckdb")
        with pytest.raises(hk.DataError, match="names differ from 'X' in case only"):
            write_table(tmp_path / name, frame, like=None)
    assert not list(tmp_path.iterdir())


def test_a_table_that_does_not_exist_is_answered_with_those_that_do(tmp_path):
    as_database(drawn(), tmp_path / "t.sqlite")
    with pytest.raises(hk.DataError, match="has no table 'zzz'; it has people"):
        read_table(tmp_path / "t.sqlite", table="zzz")
