"""Designs made from arrays."""

import numpy as np

from heckesel.tables.array_design import with_intercept


def test_a_constant_is_put_before_every_row_of_a_long_table():
    values = np.arange(3 * 200_001, dtype=float).reshape(-1, 3)
    np.testing.assert_array_equal(
        with_intercept(values), np.column_stack([np.ones(len(values)), values])
    )
