"""Designs made from arrays."""

import numpy as np

from heckesel.tables.formula import array_design, columns_from_arrays, with_intercept

NO_OPTIONS = {"selected": None, "weights": None, "scale": None}


def test_a_constant_is_put_before_every_row_of_a_long_table():
    values = np.arange(3 * 200_001, dtype=float).reshape(-1, 3)
    np.testing.assert_array_equal(
        with_intercept(values), np.column_stack([np.ones(len(values)), values])
    )


def test_x_is_not_copied_where_w_starts_with_it():
    x, z = np.random.default_rng(0).standard_normal((2, 70_000))
    y, w = np.where(z > 0, x, np.nan), np.column_stack([x, z])
    data, design = columns_from_arrays(y, x, w, **NO_OPTIONS)
    assert np.shares_memory(data.x, data.w)
    assert data.x_starts_w
    np.testing.assert_array_equal(data.x, with_intercept(x[:, None]))
    assert design.w_names == ("x0", "w1")
    x = x.copy()
    x[-1] += 1.0  # in the second block of rows
    other, design = columns_from_arrays(y, x, w, **NO_OPTIONS)
    assert not other.x_starts_w
    np.testing.assert_array_equal(other.x, with_intercept(x[:, None]))
    assert design.w_names == ("w0", "w1")


def test_equal_columns_have_one_name_wherever_they_stand():
    a, b, c = np.random.default_rng(0).standard_normal((3, 100))
    design = array_design(np.column_stack([a, b]), np.column_stack([c, b, a]))
    assert design.w_names == ("w0", "x1", "x0")
    gaps = np.where(c > 0, a, np.nan)  # known of the selected only
    design = array_design(np.column_stack([gaps, b]), np.column_stack([a, c]))
    assert design.w_names == ("x0", "w1")
