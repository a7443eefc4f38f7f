"""What the command line prints and writes: names of any kind, full disks, closed pipes."""

import csv
import json
import os
import pty
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.errors import printable
from heckesel.tables.files import as_csv, read_table
from tests.cli.command_line import drawn, run

ROLES = ["--outcome", "y", "--instruments", "z", "--method", "ml"]
RED = "\x1b[31m"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    drawn().to_csv(path, index=False)
    return path


@pytest.fixture
def model(table, tmp_path, capsys):
    path = tmp_path / "m.heckesel"
    assert run(capsys, "fit", table, *ROLES, "--out", path).code == 0
    return path


def heckesel(*arguments, **options):
    quiet = ["--quiet"] if arguments[0] in ("fit", "predict", "diagnose") else []
    command = [sys.executable, "-m", "heckesel", *map(str, arguments), *quiet]
    return subprocess.run(command, stderr=subprocess.PIPE, **options)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("typed", ["predict {m} {t}", "diagnose {t} --outcome y", "--help"])
def test_a_full_disk_behind_standard_output_is_an_error(typed, model, table):
    with open("/dev/full", "wb") as full:
        shown = heckesel(*typed.format(m=model, t=table).split(), stdout=full)
    assert shown.returncode == 1
    assert shown.stderr.decode() == "heckesel: No space left on device\n"


@pytest.mark.parametrize("text", ["a\rb", "\r", "a\r\nb", "a\nb", 'a"\rb', "a,b", "plain"])
def test_every_string_survives_a_csv_round_trip(text, tmp_path):
    frame = pd.DataFrame({"name\rtwo": [text, "other"], "value": [0.1, 1e-300]})
    (tmp_path / "in.csv").write_text("a\n1\n")
    written = as_csv(frame, read_table(tmp_path / "in.csv"))
    assert written.endswith("1e-300\n")
    (tmp_path / "out.csv").write_text(written, newline="")
    found = read_table(tmp_path / "out.csv").frame
    assert list(found.columns) == list(frame.columns)
    assert list(found["name\rtwo"]) == [text, "other"]
    with open(tmp_path / "out.csv", newline="") as file:
        assert [row[0] for row in csv.reader(file)][1:] == [text, "other"]


def test_predictions_do_not_replace_columns_of_the_same_name(table, tmp_path, capsys):
    columns = {"mean": "a", "low": "b", "predicted_low": "c"}
    drawn().assign(**columns).to_csv(tmp_path / "u.csv", index=False)
    assert run(capsys, "fit", table, *ROLES, "--out", tmp_path / "m").code == 0
    shown = run(capsys, "predict", tmp_path / "m", tmp_path / "u.csv", "--out", tmp_path / "p.csv")
    assert shown.code == 0
    assert "already has a column 'mean', so the prediction is in 'predicted_mean'\n" in shown.err
    assert "'low', so the prediction is in 'predicted_predicted_low'\n" in shown.err
    found = pd.read_csv(tmp_path / "p.csv")
    expected = hk.load(tmp_path / "m").predict(drawn()[["x", "z"]])
    assert (found["mean"] == "a").all()
    np.testing.assert_allclose(found["predicted_mean"], expected, rtol=1e-12)
    assert list(found.columns)[3:] == [
        *columns,
        "predicted_mean",
        "std",
        "predicted_predicted_low",
        "high",
    ]


def on_a_terminal(*arguments) -> bytes:
    """What a terminal is sent; input and output are one."""
    ours, theirs = pty.openpty()
    shown = subprocess.Popen(
        [sys.executable, "-m", "heckesel", *map(str, arguments)], stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    sent = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        sent += part
    os.close(ours)
    shown.wait()
    return sent


def test_escapes_in_a_model_file_do_not_reach_the_terminal(tmp_path, capsys):
    frame = drawn()
    frame["y"] = np.where(frame["y"] > 0, f"{RED}yes", "no")
    frame.loc[drawn()["y"].isna(), "y"] = ""
    name = f"{RED}out\rcome"
    frame.rename(columns={"y": name}).to_csv(tmp_path / "t.csv", index=False, quoting=1)
    typed = ["--outcome", name, *ROLES[2:], "--out", tmp_path / "m"]
    shown = run(capsys, "fit", tmp_path / "t.csv", *typed)
    assert shown.code == 0
    assert "\x1b" not in shown.out + shown.err
    drawn()[["x", "z"]].to_csv(tmp_path / "new.csv", index=False)
    predict = ["predict", tmp_path / "m", tmp_path / "new.csv", "--force", "--quiet"]
    sent = on_a_terminal(*predict)
    assert b"probability that \\x1b[31mout\\rcome is no" in sent or b"\\x1b[31myes" in sent
    assert b"\x1b" not in sent
    shown = run(capsys, *predict)  # to a program
    assert f",{RED}yes\n" in shown.out


def test_letters_of_every_script_stay_as_they_are():
    for text in ("größe ☃", "Ελλάδα\tΡωσία\n", "नमस्ते", "👩\u200d🔬", json.dumps("\x1b")):
        assert printable(text) == text
    assert printable("a\u202eb\x9b\x7f") == r"a\u202eb\x9b\x7f"
