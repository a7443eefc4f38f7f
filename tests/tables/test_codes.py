"""Codes with leading zeros are categories, when a table is read to fit and to predict."""

import io

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.tables.file_columns import fit_columns
from heckesel.tables.table_file import read_table
from tests.cli.command_line import run

CODES = ("01000", "02000", "10000")
ROLES = ["--on-problem", "error", "--outcome", "y", "--instruments", "z", "--method", "linear-ml"]


def drawn(n=300):
    draw = hk.datasets.make_controlled(n, rho=0.5, alpha=1.5, seed=3).frame
    return draw.assign(zip=np.resize(CODES, n))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    drawn().to_csv(path, index=False)
    return path


def test_codes_are_fitted_as_categories_with_a_note(table, tmp_path, capsys):
    shown = run(capsys, "fit", table, *ROLES, "--out", tmp_path / "m")
    assert (shown.code, shown.err) == (
        0,
        "note: zip has values with leading zeros (01000), so it is treated as a category with "
        "3 levels (without leading zeros it would be a number)\n",
    )
    model = hk.load(tmp_path / "m")
    assert model.columns_.levels == {"zip": CODES}
    shown = run(capsys, "predict", tmp_path / "m", table)
    frame = drawn()
    X = frame.drop(columns="y").astype({"zip": "category"})
    expected = hk.HeckmanRegressor(["z"]).fit(X, frame["y"]).predict(X)
    found = pd.read_csv(io.StringIO(shown.out), dtype={"zip": str})
    assert list(found["zip"]) == list(frame["zip"])
    np.testing.assert_allclose(found["mean"], expected, rtol=1e-12)


def test_a_table_that_is_read_twice_says_it_once(table, tmp_path, capsys):
    frame = drawn()
    frame["y"] = (frame["y"] > 0).astype(float).where(frame["y"].notna())
    frame.to_csv(table, index=False)  # --report takes 0 and 1 for numbers, after a second look
    options = ["--out", tmp_path / "m", "--report", tmp_path / "m.html"]
    shown = run(capsys, "fit", table, *ROLES, *options)
    assert shown.code == 0
    assert shown.err.count("leading zeros (01000)") == 1


def test_a_code_the_fit_has_not_seen_is_named(table, tmp_path, capsys):
    run(capsys, "fit", table, *ROLES, "--out", tmp_path / "m")
    drawn().assign(zip="01001").to_csv(table, index=False)
    shown = run(capsys, "predict", tmp_path / "m", table)
    assert shown.code == 2
    assert "'zip' has the level '01001'" in shown.err


def test_codes_for_a_model_of_numbers_are_refused(table, tmp_path, capsys):
    numbers = drawn().assign(zip=np.resize([1000, 2000, 10000], 300))
    numbers.to_csv(tmp_path / "numbers.csv", index=False)
    assert run(capsys, "fit", tmp_path / "numbers.csv", *ROLES, "--out", tmp_path / "m").err == ""
    shown = run(capsys, "predict", tmp_path / "m", table)
    assert shown.code == 2
    assert "'zip' of" in shown.err
    assert (
        "(01000), but the model was fitted to numbers in this column; write them without"
        in shown.err
    )


def test_too_many_codes_name_both_ways_out(table, tmp_path, capsys):
    drawn().assign(zip=[f"{j:05}" for j in range(300)]).to_csv(table, index=False)
    shown = run(capsys, "diagnose", table, *ROLES[:6])
    assert shown.code == 2
    assert "300 different strings in 300 rows" in shown.err
    assert "--exclude 'zip', or write it without leading zeros for a number" in shown.err


@pytest.mark.parametrize(
    ("values", "category"),
    [
        (["0", "1", "10"], False),
        (["0.5", "00.5", "1.5"], False),
        (["0", "NA", "007"], True),
        (["1000", "2A045", "01000"], True),
        (["-01", "1", "2"], False),
    ],
)
def test_what_is_a_code(values, category, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b", *(f"{value},1" for value in values)]))
    read = fit_columns(read_table(path), ["a"])["a"]
    assert isinstance(read.dtype, pd.CategoricalDtype) == category
    if category:
        assert list(read.dropna()) == [value for value in values if value != "NA"]
