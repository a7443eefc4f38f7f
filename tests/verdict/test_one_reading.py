"""`heckesel diagnose`, and what long or sparse tables do to the evidence."""

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info

import heckesel as hk
from heckesel.classical.rows import SEVERAL_CORES_FROM, threads_of_blocks
from tests.cli.command_line import run

N = 600


@pytest.fixture(scope="module")
def drawn():
    return hk.datasets.make_controlled(N, rho=0.5, alpha=1.5, seed=3).frame[["x", "z", "y"]]


def test_products_of_blocks_use_one_thread():
    def blas():
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    before = blas()
    with threads_of_blocks(SEVERAL_CORES_FROM):
        assert blas() == {1}
    assert blas() == before
    with threads_of_blocks(100):
        assert blas() == before


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


def test_wide_numbers_do_not_touch(drawn):
    fit = hk.heckman("y ~ x", "~ x + z", drawn.assign(y=-45_678.9 * drawn["y"]))
    block = str(fit.summary()).split("y:\n")[1].split("-----")[0]
    assert [len(line.split()) for line in block.splitlines()] == [7, 7]
    low = float(block.split()[5])
    assert low == pytest.approx(fit.conf_int().iloc[0]["low"], rel=1e-3)


def test_text_columns_are_stripped_as_one_by_one():
    values = pd.Series([" a", "NA ", None, "a", "", "07", " n/a "], index=[3, 1, 4, 1, 5, 9, 2])
    from heckesel.tables.values import first_code, stripped

    found, absent = stripped(values)
    assert list(found) == ["a", "NA", "", "a", "", "07", "n/a"]
    assert list(absent) == [False, True, True, False, True, False, True]
    assert list(found.index) == list(values.index)
    assert first_code(found) == "07"
