"""Bounds with an instrument against linear programs over the means they allow."""

import numpy as np
import pytest
from scipy.optimize import linprog

import heckesel as hk

LOW, HIGH = -2.0, 6.0


def data(n=300, values=4, seed=0):
    rng = np.random.default_rng(seed)
    v = rng.integers(0, values, n)
    y = np.clip(rng.normal(size=n) + 0.1 * v, LOW, HIGH)
    seen = rng.random(n) < np.array([0.9, 0.5, 0.8, 0.6])[v]
    return np.where(seen, y, np.nan), v


def extremes(y, v, *, monotone: bool):
    """The mean is smallest, and largest, subject to the worst-case bounds at each value."""
    values = np.unique(v)
    share = np.array([(v == u).mean() for u in values])
    ends = [[np.where(np.isnan(y), end, y)[v == u].mean() for end in (LOW, HIGH)] for u in values]
    steps = np.eye(len(values))[:-1] - np.eye(len(values))[1:]  # m_u - m_{u+1} <= 0
    constraint = {"A_ub": steps, "b_ub": np.zeros(len(steps))}
    if not monotone:
        constraint |= {"A_eq": steps, "b_eq": np.zeros(len(steps))}
    found = [linprog(sign * share, bounds=ends, **constraint) for sign in (1, -1)]
    assert all(each.success for each in found)
    return found[0].fun, -found[1].fun


@pytest.mark.parametrize(
    ("name", "monotone"), [("monotone instrument", True), ("instrument", False)]
)
def test_bounds_are_the_extremes_that_a_linear_program_finds(name, monotone):
    y, v = data()
    found = hk.bounds(y, LOW, HIGH, instrument=v).to_frame().loc[name]
    expected = extremes(y, v, monotone=monotone)
    np.testing.assert_allclose([found.low, found.high], expected, rtol=1e-9)


def test_an_effect_is_bounded_by_the_bounds_of_its_arms():
    y, v = data()
    treated = np.arange(len(y)) % 2
    found = hk.bounds(y, LOW, HIGH, instrument=v, treatment=treated).to_frame()
    arms = [extremes(y[treated == t], v[treated == t], monotone=True) for t in (1, 0)]
    row = found.loc["monotone instrument"]
    expected = [arms[0][0] - arms[1][1], arms[0][1] - arms[1][0]]
    np.testing.assert_allclose([row.low, row.high], expected, rtol=1e-9)


def test_the_printed_bounds_report_crossing_ends_as_a_contradiction():
    v = np.repeat([0, 1], 100)
    y = np.where(v == 0, 5.0, 0.0) + np.tile([-0.1, 0.1], 100)
    y[::10] = np.nan
    found = hk.bounds(y, LOW, HIGH, instrument=v)
    row = found.to_frame().loc["monotone instrument"]
    assert row.low > row.high
    assert "exceeds the upper bound for: monotone instrument, instrument." in str(found)


def test_an_instrument_with_many_values_is_refused():
    y, _ = data()
    with pytest.raises(hk.DataError, match=r"300 values.*qcut"):
        hk.bounds(y, LOW, HIGH, instrument=np.arange(300))
    with pytest.raises(hk.DataError, match="same value in every row"):
        hk.bounds(y, LOW, HIGH, instrument=np.ones(300))
