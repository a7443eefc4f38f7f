"""Gini, KS, calibration and swap sets, against scikit-learn, SciPy, statsmodels and by hand."""

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.calibration import calibration_curve
from sklearn.metrics import roc_auc_score
from statsmodels.stats.proportion import proportion_confint

import heckesel as hk
from heckesel.metrics import calibration_table, gini, ks, swap_set

RNG = np.random.default_rng(0)
P = RNG.uniform(size=500)
Y = (RNG.uniform(size=500) < P).astype(float)


@pytest.mark.parametrize("score", [P, P.round(1), -P, np.ones(500)], ids=["", "ties", "-", "same"])
def test_discrimination_is_that_of_other_libraries(score):
    assert gini(Y, score) == pytest.approx(2 * roc_auc_score(Y, score) - 1, abs=1e-12)
    assert ks(Y, score) == pytest.approx(ks_2samp(score[Y == 1], score[Y == 0]).statistic)


def test_calibration_is_that_of_other_libraries():
    table = calibration_table(Y, P, bins=5)
    observed, predicted = calibration_curve(Y, P, n_bins=5, strategy="quantile")
    np.testing.assert_allclose(table["observed"], observed)
    np.testing.assert_allclose(table["predicted"], predicted)
    ends = proportion_confint(table["observed"] * table["n"], table["n"], 0.1, method="wilson")
    np.testing.assert_allclose(table[["low", "high"]], np.column_stack(ends))
    assert table["n"].tolist() == [100] * 5


def test_swap_sets_are_complete_and_equal_in_size():
    old, new = RNG.uniform(size=(2, 200))
    y = np.where(old < 0.5, (new > 0.6) * 1.0, np.nan)
    table = swap_set(old, new, accept=0.4, y=y)
    assert table["n"].sum() == 200
    assert table.loc["swapped in", "n"] == table.loc["swapped out", "n"]
    assert table.loc["both", "n"] + table.loc["swapped in", "n"] == 80
    both = (old <= np.sort(old)[79]) & (new <= np.sort(new)[79])
    assert table.loc["both", "observed"] == pytest.approx(y[both].mean())
    assert table.loc["both", "new"] == pytest.approx(new[both].mean())
    assert np.isnan(swap_set(old, old, accept=0.4).loc["swapped in", "old"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gini([0, 2], [1, 2]), "y must be 0 or 1 but row 1 holds 2"),
        (lambda: gini([0, 1], [1, np.nan]), "score is missing in row 1"),
        (lambda: ks([1, 1], [1, 2]), "one class only, 1"),
        (lambda: ks([0, 1], [1, 2, 3]), "score has 3 rows, but there are 2"),
        (lambda: calibration_table(Y, P, bins=0), "bins must be between 1 and the 500 rows, got 0"),
        (lambda: calibration_table(Y, P, level=2), "level must lie between 0 and 1, got 2"),
        (lambda: swap_set(P, P, accept=1.5), "accept must lie between 0 and 1, got 1.5"),
    ],
)
def test_what_cannot_be_compared_is_refused(call, message):
    with pytest.raises(hk.DataError, match=message):
        call()
