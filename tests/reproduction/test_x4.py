"""X4: the grid, the pools and test rows it shares with A-E1 and A-E2, and one chunk end to end."""

from dataclasses import replace

import numpy as np
import pytest

from heckesel.datasets import make_controlled
from reproduction import e1_controlled, e2_semireal
from reproduction import x4_calibrated as x4


def test_the_grid_has_no_cell_twice_and_chunks_of_one_method():
    grid = x4.cells()
    assert len(set(grid)) == len(grid) == 2 * 14 * len(x4.METHODS) + 64 * len(x4.CONTROL_METHODS)
    chunks = {x4.chunk_of(cell): (cell.dataset, cell.method) for cell in grid}
    assert len(chunks) == len(set(chunks.values()))


def test_pools_and_test_rows_are_those_of_a_e1_and_a_e2():
    ours = x4.problem(x4.Cell("controlled", 0.9, 1.0, 3, "heckman_two_step"))
    theirs = make_controlled(e1_controlled.POOL, rho=0.9, alpha=1.0, seed=3, sigma=0.5)
    np.testing.assert_array_equal(ours.data.y, theirs.frame["y"])
    assert len(ours.x) == e1_controlled.TEST
    cell = e2_semireal.Cell("wine", 0.8, 0, "skyline")
    wine = x4.problem(x4.Cell("wine", 0.8, 1.0, 0, "skyline"))
    np.testing.assert_array_equal(wine.x, e2_semireal.problem(cell).x)


@pytest.mark.parametrize("method", [m for m in x4.METHODS if m != x4.AUTO])
def test_a_chunk_runs_end_to_end(method, monkeypatch):
    network = replace(x4.NETWORK, n_members=2, folds=2, epochs=10, hidden=(8,))
    monkeypatch.setattr(x4, "NETWORK", network)
    for row in x4.run_chunk([x4.Cell("wine", 0.8, 1.0, 0, method)], "cpu"):
        assert all(isinstance(value, float | int) for value in row.values()), row
        assert {"ece_against", "width90_against", "coverage90_well"} <= set(row)
