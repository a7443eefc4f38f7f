"""`heckesel diagnose`, and what long or sparse tables do to the evidence."""

import numpy as np
import pytest

import heckesel as hk
from tests.cli.command_line import run

N = 600


@pytest.fixture(scope="module")
def drawn():
    return hk.datasets.make_controlled(N, rho=0.5, alpha=1.5, seed=3).frame[["x", "z", "y"]]


def test_diagnose_says_in_one_sentence_why_no_instrument_can_be_used(drawn, tmp_path, capsys):
    drawn.assign(z=1).to_csv(tmp_path / "t.csv", index=False)
    shown = run(capsys, "diagnose", tmp_path / "t.csv", "--outcome", "y", "--instruments", "z")
    assert (shown.code, shown.out, shown.err.count("\n")) == (2, "", 1)
    assert shown.err.startswith("heckesel: no instrument can be used (z: omitted, since it is")


def test_instruments_are_tested_on_the_scale_of_the_outcome(drawn):
    X, y = drawn[["x", "z"]], drawn["y"]
    expected = hk.test_instruments(X, y, instruments=["z"])
    found = hk.test_instruments(X, np.exp(y), instruments=["z"], target_transform="log")
    assert found.p_value == pytest.approx(expected.p_value, abs=1e-12)
    marked = np.exp(y).fillna(-1)
    options = {"target_transform": "log", "unobserved": -1}
    found = hk.test_instruments(X, marked, instruments=["z"], **options)
    assert found.p_value == pytest.approx(expected.p_value, abs=1e-12)


def test_a_report_knows_unobserved_values(drawn):
    X, y = drawn[["x", "z"]].assign(twice=2 * drawn["y"].fillna(0)), drawn["y"]
    expected = hk.column_report(X, y, instruments=["z"])
    assert "it is the outcome" in str(expected)
    for code, values in ((0, y.fillna(0)), ("-", y.astype(object).where(y.notna(), "-"))):
        found = hk.column_report(X, values, instruments=["z"], unobserved=code)
        assert found.entries == expected.entries
