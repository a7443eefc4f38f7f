"""Tables as workbooks and programs export them: fitted with a note, or refused in a sentence."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.cli.command_line import drawn, run

ROLES = ["--outcome", "y", "--instruments", "z", "--method", "ml", "--json"]


def fitted(capsys, tmp_path, text, *options, roles=ROLES):
    """What `fit` printed about a table, and the prediction for its rows."""
    path, model, out = tmp_path / "t.csv", tmp_path / "m", tmp_path / "p.csv"
    path.write_text(text, encoding="utf-8")
    shown = run(capsys, "fit", path, *roles, *options, "--out", model)
    assert shown.code == 0, shown.err
    asked = [model, path, "--target", "unselected", "--force", "--out", out]
    found = json.loads(shown.out)
    return found, shown.err, run(capsys, "predict", *asked)


def plain(capsys, tmp_path):
    """rho and sigma of the same table without any peculiarity."""
    found, said, _ = fitted(capsys, tmp_path, drawn().to_csv(index=False))
    assert said == ""
    return found["rho"], found["sigma"]


def test_decimal_commas_are_detected_and_reported(capsys, tmp_path):
    expected = plain(capsys, tmp_path)
    frame = drawn().assign(pay=np.arange(300) % 7 * 500 + 1000.25)
    text = frame.drop(columns="pay").to_csv(index=False, sep=";", decimal=",")
    found, said, predicted = fitted(capsys, tmp_path, text)
    assert (found["rho"], found["sigma"]) == expected
    assert "are read with decimal commas (otherwise set --decimal .)" in said
    assert predicted.code == 0
    output = (tmp_path / "p.csv").read_text()
    assert output.splitlines()[1].count(",") == 7  # all numbers, also the predicted ones
    thousands = frame.assign(
        pay=[f"{pay:_.2f}".replace(".", ",").replace("_", ".") for pay in frame["pay"]]
    )
    thousands[["x", "z", "y"]] = thousands[["x", "z", "y"]].map(
        lambda value: "" if np.isnan(value) else str(value).replace(".", ",")
    )
    found, _, predicted = fitted(capsys, tmp_path, thousands.to_csv(index=False, sep=";"))
    assert (predicted.code, found["actions"]) == (0, [])


@pytest.mark.parametrize("written", ["${:,.15f}", "{:.15f} EUR", "{:.15f}%"])
def test_an_outcome_may_be_written_as_other_numbers_are(written, capsys, tmp_path):
    expected = plain(capsys, tmp_path)
    frame = drawn()
    frame["y"] = [written.format(y) if y == y else "" for y in frame["y"]]
    found, _, _ = fitted(capsys, tmp_path, frame.to_csv(index=False))
    np.testing.assert_allclose((found["rho"], found["sigma"]), expected, rtol=1e-6)


def test_rows_without_values_are_ignored_and_counted(capsys, tmp_path):
    expected = plain(capsys, tmp_path)
    lines = drawn().to_csv(index=False).splitlines()
    text = "\n".join([*lines[:5], ",,", *lines[5:], ",,", "NA, ,"])
    found, said, predicted = fitted(capsys, tmp_path, text)
    assert (found["rho"], found["sigma"], found["rows"]) == (*expected, 300)
    assert "3 rows of" in said
    assert "have no value in any column and are ignored" in said
    assert predicted.code == 1  # rows of the output are those of the input
    rows = pd.read_csv(tmp_path / "p.csv")
    assert list(rows.index[rows["reason"].notna()]) == [4, 301, 302]
    bad = text.replace(lines[9], "?".join(lines[9].split(",", 1)), 1)
    (tmp_path / "w.csv").write_text(bad)
    shown = run(capsys, "fit", tmp_path / "w.csv", *ROLES, "--out", tmp_path / "new")
    assert "has 2 fields, but the header has 3" in shown.err
