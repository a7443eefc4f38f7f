"""`heckesel diagnose`, and what long or sparse tables do to the evidence."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info

import heckesel as hk
from heckesel.classical.rows import SEVERAL_CORES_FROM, threads_of_blocks
from heckesel.data import selection_data
from heckesel.diagnostics.data_verdict import identify_shape
from heckesel.diagnostics.instrument_strength import probit_verdict
from heckesel.diagnostics.verdict import named_instruments
from tests.cli.command_line import run

N = 600


@pytest.fixture(scope="module")
def drawn():
    return hk.datasets.make_controlled(N, rho=0.5, alpha=1.5, seed=3).frame[["x", "z", "y"]]


def test_a_category_is_named_once():
    assert named_instruments(["carrier[AA]", "carrier[B6]", "hour"]) == ("carrier, hour", False)
    assert named_instruments(["carrier[AA]", "carrier[B6]"]) == ("carrier", True)
    assert named_instruments(["drive[1]"]) == ("drive[1]", True)  # of two levels
    assert named_instruments(["z"]) == ("z", True)


def test_a_level_that_a_sample_lacks_does_not_hide_the_profile(drawn):
    """Without a column that separates these rows, the evidence is that of the others."""
    x, z, y = drawn[["x"]].to_numpy(), drawn["z"].to_numpy(), drawn["y"].to_numpy()
    level = np.isfinite(y) & (np.arange(N) < 60)
    names = {"x_names": ("x",), "w_names": ("x", "z", "level")}
    data = selection_data(x, np.column_stack([x, z, level]), y, **names)
    rest = replace(data, w=data.w[:, :2], w_names=("x", "z"))
    found = probit_verdict(rest)
    expected, shown = (identify_shape(found, each).evidence for each in (rest, data))
    assert shown["rows_profiled"] == N
    for name in ("rho", "rho_low", "rho_high", "residual_skewness"):
        assert shown[name] == pytest.approx(expected[name], rel=1e-9)  # sums in another order


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


def test_the_memory_of_a_verdict_does_not_grow_with_the_number_of_levels():
    """3,000 different strings in 6,000 rows; one 0/1 column for each takes 144 MB."""
    rng = np.random.default_rng(0)
    n = 6000
    x, z, u = rng.normal(size=(3, n))
    days = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1200, n), "D")
    X = pd.DataFrame({"x": x, "z": z, "who": rng.integers(0, 3000, n), "day": days.astype(str)})
    X["who"] = "u" + X["who"].astype(str)
    y = np.where(x + z + u > 0, x + u, np.nan)
    tracemalloc.start()
    found = hk.identify(X, y, instruments=["z"], on_problem="fix")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.evidence["rows"] == n
    assert peak < 100e6
