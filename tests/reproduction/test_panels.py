"""Reporting panels: the rules hold, and where the model is right the hidden scores come back."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heckesel.errors import DataError
from reproduction import e4_panels, e4_timm
from reproduction.e0_gate import draw_linear
from reproduction.reporting_panel import ability, build_panel, pair_frame, panel_frame

PUBLISHED = json.loads((Path(__file__).parents[1] / "reference" / "e4_published.json").read_text())
needs_data = pytest.mark.skipif(
    not os.environ.get("HECKESEL_DATA"),
    reason="HECKESEL_DATA does not name a folder with the benchmark files, which do not ship",
)


def results(*rows):
    """rows : (paper, dataset, metric, value, date)"""
    frame = pd.DataFrame(rows, columns=["paper", "dataset", "metric", "value", "date"])
    return frame.assign(task="Reading", date=pd.to_datetime(frame["date"]))


def ladder(rows=40):
    """Paper i scores i on A, and 100 - i on B if i is below 30; C has one paper of its own."""
    found = [(f"p{i:02}", "A", "Top-1", float(i), "2020-01-01") for i in range(rows)]
    found += [(f"p{i:02}", "B", "BLEU", 100.0 - i, "2021-01-01") for i in range(30)]
    found += [(f"p{i:02}", "D", "mAP", 5.0, "2022-01-01") for i in range(30, rows)]
    return [*found, ("alone", "C", "F1", 3.0, "2020-01-01")]


SD_OF_30 = np.sqrt((30**2 - 1) / 12)  # of 0, 1, ..., 29, divisor n
SD_OF_40 = np.sqrt((40**2 - 1) / 12)


def test_a_panel_worked_out_by_hand():
    panel = build_panel(results(*ladder(), ("p00", "A", "Top-1", None, None)), "Reading", "paper")
    a = (np.arange(40) - 19.5) / SD_OF_40
    b = (14.5 - np.arange(30)) / SD_OF_30
    assert list(panel.scores) == ["A", "B", "D"]
    np.testing.assert_allclose(panel.scores["A"], a, atol=1e-12)
    np.testing.assert_allclose(panel.scores["B"], [*b, *[np.nan] * 10], atol=1e-12)
    assert panel.scores["D"].dropna().tolist() == [0.0] * 10  # equal scores: sd 0
    assert panel.unreported == ("C",)
    assert panel.unparsed == 1
    frame = panel_frame(panel)
    assert frame["dataset"].tolist() == ["A", "B", "D"] * 40
    np.testing.assert_allclose(frame["ability"][:3], [b[0], a[0], (a[0] + b[0]) / 2], atol=1e-12)
    np.testing.assert_allclose(frame["ability"][90:93], [0.0, a[30] / 2, a[30]], atol=1e-12)


def test_ability_leaves_the_own_score_out():
    rng = np.random.default_rng(4)
    scores = pd.DataFrame(rng.normal(size=(30, 5))).where(rng.uniform(size=(30, 5)) < 0.4)
    assert (scores.notna().sum(axis=1) == 1).any()  # a row whose one cell has no others
    # pandas' mean passes over what is missing, and of nothing it is NaN
    expected = [[scores.loc[i].drop(j).mean() for j in scores] for i in scores.index]
    np.testing.assert_allclose(ability(scores), expected, atol=1e-12)


def test_pairs_have_twelve_reported_targets_and_at_most_95_per_cent():
    counts = {"T96": 96, "T95": 95, "T50": 50, "T13": 13, "T12": 12, "T11": 11}
    rows = [(f"p{i:03}", "anchor", "AP", float(i), None) for i in range(100)]
    for name, count in counts.items():
        rows += [(f"p{i:03}", name, "AP", float(i % 7), None) for i in range(count)]
    rows += [(f"p{i:03}", "rest", "AP", 1.0, None) for i in range(96, 100)]
    panel = build_panel(results(*rows), "Reading", "paper")
    assert panel.anchor == "anchor"
    assert panel.targets == ["T95", "T50", "T13", "T12"]  # T96 is too full, T11 a sixth
    assert len(pair_frame(panel, "T50")) == 100
    assert pair_frame(panel, "T50")["score"].notna().sum() == 50


def test_the_panels_cannot_be_listed_without_the_data(monkeypatch):
    monkeypatch.delenv("HECKESEL_DATA", raising=False)
    e4_panels.load_panel.cache_clear()
    for load, _ in e4_panels.SOURCES.values():
        load.cache_clear()
    with pytest.raises(DataError, match="does not ship"):
        e4_panels.cells()


def pairs(n, *, rho=0.5, seed=1):
    frame = draw_linear(n, rho=rho, seed=seed)
    return frame.rename(columns={"y": "score", "x": "anchor", "z": "age"})


def test_a_row_holds_the_estimates_of_both_fits_and_nothing_json_cannot_write():
    row = e4_panels.fit_row(pairs(4000), "anchor")
    json.dumps(row, allow_nan=False)
    assert all(isinstance(value, float) for value in row.values())
    # z is omitted here, so the error of the index is z + u, of variance 2
    assert row["rho_low"] < 0.5 / np.sqrt(2) < row["rho_high"]
    assert row["mode_0_rho"] == row["rho"]
    assert row["mode_0_loglik"] == pytest.approx(row["loglik"])
    assert "wald_age" not in row


def test_a_fit_with_an_instrument_is_shown_with_the_fit_without_it_on_the_same_cells():
    frame = pairs(6000)
    frame["age"] += 5.0
    frame.loc[:9, "age"] = np.nan
    frame.loc[10:29, "age"] = -1.0
    row = e4_panels.fit_row(frame, "anchor", "age")
    assert (row["n"], row["n_undated"], row["n_not_yet_there"]) == (5970.0, 10.0, 20.0)
    assert abs(row["rho"] - 0.5) < 4 * row["rho_se"]
    again = e4_panels.fit_row(frame[frame["age"] > 0], "anchor")
    assert row["rho_without"] == pytest.approx(again["rho"], abs=1e-8)


def normal_panel(rows=2500, columns=5, seed=8):
    """One factor: given the ability of a cell its residual is normal with the same variance."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(rows, 1)) + 0.7 * rng.normal(size=(rows, columns))
    scores = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    return pd.DataFrame(scores, columns=[f"D{j}" for j in range(columns)])


