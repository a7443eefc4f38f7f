"""The page of our own experiments: every number is computed, and a missed target is called so."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reproduction import load
from reproduction.pages.beyond_paper import all_targets, ours_md, x1_page
from reproduction.pages.beyond_paper.main_results import lines, main_results
from reproduction.pages.beyond_paper.targets import (
    MET,
    MISSED,
    NOT_RUN,
    number_row,
    seeds_row,
)
from reproduction.pages.check import SPOT_CHECKS
from reproduction.pages.figure_data import FROM_RESULTS
from reproduction.pages.rows import read_results, succeeded
from reproduction.pages.truth_page import truth_md

ROOT = Path(__file__).parents[3]
METHOD = "spline_joint"


@pytest.fixture(scope="module")
def results():
    return read_results(ROOT / "results")


@pytest.fixture(scope="module")
def page(results):
    return ours_md(results)


def changed(rows, metric, value, **cell):
    """The rows with one metric set wherever the cell agrees."""
    return [row | {metric: value} if cell.items() <= row.items() else row for row in rows]


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.030], "met"),
        ([0.0301], "missed by less than 0.001"),
        ([0.0, 0.078], "missed by 0.009"),
        ([np.nextafter(0.030, 1)], "missed by less than 0.001"),
        ([], "not run"),
    ],
)
def test_the_mean_over_seeds_decides_and_a_limit_is_met_at_its_end(values, verdict):
    row = seeds_row("", METHOD, np.array(values), high=0.030)
    assert row.verdict == verdict
    assert row.kind == verdict.partition(" by")[0]


def test_one_bad_number_misses_a_target_and_an_unknown_limit_is_not_run():
    assert number_row("", METHOD, (0.02, 0.04), high=(0.03, 0.03)).verdict == "missed by 0.010"
    assert number_row("", METHOD, 0.02, high=np.nan).verdict == NOT_RUN


def test_failed_cells_are_skipped():
    rows = [{"cell": {"seed": 0}, "error": "no luck"}, {"cell": {"seed": 1}, "metrics": {"m": 2.0}}]
    assert succeeded(rows) == [{"seed": 1, "m": 2.0}]


def test_a_changed_row_changes_the_page_and_its_verdict(results):
    cell = {"draw": "curve", "alpha": 0.0, "rho": 0.0, "method": METHOD, "prior": "uniform"}

    def verdict(value):
        rows = changed(results.x1, "coverage90_against", value, **cell)
        found = [
            entry
            for entry in x1_page.targets(replace(results, x1=rows))
            if entry.target == "the paper's curve, α = 0, ρ = 0: coverage ≥ 87 %"
            and entry.method == "profile"
        ]
        return [(entry.measured, entry.verdict) for entry in found]

    assert verdict(0.9) == [("90.0 ± 0.0 %", "met")]
    assert verdict(0.8) == [("80.0 ± 0.0 %", "missed by 7.0 points")]
    rows = changed(results.x1, "coverage90_against", 0.8, **cell)
    assert "| 80.0 ± 0.0 % | missed by 7.0 points |" in ours_md(replace(results, x1=rows))


def test_the_page_has_every_target_once_and_counts_them(results, page):
    entries = [entry for _, entry in all_targets(results)]
    assert len(entries) <= 60
    listed = [line for line in page.splitlines() if line.startswith("| ")][2:]
    assert len(listed) == len(entries)
    for kind in (MET, MISSED, NOT_RUN):
        shown = [line for line in listed if re.search(rf"\| {kind}[^|]*\|$", line)]
        assert len(shown) == sum(entry.kind == kind for entry in entries)
        assert f" {len(shown)} {kind}" in page


def test_every_row_of_a_table_has_as_many_cells_as_its_header(results, page):
    width = None
    for line in [*page.splitlines(), "", *truth_md(results).splitlines()]:
        if not line.startswith("|"):
            width = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        width = width or cells
        assert cells == width, line


def test_the_readme_has_the_computed_table(results):
    assert main_results(results) in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", list(SPOT_CHECKS))
def test_cells_run_again_by_make_check_are_cells_of_the_grid(name):
    grid = load(name).cells()
    for cell in SPOT_CHECKS[name]:
        assert type(grid[0])(*cell) in grid


def test_the_table_of_main_results_has_rows_of_the_list_of_targets(results):
    found = lines(results)
    assert 0 < len(found) <= 8
    listed = {
        (row.method, row.target, row.measured, row.verdict) for _, row in all_targets(results)
    }
    assert {tuple(line[1:]) for line in found} <= listed


def test_each_outcome_has_a_line_with_the_errors_of_its_rows(results):
    page = truth_md(results)
    row = {row["method"]: row for row in results.x6 if row["outcome"] == "disea"}
    (line,) = [line for line in page.splitlines() if "| `disea` |" in line]
    for method in ("naive", "ml", "two-step", "auto"):
        shown = f"{row[method]['error']:+.2f}"
        assert (f"| **{shown}** |" if row[method]["covers"] else f"| {shown} |") in line
    assert sum(line.startswith("| ") and "`" in line for line in page.splitlines()) == 112


def test_figures_and_page_show_the_same_numbers(results):
    data = FROM_RESULTS["x1"](results)
    cell = {"alpha": 0.0, "rho": 0.9}
    coverage = x1_page.values(results, "curve", METHOD, "coverage90", **cell)
    assert data["coverage90"][METHOD]["mean"][-1] == pytest.approx(coverage.mean(), rel=1e-5)
    theirs = FROM_RESULTS["fig2"](results)["coverage_without"]["heckman_joint"]
    assert data["coverage90"]["heckman_joint"] == theirs
