"""Every file format, as other programs write it, gives the same table."""

import gzip
import io
import sqlite3
import sys

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.tables.file_columns import fit_columns, number_column
from heckesel.tables.table_file import read_table, write_table
from tests.cli.command_line import run

ROLES = ["--outcome", "y", "--instruments", "z", "--method", "linear-ml"]


def table():
    frame = hk.datasets.make_controlled(300, rho=0.5, alpha=1.5, seed=3).frame[["x", "z", "y"]]
    return frame.assign(town=np.where(np.arange(300) % 3 == 0, "Köln", "Bonn"))


def as_sqlite(path, frame=None, name="people"):
    connection = sqlite3.connect(path)
    (table() if frame is None else frame).to_sql(name, connection, index=False)
    connection.close()


def as_duckdb(path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", table())
        connection.execute("create table people as select * from frame")


def as_excel(path):
    pytest.importorskip("xlsxwriter")
    table().to_excel(path, index=False, engine="xlsxwriter")


def as_gzip(path):
    path.write_bytes(gzip.compress(table().to_csv(index=False).encode()))


WRITERS = {
    "t.csv": lambda path: table().to_csv(path, index=False),
    "t.csv.gz": as_gzip,
    "t.parquet": lambda path: table().to_parquet(path),
    "t.feather": lambda path: table().to_feather(path),
    "t.xlsx": as_excel,
    "t.sqlite": as_sqlite,
    "t.duckdb": as_duckdb,
    "t.db": as_sqlite,
}


def columns_of(path, **options):
    read = read_table(path, **options)
    return fit_columns(read, ["x", "z", "town"]).assign(y=number_column(read, "y", "outcome"))


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_columns(name, tmp_path):
    pytest.importorskip("python_calamine")
    path = tmp_path / name
    WRITERS[name](path)
    found = columns_of(path)
    assert list(found["town"]) == list(table()["town"])
    digits = 1e-14 if name == "t.xlsx" else 0  # workbooks keep 16 digits
    np.testing.assert_allclose(found[["x", "z", "y"]], table()[["x", "z", "y"]], rtol=digits)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_encoding_and_delimiter_are_detected_and_reported(encoding, delimiter, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(table().to_csv(index=False, sep=delimiter).encode(encoding))
    read = read_table(path)
    assert list(read.frame.columns) == ["x", "z", "y", "town"]
    assert list(read.frame["town"]) == list(table()["town"])
    said = " ".join(read.notes)
    assert ("not UTF-8" in said) == (encoding not in ("utf-8", "utf-8-sig"))
    assert ("separated by" in said) == (delimiter != ",")


def test_an_encoding_can_be_given(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("town,x\nŁódź,1\nŁask,2\n".encode("iso8859-2"))
    assert read_table(path, encoding="ISO-8859-2").frame["town"][0] == "Łódź"
    path.write_bytes("town,x\nKöln,1\n".encode("utf-16-le"))  # without a mark
    with pytest.raises(hk.DataError, match="set its --encoding"):
        read_table(path)
    read = read_table(path, encoding="utf-16-le")
    assert (read.frame["town"][0], read.notes) == ("Köln", ())
    for encoding, said in {
        "klingon": "must be the name of an encoding, such as utf-8 or cp1252, got 'klingon'",
        "ascii": "is not text in ascii",
        "hex": "must be the name of an encoding",
    }.items():
        with pytest.raises(hk.DataError, match=said):
            read_table(path, encoding=encoding)


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_query_or_a_table_of_a_database(kind, tmp_path):
    path = tmp_path / f"t.{kind}"
    WRITERS[f"t.{kind}"](path)
    read = read_table(path, query="select x, z, y from people where x > 0 order by x")
    expected = table().query("x > 0").sort_values("x")
    np.testing.assert_array_equal(read.frame["x"], expected["x"])
    np.testing.assert_array_equal(read.frame["y"], expected["y"])
    assert len(read_table(path, table="people").frame) == 300
    for given, said in (
        ({"table": "peple"}, "has no table 'peple'; did you mean 'people'"),
        ({"query": "select nothing from people"}, "cannot be read: .*nothing"),
        ({"query": "select x, x from people"}, "'x' appears twice"),
        ({"query": "select x from people where x > 99"}, "has columns but no rows"),
        ({"query": "drop table people"}, "--query must be one SELECT"),
        ({"query": "select 1", "table": "people"}, "give one of them"),
    ):
        with pytest.raises(hk.DataError, match=said):
            read_table(path, **given)
    assert len(read_table(path).frame) == 300  # nothing was dropped


def test_a_file_with_several_tables_needs_the_option_table(tmp_path):
    as_sqlite(tmp_path / "t.sqlite")
    as_sqlite(tmp_path / "t.sqlite", name='the "others"')
    said = r't\.sqlite has 2 tables \(people, the "others"\); choose one with --table'
    with pytest.raises(hk.DataError, match=said):
        read_table(tmp_path / "t.sqlite")
    assert len(read_table(tmp_path / "t.sqlite", table='the "others"').frame) == 300
    pytest.importorskip("python_calamine")
    with pd.ExcelWriter(tmp_path / "t.xlsx", engine="xlsxwriter") as book:
        for name in ("a", "b"):
            table().to_excel(book, sheet_name=name, index=False)
        pd.DataFrame().to_excel(book, sheet_name="empty", index=False)
    with pytest.raises(hk.DataError, match=r"has 2 sheets \(a, b\); choose one with --table"):
        read_table(tmp_path / "t.xlsx")
    assert len(read_table(tmp_path / "t.xlsx", table="b").frame) == 300


def test_values_of_several_types_are_the_strings_of_a_csv_file(tmp_path):
    frame = pd.DataFrame({"code": [250, "V57", None, 1.5], "x": [1.0, None, 3.0, 4.0]})
    as_sqlite(tmp_path / "t.sqlite", frame)
    pytest.importorskip("python_calamine")
    frame.to_excel(tmp_path / "t.xlsx", index=False, engine="xlsxwriter")
    for name in ("t.sqlite", "t.xlsx"):
        read = read_table(tmp_path / name).frame
        assert list(read["code"].astype(object).where(read["code"].notna(), None)) == [
            "250",
            "V57",
            None,
            "1.5",
        ]
        np.testing.assert_array_equal(read["x"], [1.0, np.nan, 3.0, 4.0])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.xlsx", b"PK nothing", "cannot be read as an Excel workbook"),
        ("t.feather", b"FEA1 nothing", "cannot be read as Feather"),
        ("t.csv.gz", b"nothing", "not a complete gz file"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:30], "not a complete gz file"),
        ("t.sqlite", b"nothing", "neither an SQLite nor a DuckDB database"),
        ("t.sqlite", b"SQLite format 3\0" + b"x" * 200, "cannot be read"),
        ("t.duckdb", b"x" * 8 + b"DUCK" + b"x" * 200, "cannot be read"),
        ("t.txt", b"a,b\n1,2\n", r"must end in \.csv, .*, such as \.csv\.gz"),
    ],
)
def test_damaged_files_are_refused_in_one_sentence(name, content, said, tmp_path):
    pytest.importorskip("duckdb")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(hk.HeckeselError, match=said):
        read_table(tmp_path / name)


