"""The draws that all methods of a grid share: made once, the published ones, and left alone."""

from dataclasses import replace

import numpy as np
import pytest

from heckesel.datasets import make_controlled
from reproduction import e1_controlled, e2_semireal

CELL = e1_controlled.Cell(0.9, 1.0, 3, "")
WINE = e2_semireal.Cell("wine", 0.8, 3, "")


def fresh_controlled():
    pool, test = (
        make_controlled(n, rho=0.9, alpha=1.0, sigma=0.5, seed=seed)
        for n, seed in ((2000, 3), (3000, 10_003))
    )
    return pool.frame, pool.truth, test.frame[["x"]], test.truth


def fresh_wine():
    one = e2_semireal.draw_table(*e2_semireal.TABLES["wine"], rho=WINE.rho, seed=WINE.seed)
    return one.frame, one.truth, one.test_frame.drop(columns="y"), one.test_truth


@pytest.mark.parametrize(
    ("module", "cell", "fresh"),
    [(e1_controlled, CELL, fresh_controlled), (e2_semireal, WINE, fresh_wine)],
    ids=["e1", "e2"],
)
def test_every_method_finds_the_draws_as_they_were_made(module, cell, fresh, monkeypatch):
    monkeypatch.setattr(module, "NETWORK", replace(module.NETWORK, epochs=2))
    shared = module.problem(cell)
    for method in module.METHODS:
        assert module.problem(replace(cell, method=method)) is shared
        (row,) = module.run_chunk([replace(cell, method=method)], "cpu")
        assert np.isfinite(row["coverage90"])
    frame, truth, x, test_truth = fresh()
    np.testing.assert_array_equal(shared.data.w[:, -1], frame["z"])
    np.testing.assert_array_equal(shared.data.x, frame[list(x)])
    np.testing.assert_array_equal(shared.data.y, frame["y"])
    np.testing.assert_array_equal(shared.x, x)
    for ours, drawn in ((shared.truth, truth), (shared.test_truth, test_truth)):
        for name, values in vars(drawn).items():
            np.testing.assert_array_equal(getattr(ours, name), values, err_msg=name)


def test_a_row_does_not_depend_on_the_cells_beside_it(monkeypatch):
    monkeypatch.setattr(e1_controlled, "NETWORK", replace(e1_controlled.NETWORK, epochs=3))
    own = replace(CELL, method="mc_dropout")
    (alone,) = e1_controlled.run_chunk([own], "cpu")
    beside = e1_controlled.run_chunk([replace(own, seed=5), own], "cpu")
    # Products of one network and of several are other routines: float32 rounding of three epochs.
    assert beside[1] == pytest.approx(alone, rel=1e-4)
