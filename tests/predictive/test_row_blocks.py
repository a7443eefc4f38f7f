"""Predictions of a long table, block by block."""

import tracemalloc

import numpy as np
import pytest

import heckesel as hk
from heckesel.errors import IdentificationWarning, warn_user
from heckesel.predictive import ROWS_AT_ONCE, in_row_blocks


def test_blocks_are_joined_in_the_order_of_the_rows():
    rows = 3 * ROWS_AT_ONCE + 5
    values = np.random.default_rng(0).normal(size=rows)
    doubled, squared = in_row_blocks(lambda own: (2 * values[own], values[own] ** 2), rows)
    np.testing.assert_array_equal(doubled, 2 * values)
    np.testing.assert_array_equal(squared, values**2)


def test_no_rows_have_no_numbers():
    (found,) = in_row_blocks(lambda own: (np.empty(0)[own],), 0)
    assert found.shape == (0,)


def test_long_tables_are_predicted_in_the_memory_of_a_block():
    draw = hk.datasets.make_controlled(300, rho=0.5, alpha=1.0, seed=0)
    model = hk.DeepHeckmanRegressor(
        instruments=["z"], method="profile", epochs=20, folds=5, random_state=0
    ).fit(draw.frame[["x", "z"]], draw.frame["y"])
    wide = np.tile(draw.frame[["x", "z"]].to_numpy(), (200, 1))
    X = type(draw.frame)(wide, columns=["x", "z"])
    whole = model.predict_distribution(X)
    tracemalloc.start()
    mean, std = model.predict(X, return_std=True)
    interval = model.predict_interval(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_allclose(mean, whole.mean, rtol=1e-5)  # networks are float32
    np.testing.assert_allclose(std, whole.std, rtol=1e-5)
    np.testing.assert_allclose(interval, whole.interval(), rtol=1e-5, atol=1e-5)
    # mean, std and two ends of 60,000 rows are 2 MB; all components at once would be 30 times that
    assert peak < 30e6, f"{peak / 1e6:.0f} MB"


def test_a_warning_of_many_blocks_is_issued_once_at_the_line_of_the_user():
    def numbers(own):
        warn_user("rho is at its limit")
        return (np.zeros(3 * ROWS_AT_ONCE)[own],)

    with pytest.warns(IdentificationWarning, match="rho is at its limit") as said:
        in_row_blocks(numbers, 3 * ROWS_AT_ONCE)
    assert [each.filename for each in said] == [__file__]