def test_half_of_the_cells_are_hidden_and_at_rho_zero_not_by_their_residual():
    scores = normal_panel()
    m = ability(scores).to_numpy()
    r = scores.to_numpy() - m * (m * scores.to_numpy()).sum() / (m * m).sum()
    r /= r.std()
    for rho in (0.0, 0.8):
        seen = e4_timm.hide(scores, rho=rho, alpha=1.0, seed=3).reported.to_numpy()
        assert seen.sum() == scores.size / 2
        # the index has variance 3 and is cut at its median: E[r | seen] = rho sqrt(2/pi)/sqrt(3)
        expected = rho * np.sqrt(2 / np.pi) / np.sqrt(3)
        assert abs(r[seen].mean() - expected) < 4 / np.sqrt(scores.size / 2)
        assert m[seen].mean() > m[~seen].mean()


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_on_a_normal_panel_hidden_scores_are_recovered(monkeypatch, method):
    monkeypatch.setattr(e4_timm, "complete_scores", normal_panel)
    row = e4_timm.run_cell(e4_timm.Cell("known", 0.8, 1.0, 0, method))
    naive = e4_timm.run_cell(e4_timm.Cell("known", 0.8, 1.0, 0, "least squares"))
    # 6250 hidden cells of sd .6; twice the error for what is estimated, and half a point of
    # coverage is one and a third of its own standard errors
    assert abs(row["bias"]) < 2 * 4 * 0.6 / np.sqrt(6250)
    assert abs(row["rho"] - 0.8) < 0.08
    assert abs(row["coverage90"] - 0.9) < 0.02
    assert naive["bias"] > 0.2
    opposite = e4_timm.run_cell(e4_timm.Cell("known", -0.8, 1.0, 0, "least squares"))
    assert opposite["bias"] < -0.2
    assert opposite["abs_bias"] > 0.2
    assert naive["rmse"] > row["rmse"]
    assert naive["rank_correlation"] < row["rank_correlation"] <= 1


def test_the_grids_are_those_announced():
    grid = e4_timm.cells()
    assert len(set(grid)) == len(grid) == 2 * 3 * 2 * 8 * 3
    assert set(e4_timm.cells(quick=True)) <= set(grid)
    assert len({e4_timm.chunk_of(cell) for cell in grid}) == 12


@needs_data
@pytest.mark.filterwarnings("ignore:.*not numbers")
def test_most_real_fits_end_at_the_boundary_as_in_the_paper():
    published = [fit for found in PUBLISHED["tasks"].values() for fit in found["boundary"]]
    assert (sum(published), len(published)) == (8, 13)
    rows = [
        e4_panels.run_cell(cell)
        for cell in e4_panels.cells()
        if cell.source == "by_paper_2022" and not cell.instrument
    ]
    assert len(rows) == 13
    assert sum(row["boundary"] for row in rows) > 6
    assert any(row["rho"] > 0.99 for row in rows)
    assert any(row["rho"] < -0.99 for row in rows)
    assert all("rho_se" not in row for row in rows if row["boundary"])
    assert sum("unreported: S3DIS Area5" in row for row in rows) == 1
    assert sum("complete: COCO test-dev" in row for row in rows) == 1
