"""The truth table: outcomes are hidden as the specification says, as figures of others show."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heckesel.datasets import load_rand_hie
from heckesel.errors import DataError
from reproduction.truth import sources
from reproduction.truth.judge import judge, least_squares
from reproduction.truth.sources import OUTCOMES, SOURCES, Source, load_outcome

TABLES = [name for name, of in SOURCES.items() if (of.file or "").startswith("truth/")]
TRUTH = Path(os.environ.get("HECKESEL_DATA", "")) / "truth"
needs_tables = pytest.mark.skipif(
    not (TRUTH / "README.md").exists(), reason="HECKESEL_DATA has no folder truth"
)


def test_the_table_has_twenty_sources_and_their_flags():
    assert len(SOURCES) == 20
    assert len(set(OUTCOMES)) == len(OUTCOMES) == 112
    assert {name for name, of in SOURCES.items() if of.strong} == {
        "HIV tests",
        "health insurance",
        "college_star",
        "flu_shots",
        "legislator_email",
        "oregon_medicaid",
        "sugarcane_insurance",
    }
    assert {name for name, of in SOURCES.items() if of.doubtful} == {"college", "mothers"}
    assert {name for name, of in SOURCES.items() if not of.has_instrument} == {
        "mortgages",
        "panel survey",
    }


@needs_tables
@pytest.mark.parametrize("name", TABLES)
def test_equations_are_those_of_the_data_s_own_specification(name):
    given, of = json.loads((TRUTH / "spec.json").read_text())[name], SOURCES[name]
    assert (of.instruments, of.cluster) == (given["z"], given["cluster"])
    assert of.outcomes == list(given["outcomes"])
    for outcome, columns in given["outcomes"].items():
        assert sorted(of.equation(outcome)) == sorted([*columns, *given["cat"]])


def published_figures() -> dict:
    """(table, outcome) -> units and naive error in the README of the data."""
    found, table = {}, ""
    for line in (TRUTH / "README.md").read_text().splitlines():
        table = line[3:].split(":")[0] if line.startswith("## ") else table
        if row := re.match(r"\| `(\w+)` \| ([\d,]+) \| (-?\.\d+) \|", line):
            found[table, row[1]] = int(row[2].replace(",", "")), float(row[3])
    return found


@needs_tables
@pytest.mark.parametrize("name", TABLES)
def test_the_naive_errors_are_those_of_the_data_s_own_readme(name):
    """Printed to three decimals; the mean of the hidden by least squares less the truth."""
    figures = {key: found for key, found in published_figures().items() if key[0] == name}
    assert len(figures) == len(SOURCES[name].outcomes)
    rows = judge(lambda x, y, instruments, groups: 0.0, figures)
    for key, (n, error) in figures.items():
        assert rows.loc[key, "n"] == n
        assert rows.loc[key, "naive_error"] == pytest.approx(error, abs=6e-4)


def test_an_estimator_is_judged_without_seeing_what_is_hidden():
    """Least squares of its own is the naive estimate; the frame has the errors of its interval."""
    seen = []

    def estimate(x, y, instruments, groups):
        seen.append((y.isna().sum(), instruments, groups))
        mean = least_squares(x, y, instruments, groups)
        rows = np.tile([0.0, 30.0], (y.isna().sum(), 1))
        rows[5:] = np.nan
        return mean, mean - 1, mean + 2, rows

    (row,) = judge(estimate, [("health insurance", "disea")]).to_dict("records")
    frame = load_rand_hie("cameron_trivedi")
    assert seen == [((frame["binexp"] == 0).sum(), ["logc", "idp"], None)]
    assert row["truth"] == pytest.approx(frame.loc[frame["binexp"] == 0, "disea"].mean())
    assert row["error"] == pytest.approx(row["naive_error"], rel=1e-12)
    assert row["error"] == pytest.approx((row["naive"] - row["truth"]) / row["sd"])
    assert row["width"] == pytest.approx(3 / row["sd"])
    assert row["covers_exactly"] == float(row["naive"] - 1 <= row["truth"])
    first = frame.loc[frame["binexp"] == 0, "disea"].iloc[:5]
    assert row["rows_covered"] == first.between(0, 30).mean()


def test_a_failing_estimator_is_recorded():
    def fails(x, y, instruments, groups):
        raise ValueError("no")

    rows = judge(fails, [("health insurance", "disea")])
    assert rows["failed"].tolist() == ["ValueError: no"]
    assert "error" not in rows


@needs_tables
def test_one_sided_sources_select_nobody_in_one_arm():
    for name, of in SOURCES.items():
        if of.randomised and len(of.instruments) == 1:
            known = load_outcome(name, of.outcomes[0])
            shares = known.y.notna().groupby(known.x[of.instruments[0]]).mean()
            assert ((shares > 0).sum() < 2) == of.one_sided, name


def test_hidden_outcomes_are_those_of_the_unselected():
    known, frame = load_outcome("health insurance", "disea"), load_rand_hie("cameron_trivedi")
    unselected = frame["binexp"].to_numpy() == 0
    np.testing.assert_array_equal(known.hidden, unselected)
    np.testing.assert_array_equal(known.truth, frame["disea"][unselected])
    assert "disea" not in known.x
    assert known.hidden_rows_known.all()
    assert known.groups is None


@pytest.fixture
def small(monkeypatch):
    """Five units, read from memory; the outcome is unknown for two, covariates are missing."""
    frame = pd.DataFrame(
        {
            "in": [1, 1, 0, 0, 0],
            "y": [1.0, np.nan, 3.0, np.nan, 5.0],
            "a": [0.0, 1.0, 2.0, 3.0, np.nan],
            "town": ["A", "B", None, "A", "B"],
            "code": [1, 2, 3, 3, 1],
            "cluster": [7.0, 7.0, 8.0, np.nan, np.nan],
        }
    )
    monkeypatch.setattr(sources, "_table", lambda file: frame)
    given = {
        "file": "small.csv",
        "selected": "`in` == 1",
        "instruments": [],
        "randomised": False,
        "categories": ["code", "town"],
        "covariates": ["a"],
        "cluster": "cluster",
        "outcomes": ["y"],
    }

    def load(**changes):
        monkeypatch.setitem(sources.SOURCES, "small", Source(**given | changes))
        return load_outcome("small", "y")

    return load


def test_missing_covariates_get_their_mean_or_a_level(small):
    known = small()
    assert known.x["a"].tolist() == [0.0, 2.0, 1.0]
    assert known.x["town"].tolist() == ["A", "missing", "B"]
    assert known.x["code"].tolist() == ["1", "3", "1"]
    assert known.groups.tolist() == ["7.0", "8.0", "row 2"]
    assert known.truth.tolist() == [3.0, 5.0]


def test_rows_with_a_missing_covariate_can_be_dropped(small):
    known = small(missing="drop", categories=[])
    assert known.truth.tolist() == [3.0]
    assert known.y.dropna().tolist() == [1.0]


def test_a_follow_up_keeps_unselected_units_whose_outcome_is_unknown(small):
    known = small(follow_up=["y"])
    assert known.hidden.tolist() == [False, True, True, True]
    assert known.hidden_rows_known.tolist() == [True, False, True]
    assert known.truth.tolist() == [3.0, 5.0]


def test_a_missing_table_names_its_package(monkeypatch):
    monkeypatch.delenv("HECKESEL_DATA", raising=False)
    monkeypatch.setattr(sources, "find_spec", lambda package: None)
    sources._table.cache_clear()
    with pytest.raises(DataError, match=r"Python package statspai 1\.40\.2"):
        SOURCES["HIV tests"].read()
    sources._table.cache_clear()


def test_another_version_of_a_package_is_refused(monkeypatch, tmp_path):
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "card.csv.bz2").write_bytes(b"other")
    spec = type("Spec", (), {"origin": str(tmp_path / "__init__.py")})
    monkeypatch.setattr(sources, "find_spec", lambda package: spec)
    sources._table.cache_clear()
    with pytest.raises(DataError, match="has SHA-256"):
        SOURCES["college"].read()
    sources._table.cache_clear()
