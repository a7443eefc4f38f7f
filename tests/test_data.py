"""Validation of rows, outcomes and weights before a fit."""

import numpy as np
import pytest

from heckesel.data import selection_data
from heckesel.errors import DataError


@pytest.mark.parametrize("first", [1.0, 0.0])
def test_only_columns_that_are_tiny_in_all_selected_rows_are_refused(first):
    x, y = np.full((200, 1), 1e-200), np.append(np.ones(150), np.full(50, np.nan))
    w = np.random.default_rng(3).standard_normal((200, 1))
    x[149] = first  # beyond the first rows, which are looked at before the others
    x[150:] = 1.0  # of unselected rows, which the outcome equation does not use
    if first:
        assert selection_data(x, w, y).n == 200
    else:
        with pytest.raises(DataError, match="column 'x0' are at most 1e-200 in size"):
            selection_data(x, w, y)
