"""Rubin's rules against printed examples, mice's formula and cases that must collapse."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

import heckesel as hk

# SAS/STAT 12.1 User's Guide, example 64.1: means of 31 men by multiple imputation (printed input).
OXYGEN = [47.0120, 47.2407, 47.4995, 47.1485, 47.0042]
OXYGEN_SE = np.array([0.95984, 0.93540, 1.00766, 0.95439, 0.96528])


def with_moments(m, mean, between):
    """m numbers of this mean and variance."""
    values = np.arange(m) - (m - 1) / 2
    return mean + values * np.sqrt(between / values.var(ddof=1))


def mice_df(m, b, t, dfcom):
    """`barnard.rubin` of the R package mice, in its own terms."""
    share = (1 + 1 / m) * b / t
    old = (m - 1) / share**2
    observed = (dfcom + 1) / (dfcom + 3) * dfcom * (1 - share)
    return old * observed / (old + observed)


def test_the_example_of_the_amos_manual_is_reproduced():
    """IBM SPSS Amos 21 User's Guide, example 31: m = 10, W = .0233, B = .0085, printed as
    T = .0326, standard error .1807, t = 6.49, 109 degrees of freedom without Barnard-Rubin."""
    pooled = hk.pool_estimates(with_moments(10, 1.172, 0.0085), np.full(10, 0.0233))
    assert pooled.se**2 == pytest.approx(0.0326, abs=1e-4)  # as W and B are rounded
    assert pooled.estimate / pooled.se == pytest.approx(6.49, abs=0.01)
    assert pooled.df == pytest.approx(109, abs=1)  # as is the effect of rounding on df
    assert pooled.p_values == pytest.approx(2 * t.sf(6.49, 109), rel=0.06)


def test_degrees_of_freedom_are_those_of_mice():
    pooled = hk.pool_estimates(OXYGEN, OXYGEN_SE**2, df=30)
    between, within = np.var(OXYGEN, ddof=1), np.mean(OXYGEN_SE**2)
    total = within + 1.2 * between
    assert pooled.df == pytest.approx(mice_df(5, between, total, 30), rel=1e-12)
    assert pooled.df < 30  # never more than with complete data
    low, high = pooled.interval(0.9)
    half = t.ppf(0.95, pooled.df) * np.sqrt(total)
    assert (low, high) == pytest.approx((np.mean(OXYGEN) - half, np.mean(OXYGEN) + half))


def test_without_missing_outcomes_it_is_the_complete_estimate():
    pooled = hk.pool_estimates([3.0] * 4, [0.25] * 4)
    assert (pooled.estimate, pooled.se, pooled.missing_information) == (3.0, 0.5, 0.0)
    assert pooled.df == np.inf
    finite = hk.pool_estimates([3.0] * 4, [0.25] * 4, df=30)
    assert finite.df == pytest.approx(30 * 31 / 33)  # the factor of Barnard and Rubin
    no_variance = hk.pool_estimates([1.0, 2.0], [0.0, 0.0], df=30)
    assert no_variance.missing_information == 1.0
    assert no_variance.df == 0.0  # nothing was observed


def test_series_keep_their_labels_and_may_come_in_any_order():
    first, second = pd.Series({"a": 1.0, "b": 5.0}), pd.Series({"b": 5.2, "a": 1.4})
    variance = pd.Series({"a": 0.1, "b": 0.2})
    pooled = hk.pool_estimates([first, second], [variance, variance[::-1]])
    alone = hk.pool_estimates([1.0, 1.4], [0.1, 0.1])
    assert pooled.estimate["a"] == alone.estimate
    assert pooled.df["a"] == pytest.approx(alone.df)
    assert pooled.p_values["a"] == pytest.approx(alone.p_values)
    np.testing.assert_allclose(pooled.interval()[0], alone.interval())
    arrays = hk.pool_estimates([first.to_numpy(), second[["a", "b"]]], [variance] * 2)
    np.testing.assert_array_equal(arrays.estimate, pooled.estimate)


@pytest.mark.parametrize(
    ("estimates", "variances", "options", "message"),
    [
        ([1.0], [1.0], {}, "at least two completed tables, got 1"),
        ([1.0, 2.0], [1.0, 2.0, 3.0], {}, "estimates have shape"),
        ([1.0, 2.0], [1.0, -2.0], {}, "variances must not be negative or missing"),
        ([1.0, 2.0], [1.0, np.nan], {}, "variances must not be negative or missing"),
        ([1.0, 2.0], [1.0, 2.0], {"df": 0}, "df must be positive, got 0"),
    ],
)
def test_what_cannot_be_pooled_is_refused(estimates, variances, options, message):
    with pytest.raises(hk.DataError, match=message):
        hk.pool_estimates(estimates, variances, **options)