def test_options_of_other_formats_are_refused(tmp_path):
    table().to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(hk.DataError, match=r"--query needs a database, but .* is not one"):
        read_table(tmp_path / "t.csv", query="select 1")
    with pytest.raises(hk.DataError, match="--table needs a database or a workbook"):
        read_table(tmp_path / "t.csv", table="people")


@pytest.mark.parametrize("module", ["pyarrow", "python_calamine", "duckdb"])
def test_a_format_without_its_package_names_the_extra(module, tmp_path, monkeypatch):
    name = {"pyarrow": "t.feather", "python_calamine": "t.xlsx", "duckdb": "t.duckdb"}[module]
    WRITERS[name](tmp_path / name)
    monkeypatch.setitem(sys.modules, module, None)
    said = r"files need the files extra: pip install 'heckesel\[files\]'"
    with pytest.raises(hk.HeckeselError, match=said):
        read_table(tmp_path / name)


@pytest.mark.parametrize("name", ["o.csv", "o.csv.gz", "o.parquet", "o.feather", "o.xlsx"])
def test_predictions_in_every_format(name, tmp_path, capsys):
    pytest.importorskip("python_calamine")
    frame = table().assign(town=np.where(table()["town"] == "Bonn", "=1+1", "Köln"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = tmp_path / "m.heckesel"
    assert run(capsys, "fit", tmp_path / "t.csv", *ROLES, "--out", model).code == 0
    shown = run(capsys, "predict", model, tmp_path / "t.csv", "--out", tmp_path / name)
    assert (shown.code, shown.err) == (0, "")
    printed = run(capsys, "predict", model, tmp_path / "t.csv", "--out", "-")
    expected = pd.read_csv(io.StringIO(printed.out))
    found = read_table(tmp_path / name).frame
    assert list(found.columns) == list(expected.columns)
    assert list(found["town"]) == list(expected["town"])  # and no formula
    np.testing.assert_allclose(found["mean"].astype(float), expected["mean"], rtol=1e-14)
    assert not list(tmp_path.glob(".*"))


def test_a_table_that_a_workbook_cannot_hold_leaves_no_file(tmp_path):
    pytest.importorskip("xlsxwriter")
    frame = pd.DataFrame({"at": pd.to_datetime(["2020-01-01"], utc=True)})
    with pytest.raises(hk.DataError, match=r"cannot hold this table: .*; write CSV or Parquet"):
        write_table(tmp_path / "t.xlsx", frame, like=None)
    assert not list(tmp_path.iterdir())


def test_standard_input_is_read_once(tmp_path, capsys, monkeypatch):
    frame = table().assign(y=(table()["y"] > 0).astype(float).where(table()["y"].notna()))
    piped = frame.to_csv(index=False, sep=";").encode("cp1252")
    for out in ("m", "n"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
        # 0 and 1 are two classes, and numbers for this option, which reads the outcome again
        numbers = ["--method", "linear-two-step"] if out == "n" else ROLES[4:]
        shown = run(capsys, "fit", "-", *ROLES[:4], *numbers, "--out", tmp_path / out)
        assert shown.code == 0, shown.err
        assert "note: standard input is not UTF-8; it was read as cp1252" in shown.err
        assert "note: the columns of standard input are separated by a semicolon" in shown.err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
    shown = run(capsys, "predict", tmp_path / "n", "-")
    assert shown.out.startswith("x;z;y;town;mean;std;lower;upper\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    shown = run(capsys, "predict", tmp_path / "n", "-")
    assert (shown.code, shown.err) == (2, "heckesel: standard input is empty\n")
