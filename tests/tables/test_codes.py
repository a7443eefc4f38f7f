"""Codes with leading zeros are categories, when a table is read to fit and to predict."""

import io

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.tables.files import read_table
from tests.cli.command_line import run

CODES = ("01000", "02000", "10000")
ROLES = ["--on-problem", "error", "--outcome", "y", "--instruments", "z", "--method", "ml"]


def drawn(n=300):
    draw = hk.datasets.make_controlled(n, rho=0.5, alpha=1.5, seed=3).frame
    return draw.assign(zip=np.resize(CODES, n))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    drawn().to_csv(path, index=False)
    return path


def test_codes_are_fitted_as_categories(table, tmp_path, capsys):
    shown = run(capsys, "fit", table, *ROLES, "--out", tmp_path / "m")
    assert (shown.code, shown.err) == (0, "")
    model = hk.load(tmp_path / "m")
    assert model.columns_.levels == {"zip": CODES}
    shown = run(capsys, "predict", tmp_path / "m", table)
    frame = drawn()
    X = frame.drop(columns="y").astype({"zip": "category"})
    expected = hk.HeckmanRegressor(["z"], method="ml").fit(X, frame["y"]).predict(X)
    found = pd.read_csv(io.StringIO(shown.out), dtype={"zip": str})
    assert list(found["zip"]) == list(frame["zip"])
    np.testing.assert_allclose(found["mean"], expected, rtol=1e-12)


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
    read = read_table(path).columns(["a"])["a"]
    assert pd.api.types.is_numeric_dtype(read) != category
    if category:
        assert list(read.dropna()) == [value for value in values if value != "NA"]
