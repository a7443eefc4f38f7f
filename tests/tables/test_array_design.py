"""Columns of arrays: their names and their constant, through fits."""

import numpy as np
import pytest

import heckesel as hk


def names_of(x, w, s):
    y = np.where(s, np.random.default_rng(1).normal(size=len(s)), np.nan)
    return hk.heckman(y=y, x=x, w=w, method="two-step").data.w_names[1:]


@pytest.mark.filterwarnings("ignore")
def test_equal_columns_have_one_name_wherever_they_stand():
    a, b, c, u = np.random.default_rng(0).standard_normal((4, 400))
    s = c + u > 0
    assert names_of(np.column_stack([a, b]), np.column_stack([c, b, a]), s) == ("w0", "x1", "x0")
    assert names_of(a[:, None], np.column_stack([a, c]), s) == ("x0", "w1")
    gaps = np.where(s, a, np.nan)  # known of the selected only
    assert names_of(np.column_stack([gaps, b]), np.column_stack([a, c]), s) == ("x0", "w1")
