"""X4: the grid, the pools and test rows it shares with A-E1 and A-E2, and one chunk end to end."""

from dataclasses import replace

import numpy as np
import pytest

from heckesel.datasets import make_controlled
from reproduction import e1_controlled, e2_semireal
from reproduction import x4_calibrated as x4


def test_the_grid_has_no_cell_twice_and_chunks_of_one_shape():
    grid = x4.cells()
    assert len(set(grid)) == len(grid)
    chunks = {}
    for cell in grid:
        chunks.setdefault(x4.chunk_of(cell), []).append(cell)
    for cells in chunks.values():
        assert len({(cell.dataset, cell.method, cell.members) for cell in cells}) == 1
    assert {cell.members for cell in grid} == set(x4.MEMBERS)


def test_pools_and_test_rows_are_those_of_the_published_experiments():
    ours = x4.problem(x4.Cell("wine", 0.8, 1.0, 3, "heckman_two_step", 5))
    theirs = e2_semireal.draw_table(*e2_semireal.TABLES["wine"], rho=0.8, seed=3)
    np.testing.assert_array_equal(ours.data.y, theirs.frame["y"])
    np.testing.assert_array_equal(ours.test_truth.y, theirs.test_frame["y"])
    ours = x4.problem(x4.Cell("controlled", 0.9, 1.0, 2, "heckman_two_step", 5))
    theirs = make_controlled(2000, rho=0.9, alpha=1.0, seed=2, sigma=0.5)
    np.testing.assert_array_equal(ours.data.y, theirs.frame["y"])
    assert len(ours.x) == e1_controlled.TEST


@pytest.mark.parametrize("dataset", ["college_gpa", "school_tests"])
def test_half_of_the_outcomes_of_the_further_tables_are_hidden(dataset):
    one = x4.problem(x4.Cell(dataset, 0.8, 1.0, 0, "heckman_two_step", 5))
    *_, pool, test = x4.TABLES[dataset]
    assert one.data.n == pool
    assert one.data.s.mean() == pytest.approx(0.5, abs=1 / pool)
    assert len(one.x) == len(one.test_truth.y) == test


@pytest.mark.parametrize("method", x4.METHODS)
def test_a_chunk_runs_end_to_end(method, monkeypatch):
    network = replace(x4.NETWORK, epochs=20, hidden=(8,))
    monkeypatch.setattr(x4, "NETWORK", network)
    cells = [x4.Cell("school_tests", rho, 1.0, 0, method, 2) for rho in (0.0, 0.8)]
    for row in x4.run_chunk(cells, "cpu"):
        assert all(isinstance(value, float | int) for value in row.values()), row
        assert {"ece_against", "width90_against", "held_out_loss"} <= set(row)


def test_t_errors_meet_data_drawn_from_them(monkeypatch):
    monkeypatch.setattr(x4, "NETWORK", replace(x4.NETWORK, epochs=10, hidden=(8,)))
    (row,) = x4.run_chunk([x4.Cell("controlled-t", 0.9, 1.0, 0, "heckman_joint_t", 2)], "cpu")
    assert row["df_hat"] > 2
    assert "bias_f0_against" in row


def test_the_papers_settings_on_further_draws_are_those_of_a_e2(monkeypatch):
    monkeypatch.setattr(e2_semireal, "NETWORK", replace(e2_semireal.NETWORK, epochs=5))
    (ours,) = x4.run_chunk([x4.Cell("more wine", 0.8, 1.0, 0, "skyline_paper", 5)], "cpu")
    (theirs,) = e2_semireal.run_chunk([e2_semireal.Cell("wine", 0.8, 0, "skyline")], "cpu")
    assert ours == {name: value for name, value in theirs.items() if name in ours}
    assert {"ece_against", "coverage90_well"} <= set(ours)
