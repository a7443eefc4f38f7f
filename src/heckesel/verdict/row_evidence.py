"""Evidence that needs no error model: exact copies of rows, and nonlinearity of the outcome."""

from itertools import combinations

import numpy as np

from heckesel.classical.covariance import wald_test
from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.verdict.strength import MOST_COLUMNS, ROWS_PER_COLUMN
from heckesel.verdict.validity.overidentification import (
    new_columns,
    second_step,
    selection_columns,
)
from heckesel.verdict.validity.validity_sample import validity_sample

SEED = 20_793  # fixed, so that the same data always give the same verdict
MANY_COPIES = 0.05  # share of the selected rows
CONTINUOUS = 0.9  # values of the outcome for each distinct row, above which ties are copies
FEWEST_VALUES = 3  # of a column whose square contains new information


def repeated_rows(data: SelectionData) -> dict:
    """How many selected rows repeat another one exactly, if they are many and the outcome otherwise
    has a different value in every row."""
    y, n1 = data.y[data.s], int(data.s.sum())
    values = len(np.unique(y))
    if n1 - values < MANY_COPIES * n1:
        return {}
    rows = len(np.unique(np.column_stack([data.w[data.s], data.x[data.s], y]), axis=0))
    if n1 - rows < MANY_COPIES * n1 or values < CONTINUOUS * rows:
        return {}
    return {"repeated_rows": n1 - rows}


def linearity_test(data: SelectionData) -> dict:
    r"""Whether squares and products of x add to the mean outcome of the selected.

    If the outcome equation is linear, that mean is :math:`x'\beta + g(w'\gamma, x)` whatever the
    distribution of the errors. A Wald test adds the squares, and products as far as rows allow, to
    a regression on x and the functions of the index that `overidentification` uses.
    """
    try:
        sample = validity_sample(data.take(data.weight > 0), SEED)
    except DataError:  # a random part may be collinear although all rows are not
        return {}
    varies = np.ptp(data.x[data.s], axis=0) > 0
    names = [name for name, own in zip(data.x_names, varies, strict=True) if own]
    if not names or sample.x.shape[1] != len(names):
        return {}
    x = (sample.x - sample.x.mean(axis=0)) / sample.x.std(axis=0)
    generated, slopes = selection_columns(sample)
    linear = np.column_stack([np.ones(len(x)), x])
    used = new_columns(linear, generated)
    room = min(len(x) // ROWS_PER_COLUMN, MOST_COLUMNS) - linear.shape[1] - len(used)
    terms = _terms(x, names, room)
    labels, columns = list(terms), np.column_stack([linear[:, :0], *terms.values()])
    new = new_columns(np.column_stack([linear, generated[:, used]]), columns)
    if not new:
        return {}
    fixed = np.column_stack([columns[:, new], linear])
    step = second_step(sample, fixed, generated[:, used], slopes[:, used], sample.y[sample.s])
    found, covariance = step.coefficients[: len(new)], step.covariance[: len(new), : len(new)]
    _, p = wald_test(found, covariance)
    if not np.isfinite(p):
        return {}
    t = np.abs(found) / np.sqrt(np.diag(covariance))
    return {
        "linearity_p": float(p),
        "most_curved": labels[new[int(t.argmax())]],
    }


def _terms(x, names, room: int) -> dict[str, np.ndarray]:
    """Squares and products by name; empty if there are too few rows."""
    several = [j for j in range(len(names)) if len(np.unique(x[:, j])) >= FEWEST_VALUES]
    squares = {f"{names[j]} squared": x[:, j] ** 2 for j in several}
    pairs = list(combinations(range(len(names)), 2))
    products = {f"{names[i]} times {names[j]}": x[:, i] * x[:, j] for i, j in pairs}
    if len(squares) + len(products) <= room:
        return squares | products
    return squares if len(squares) <= room else {}
