"""Worst-case and follow-up bounds against every completion of a small dataset."""

from itertools import product

import numpy as np
import pytest

import heckesel as hk

NAN = np.nan
LOW, HIGH = 0.0, 4.0
GRID = (0.0, 1.3, 4.0)  # both ends of the range, and a value between
Y = np.array([1.0, NAN, 3.0, NAN, 0.5, 2.0, NAN, 4.0])
TREATED = np.array([1, 1, 1, 0, 0, 0, 0, 1])
WEIGHT = np.array([1, 2, 1, 3, 1, 2, 1, 1])


def completions(y):
    """All ways to give the missing outcomes values of the grid."""
    missing = np.flatnonzero(np.isnan(y))
    for values in product(GRID, repeat=len(missing)):
        filled = y.copy()
        filled[missing] = values
        yield filled


def repeated(values):
    return np.repeat(values, WEIGHT)


def extremes(quantity, y=Y):
    found = [quantity(filled) for filled in completions(y)]
    return min(found), max(found)


def row(found, name):
    return tuple(found.to_frame().loc[name, ["low", "high"]])


def quantile(values, p):
    return np.sort(values)[int(np.ceil(p * len(values) - 1e-9)) - 1]


def test_the_mean_reaches_its_bounds_over_all_completions():
    expected = extremes(lambda y: np.average(y, weights=WEIGHT))
    found = hk.bounds(Y, LOW, HIGH, sample_weight=WEIGHT)
    np.testing.assert_allclose(row(found, "no assumption"), expected, rtol=1e-14)


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.8])
def test_quantiles_reach_their_bounds_over_all_completions(p):
    expected = extremes(lambda y: quantile(repeated(y), p))
    found = hk.bounds(Y, LOW, HIGH, sample_weight=WEIGHT, quantile=p)
    assert row(found, "no assumption") == expected


def test_effects_reach_their_bounds_over_all_completions():
    def mean_effect(y):
        means = [np.average(y[arm == TREATED], weights=WEIGHT[arm == TREATED]) for arm in (1, 0)]
        return means[0] - means[1]

    found = hk.bounds(Y, LOW, HIGH, sample_weight=WEIGHT, treatment=TREATED)
    np.testing.assert_allclose(row(found, "random treatment"), extremes(mean_effect), rtol=1e-14)

    def median_effect(y):
        whole = repeated(y), repeated(TREATED)
        return quantile(whole[0][whole[1] == 1], 0.5) - quantile(whole[0][whole[1] == 0], 0.5)

    found = hk.bounds(Y, LOW, HIGH, sample_weight=WEIGHT, treatment=TREATED, quantile=0.5)
    assert row(found, "random treatment") == extremes(median_effect)


def test_without_a_random_treatment_both_potential_outcomes_can_be_anything():
    under = [np.where(arm == TREATED, Y, NAN) for arm in (1, 0)]
    ends = [extremes(np.mean, y) for y in under]  # over 3^5 and 3^6 completions
    expected = ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]
    found = hk.bounds(Y, LOW, HIGH, treatment=TREATED)
    np.testing.assert_allclose(row(found, "no assumption"), expected, rtol=1e-13)


def test_the_follow_up_stands_for_all_that_did_not_answer():
    y = np.array([1.0, 2.0, 3.0, 0.5, NAN, NAN, NAN, 4.0])
    drawn = np.array([0, 0, 0, 1, 1, 0, 0, 0])  # the unit with .5 was reached, the other was not
    sample = np.array([1, 2, 3, 4, 0.5, 0.5, NAN, NAN])  # each of the two stands for two

    found = hk.bounds(y, LOW, HIGH, follow_up=drawn)
    expected = [np.mean(np.where(np.isnan(sample), end, sample)) for end in (LOW, HIGH)]
    np.testing.assert_allclose(row(found, "random follow-up"), expected, rtol=1e-14)
    found = hk.bounds(y, LOW, HIGH, follow_up=drawn, quantile=0.5)
    expected = [quantile(np.where(np.isnan(sample), end, sample), 0.5) for end in (LOW, HIGH)]
    assert row(found, "random follow-up") == tuple(expected)


def test_a_range_without_ends_bounds_quantiles_but_not_means():
    y = np.r_[np.linspace(0, 1, 95), np.full(5, NAN)]
    assert tuple(hk.bounds(y, -np.inf, np.inf)) == (-np.inf, np.inf)
    found = hk.bounds(y, -np.inf, np.inf, quantile=0.5)
    assert row(found, "no assumption") == (y[44], y[49])
    limits = found.to_frame().loc["no assumption", ["interval_low", "interval_high"]]
    assert 0 < limits.iloc[0] < y[44] < y[49] < limits.iloc[1] < 1
    extreme = hk.bounds(y, -np.inf, np.inf, quantile=0.06).rows[0]
    assert extreme.low == y[0]  # the smallest observed one
    assert extreme.interval_low == -np.inf
    one_sided = hk.bounds(y, 0.0, np.inf).rows[0]
    assert (one_sided.high, one_sided.interval_high) == (np.inf, np.inf)
    assert np.isfinite([one_sided.low, one_sided.interval_low]).all()


def test_the_interval_of_a_quantile_is_that_of_its_density():
    n, seen = 4000, 3800
    y = np.r_[(np.arange(seen) + 0.5) / seen, np.full(n - seen, NAN)]
    found = hk.bounds(y, LOW, HIGH, quantile=0.5).rows[0]
    se = np.sqrt(0.25 / n) / (seen / n)
    # wide bounds: the one-sided critical value; Woodruff's quantiles are steps of 1/n
    assert (found.low - found.interval_low) / se == pytest.approx(1.6449, rel=0.02)
    assert (found.interval_high - found.high) / se == pytest.approx(1.6449, rel=0.02)
