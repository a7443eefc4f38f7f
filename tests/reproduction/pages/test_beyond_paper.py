"""The page of our own experiments: every number is computed, and a missed target is called so."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reproduction import load, x3_verdict
from reproduction.pages.beyond_paper import (
    CHAPTERS,
    chapter,
    counts,
    ours_md,
    x1_page,
    x2_page,
    x3_page,
    x4_controls,
    x4_page,
)
from reproduction.pages.beyond_paper.main_results import lines, main_results
from reproduction.pages.beyond_paper.markdown import (
    PERCENT,
    decimal,
    mean_and_sd,
    mean_of,
    seed_values,
)
from reproduction.pages.beyond_paper.targets import (
    MET,
    MISSED,
    NOT_RUN,
    SHOWN,
    Requirement,
    not_above,
    target_row,
)
from reproduction.pages.check import SPOT_CHECKS
from reproduction.pages.figure_data import FROM_RESULTS
from reproduction.pages.rows import read_paper, read_results, succeeded

ROOT = Path(__file__).parents[3]
METHOD = "heckman_profile"


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
    ("value", "verdict"),
    [
        (0.030, "met"),
        (0.0301, "missed by less than 0.001"),
        (0.039, "missed by 0.009"),
        (np.nextafter(0.030, 1), "missed by less than 0.001"),
    ],
)
def test_a_limit_is_met_at_its_end_and_missed_beyond(value, verdict):
    assert target_row("", METHOD, Requirement(np.array([value]), high=0.030)).verdict == verdict


def test_a_range_is_missed_on_either_side_in_points():
    for share, verdict in ((0.86, MET), (0.853, "missed by 0.7 points"), (0.95, "missed by 1.0")):
        found = target_row("", METHOD, Requirement(np.array([share]), 0.86, 0.94), form=PERCENT)
        assert found.verdict.startswith(verdict)


def test_the_mean_over_seeds_decides_and_one_bad_requirement_misses_the_target():
    good, bad = (
        Requirement(np.array([0.0, 0.04]), high=0.03),
        Requirement(np.array([0.05, 0.03]), high=0.03),
    )
    assert target_row("", METHOD, good).verdict == MET
    found = target_row("", METHOD, good, bad)
    assert found.verdict == "missed by 0.010"
    assert found.kind == MISSED


def test_a_negative_bias_counts_by_its_size():
    part = Requirement(np.array([-0.2, -0.3]), high=0.05)
    assert target_row("", METHOD, part).verdict == MET
    assert target_row("", METHOD, part, absolute=True).verdict == "missed by 0.200"


def test_what_has_no_rows_is_not_run_and_what_has_no_bound_is_shown():
    assert target_row("", METHOD, Requirement(np.array([]), high=1.0)).verdict == NOT_RUN
    assert (
        target_row("", METHOD, not_above(np.array([1.0]), np.array([]), name="other")).verdict
        == NOT_RUN
    )
    assert target_row("", METHOD, Requirement(np.array([1.0]))).verdict == SHOWN


def test_numbers_are_written_with_the_standard_deviation_over_seeds():
    values = np.array([0.88, 0.92])
    assert mean_and_sd(values, PERCENT) == "90.0 ± 2.0 %"
    assert mean_and_sd(values) == "0.900 ± 0.020"
    assert mean_of(np.array([-1e-5, 0.0])) == "0.000"
    assert [decimal(v) for v in (0.0, 0.3, 1.0)] == ["0", ".3", "1"]


def test_failed_cells_are_skipped_and_counted(results):
    rows = [{"cell": {"seed": 0}, "error": "no luck"}, {"cell": {"seed": 1}, "metrics": {"m": 2.0}}]
    assert succeeded(rows) == [{"seed": 1, "m": 2.0}]
    lost = replace(results, x1=results.x1[5:])
    assert "1152 cells, 5 of them without a result." in ours_md(lost)


def test_each_line_of_the_table_is_the_mean_of_its_rows(results, page):
    """One line of each experiment, recomputed from the rows alone."""

    def mean(rows, metric, **cell):
        found = [row[metric] for row in rows if cell.items() <= row.items()]
        assert len(found) == 8
        return np.mean(found)

    cell = {"draw": "curve", "method": METHOD, "prior": "negative", "alpha": 0.0, "rho": 0.6}
    coverage = mean(results.x1, "coverage90_against", **cell)
    width = mean(results.x1, "width90_against", **cell)
    assert f"| .6 | profile | negative | {100 * coverage:.1f} % | {width:.3f} |" in page
    cell = {"errors": "chi2", "alpha": 0.0, "rho": 0.3}
    methods = ("heckman_auto", METHOD)
    biases = [mean(results.x2, "bias_f0_against", method=each, **cell) for each in methods]
    assert f"| centred χ²(3) | no | .3 | {biases[0]:.3f} | {biases[1]:.3f} |" in page
    cell = {"dataset": "school_tests", "method": "skyline", "rho": 0.8, "members": 10}
    ece = mean(results.x4, "ece_against", **cell)
    coverage = mean(results.x4, "coverage90_against", **cell)
    assert f"| .8 | skyline | {ece:.3f} | {100 * coverage:.1f} % |" in page
    cell = {"dataset": "wine", "method": "skyline", "rho": 0.8}
    assert f"| .8 | skyline, paper | {mean(results.e2, 'ece_against', **cell):.3f} |" in page


def test_a_changed_row_changes_the_page_and_its_verdict(results):
    cell = {"draw": "interactions", "alpha": 0.0, "rho": 0.0, "method": METHOD, "prior": "uniform"}

    def verdict(value):
        rows = changed(results.x1, "coverage90_against", value, **cell)
        found = [
            entry
            for entry in x1_page.targets(replace(results, x1=rows))
            if entry.target == "five columns with interactions, α = 0, ρ = 0: coverage ≥ 87 %"
            and entry.method == "profile"
        ]
        return [(entry.measured, entry.verdict) for entry in found]

    assert verdict(0.9) == [("90.0 ± 0.0 %", "met")]
    assert verdict(0.8) == [("80.0 ± 0.0 %", "missed by 7.0 points")]
    rows = changed(results.x1, "coverage90_against", 0.8, **cell)
    assert "| 80.0 ± 0.0 % | 8 | missed by 7.0 points |" in ours_md(replace(results, x1=rows))


def test_the_best_baseline_is_the_one_to_beat(results):
    cell = {"dataset": "wine", "rho": 0.8}
    rows = changed(results.x4, "nll_against", 0.5, method="weighted_ensemble", **cell)
    found = x4_page.targets(replace(results, x4=rows))
    (line,) = [
        entry
        for entry in found
        if entry.target.startswith("wine quality, ρ = .8: NLL") and entry.method == "two-step"
    ]
    assert "weighted ensemble 0.500" in line.measured
    assert line.kind == MISSED


def test_t_errors_must_bring_rho_nearer_to_the_truth(results):
    def verdict(estimate):
        rows = [
            row | {"method": method, "rho_hat": value}
            for row in results.x4
            if row["dataset"] == "controlled-t" and row["method"] == "heckman_joint"
            for method, value in (
                ("heckman_joint", row["rho"] - 0.1),
                ("heckman_joint_t", estimate),
            )
        ]
        found = x4_controls.targets(replace(results, x4=[*results.x4, *rows][-len(rows) :]))
        return {e.target: e.kind for e in found}[
            "t(5) errors, ρ = .6: bias in ρ smaller than with normal errors"
        ]

    assert verdict(0.65) == MET
    assert verdict(0.75) == MISSED


def test_verdicts_are_compared_with_what_was_true(results):
    """200 data sets a kind: one in 100 is allowed of an irrelevant instrument, none without one."""
    blank = {"rho": 0.0, "n": 500, "width90_against": 1.0, "bias_f0_against": 0.0}

    def rows(kind, wrong, coverage):
        return [
            blank
            | {"instrument": kind, "verdict": float(i >= wrong), "coverage90_against": coverage}
            for i in range(200)
        ]

    def kinds(none, irrelevant, coverage):
        made = rows("none", none, coverage) + rows("irrelevant", irrelevant, coverage)
        made += rows("strong", 200, coverage)
        return [entry.kind for entry in x3_page.targets(replace(results, x3=made))]

    assert kinds(0, 2, 0.9) == [MET, MET, MET]
    assert kinds(1, 3, 0.86) == [MISSED, MISSED, MISSED]
    none_run = replace(results, x3=())
    assert [entry.kind for entry in x3_page.targets(none_run)] == [NOT_RUN] * 3
    assert "### Verdict" not in chapter("x3", none_run)
    text = chapter("x3", replace(results, x3=rows("strong", 150, 0.9)))
    assert "| strong | 500 | 0 | 150 | 50 | 0 | 0 | 0 |" in text


def test_every_data_set_of_the_verdicts_is_counted_where_it_was_drawn(results):
    text = chapter("x3", results).partition("### Coverage")[0]
    lines = re.findall(r"^\| (?:strong|weak|irrelevant|none) \|.*\|$", text, re.MULTILINE)
    counts = [[int(cell) for cell in line.split("|")[4:-1]] for line in lines]
    assert [sum(line) for line in counts] == [len(x3_verdict.SEEDS)] * 36
    written = [row["verdict"] for row in results.x3]
    assert np.sum(counts, axis=0).tolist() == [written.count(float(j)) for j in range(6)]


def test_an_estimate_is_distinguished_from_a_setting_of_the_same_name():
    row = {"cell": {"rho": 0.5, "seed": 1}, "metrics": {"rho": 0.7, "bias": 0.1}}
    assert succeeded([row]) == [{"rho": 0.5, "seed": 1, "rho_hat": 0.7, "bias": 0.1}]


def test_members_on_folds_are_compared_with_the_same_cells_of_the_paper(results):
    before, now = x4_controls.control(results, "heckman_two_step", "n_against", 0.6, 1.0)
    np.testing.assert_array_equal(before, now)  # the same test points in every seed
    assert len(now) == 8


def test_further_draws_are_others_and_the_papers_settings_meet_the_same(results):
    first = {row["seed"] for row in results.x4 if row["dataset"] == "wine"}
    more = [row for row in results.x4 if row["dataset"] == "more wine"]
    assert not first & {row["seed"] for row in more}
    for method in ("heckman_averaged", "skyline", "heckman_two_step_paper", "skyline_paper"):
        sizes = x4_page.values(results, "more wine", method, "n_against")
        assert len(sizes) == 32
        np.testing.assert_array_equal(
            sizes, x4_page.values(results, "more wine", "heckman_two_step", "n_against")
        )


def test_on_further_draws_the_limits_are_skyline_and_paper(results):
    cell = {"dataset": "more wine", "method": "skyline_paper"}
    for limit, kind in ((0.5, MET), (0.001, MISSED)):
        rows = changed(results.x4, "ece_against", limit, **cell)
        row = x4_page.skyline_reached(replace(results, x4=rows), "wine", "heckman_averaged")
        assert row.kind == kind
        assert f"(skyline {limit:.3f})" in row.measured
    one = {"dataset": "more controlled", "method": "heckman_averaged", "rho": 0.6}
    assert x4_page.not_worse(results, "heckman_averaged").kind == MET
    worse = replace(results, x4=changed(results.x4, "ece_against", 0.4, **one))
    assert x4_page.not_worse(worse, "heckman_averaged").kind == MISSED


def test_the_counts_are_those_of_the_rows(results, page):
    run = [module for name, module in CHAPTERS.items() if getattr(results, name)]
    entries = [entry for module in run for entry in module.targets(results)]
    assert counts(entries) in page
    table = page.partition("\n## Targets")[2].partition("\n## X1:")[0]
    for kind in (MET, MISSED, NOT_RUN, SHOWN):
        lines = [line for line in table.splitlines() if re.search(rf"\| {kind}[^|]*\|$", line)]
        assert len(lines) == sum(entry.kind == kind for entry in entries)


def test_every_row_of_a_table_has_as_many_cells_as_its_header(page):
    width = None
    for line in page.splitlines():
        if not line.startswith("|"):
            width = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        width = width or cells
        assert cells == width, line


def test_choices_made_on_test_rows_are_listed(results):
    page = " ".join(chapter("x4", results).split())
    assert "California and wine are not clean tests" in page
    for choice in ("least squares", "2 (1 - 1/k)", "factor of 3"):
        assert choice in page


def test_the_readme_has_the_computed_table(results, page):
    assert main_results(results) in (ROOT / "README.md").read_text(encoding="utf-8")
    assert main_results(results) in page


def test_the_table_of_main_results_agrees_with_the_list_of_targets(results):
    """The same method, mean and verdict, where a target was set; at most eight rows."""
    rows = [row for module in CHAPTERS.values() for row in module.targets(results)]
    found = lines(results)
    assert 0 < len(found) <= 8
    for _, method, _, _, mean, target, result in found:
        if target != "none set":
            start = mean.removesuffix(" %") + " "
            assert any(
                (row.method, row.verdict) == (method, result) and row.measured.startswith(start)
                for row in rows
            ), (method, mean, result)


def test_the_table_of_main_results_quotes_the_papers_own_rows(results):
    """40.3 % is what the paper prints."""
    paper = seed_values(
        read_paper().e1, "coverage90_against", method="heckman_two_step", rho=0.9, alpha=0.0
    )
    share = f"{100 * paper.mean():.1f} %"
    assert f"| coverage of 90 % intervals | {share} |" in main_results(results)
    assert share == "40.3 %"


def test_figures_and_page_show_the_same_numbers(results):
    data = FROM_RESULTS["x1"](results)
    cell = {"alpha": 0.0, "rho": 0.9}
    coverage = x1_page.values(results, "curve", METHOD, "coverage90", **cell)
    assert data["coverage90"][METHOD]["mean"][-1] == pytest.approx(coverage.mean(), rel=1e-5)
    theirs = FROM_RESULTS["fig2"](results)["coverage_without"]["heckman_joint"]
    assert data["coverage90"]["heckman_joint"] == theirs
    panel = FROM_RESULTS["x2"](results)["panels"]["bias_f0 chi2 0"]["spline_joint"]["mean"][0]
    bias = x2_page.values(results, "spline_joint", "bias_f0", errors="chi2", alpha=0.0, rho=0.0)
    assert panel == pytest.approx(bias.mean(), rel=1e-5)
    shown = FROM_RESULTS["x4"](results)
    wine = x4_page.values(results, "wine", "heckman_two_step", "ece_against")
    assert shown["wine"]["now"]["heckman_two_step"]["ece_against"]["mean"] == pytest.approx(
        wine.mean(), rel=1e-5
    )
    theirs = FROM_RESULTS["fig3"](results)["ece_against"]["wine"]["skyline"]
    assert shown["wine"]["paper"]["skyline"]["ece_against"] == theirs


@pytest.mark.parametrize("name", list(SPOT_CHECKS))
def test_cells_run_again_by_make_check_are_cells_of_the_grid(name):
    grid = load(name).cells()
    for cell in SPOT_CHECKS[name]:
        assert type(grid[0])(*cell) in grid
