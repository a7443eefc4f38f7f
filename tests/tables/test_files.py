"""Every file format, as other programs write it, gives the same table, and the output keeps it."""

import bz2
import gzip
import io
import lzma
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.tables.files import read_table, write_table
from tests.cli.command_line import run

ROLES = ["--outcome", "y", "--instruments", "z", "--method", "ml"]
BEYOND = 2**53 + 1  # no float


def table():
    frame = hk.datasets.make_controlled(300, rho=0.5, alpha=1.5, seed=3).frame[["x", "z", "y"]]
    return frame.assign(town=np.where(np.arange(300) % 3 == 0, "Köln", "Bonn"))


def packed(pack):
    return lambda path: path.write_bytes(pack(table().to_csv(index=False).encode()))


def zipped(raw: bytes, *names: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names or ("t.csv",):
            archive.writestr(name, raw)
    return content.getvalue()


WRITERS = {
    "t.csv": packed(bytes),
    "t.csv.gz": packed(gzip.compress),
    "t.csv.bz2": packed(bz2.compress),
    "t.csv.xz": packed(lzma.compress),
    "t.csv.zip": packed(zipped),
    "t.parquet": lambda path: table().to_parquet(path),
    "t.xlsx": lambda path: table().to_excel(path, index=False, engine="xlsxwriter"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_columns_and_takes_the_same_predictions(name, tmp_path, capsys):
    pytest.importorskip("python_calamine")
    path, model, out = tmp_path / name, tmp_path / "m", tmp_path / f"o{name[1:]}"
    WRITERS[name](path)
    read = read_table(path)
    found = read.columns(["x", "z", "town"]).assign(y=read.numbers("y", "outcome"))
    assert list(found["town"]) == list(table()["town"])
    digits = 1e-14 if name == "t.xlsx" else 0  # workbooks keep 16 digits
    np.testing.assert_allclose(found[["x", "z", "y"]], table()[["x", "z", "y"]], rtol=digits)

    assert run(capsys, "fit", path, *ROLES, "--out", model).code == 0
    assert run(capsys, "predict", model, path, "--out", out).code == 0
    printed = run(capsys, "predict", model, path, "--out", "-")
    expected, again = pd.read_csv(io.StringIO(printed.out)), read_table(out)
    assert list(again.frame.columns) == list(expected.columns)
    np.testing.assert_allclose(again.numbers("mean", "column"), expected["mean"], rtol=1e-14)
    before = out.read_bytes()
    if name not in ("t.xlsx", "t.csv.zip"):  # which have the time of writing
        run(capsys, "predict", model, path, "--out", out)
        assert out.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_delimiters_are_detected_and_encodings_can_be_given(encoding, delimiter, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(table().to_csv(index=False, sep=delimiter).encode(encoding))
    if not encoding.startswith("utf-8"):
        with pytest.raises(hk.DataError, match="is not UTF-8 text; set its --encoding"):
            read_table(path)
    read = read_table(path, encoding=None if encoding.startswith("utf-8") else encoding)
    assert list(read.frame.columns) == ["x", "z", "y", "town"]
    assert list(read.frame["town"]) == list(table()["town"])
    assert ("separated by" in " ".join(read.notes)) == (delimiter != ",")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.xlsx", b"PK nothing", "cannot be read as an Excel workbook"),
        ("t.parquet", b"PAR1 nothing", "cannot be read as Parquet"),
        ("t.csv.gz", b"nothing", "cannot be read"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:30], "cannot be read"),
        ("t.csv.xz", lzma.compress(b"a,b\n1,2\n")[:-9], "cannot be read"),
        ("t.csv.zip", zipped(b"a\n1\n", "a.csv", "b.csv"), "cannot be read .*[Mm]ultiple files"),
        ("t.txt", b"a,b\n1,2\n", r"must end in \.csv, .*, such as \.csv\.gz"),
        ("t.feather", b"", r"must end in \.csv"),
        ("t.sqlite", b"", r"must end in \.csv"),
    ],
)
def test_damaged_and_unknown_files_are_refused_in_one_sentence(name, content, said, tmp_path):
    pytest.importorskip("python_calamine")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(hk.HeckeselError, match=said):
        read_table(tmp_path / name)


def test_a_workbook_with_several_sheets_needs_the_name_of_one(tmp_path):
    pytest.importorskip("python_calamine")
    with pd.ExcelWriter(tmp_path / "t.xlsx", engine="xlsxwriter") as book:
        for name in ("a", "b"):
            table().to_excel(book, sheet_name=name, index=False)
        pd.DataFrame().to_excel(book, sheet_name="empty", index=False)
    with pytest.raises(hk.DataError, match=r"has 2 sheets \(a, b\); choose one with --sheet"):
        read_table(tmp_path / "t.xlsx")
    with pytest.raises(hk.DataError, match="has no sheet 'c'"):
        read_table(tmp_path / "t.xlsx", sheet="c")
    assert len(read_table(tmp_path / "t.xlsx", sheet="b").frame) == 300
    table().to_csv(tmp_path / "t.csv")
    with pytest.raises(hk.DataError, match="--sheet needs a workbook"):
        read_table(tmp_path / "t.csv", sheet="b")


@pytest.mark.parametrize("module", ["pyarrow.parquet", "python_calamine"])
def test_a_format_without_its_package_names_the_extra(module, tmp_path, monkeypatch):
    name, extra = {"pyarrow.parquet": ("t.parquet", "scale")}.get(module, ("t.xlsx", "excel"))
    WRITERS[name](tmp_path / name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(hk.HeckeselError, match=rf"pip install 'heckesel\[{extra}\]'"):
        read_table(tmp_path / name)


def test_whole_numbers_keep_all_digits(tmp_path):
    text = f"key,age,share,code\n{BEYOND},34,0.5,01\n{BEYOND + 2},,1.5,02\n"
    (tmp_path / "t.csv").write_text(text)
    write_table(tmp_path / "t.parquet", read_table(tmp_path / "t.csv"))
    found = read_table(tmp_path / "t.parquet")
    assert list(found.frame["key"]) == [BEYOND, BEYOND + 2]
    write_table(tmp_path / "o.csv", found)
    assert (tmp_path / "o.csv").read_text() == text


def test_standard_input_is_read_once(tmp_path, capsys, monkeypatch):
    frame = table().assign(y=(table()["y"] > 0).astype(float).where(table()["y"].notna()))
    piped = frame.to_csv(index=False, sep=";").encode()
    for out in ("m", "n"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
        # 0 and 1 are two classes, and numbers for this option, which reads the outcome again
        numbers = ["--method", "two-step"] if out == "n" else ROLES[4:]
        shown = run(capsys, "fit", "-", *ROLES[:4], *numbers, "--out", tmp_path / out)
        assert shown.code == 0, shown.err
        assert "note: the columns of standard input are separated by a semicolon" in shown.err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
    shown = run(capsys, "predict", tmp_path / "n", "-")
    assert shown.out.startswith("x;z;y;town;mean;std;low;high\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    shown = run(capsys, "predict", tmp_path / "n", "-")
    assert (shown.code, shown.err) == (2, "heckesel: standard input is empty\n")
