"""Errors of three kinds, the chance of selection under each, and a draw of five columns."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from heckesel.datasets import make_interactions
from heckesel.datasets.simulated import draw_errors, probability_given_x, selection_probability
from heckesel.errors import DataError


@pytest.mark.parametrize(("errors", "df"), [("normal", 3), ("t", 5.0), ("chi2", 3)])
@pytest.mark.parametrize(("rho", "sigma"), [(0.8, 0.5), (-0.3, 2.0)])
def test_errors_of_every_kind_have_their_sds_and_their_correlation(errors, df, rho, sigma):
    n = 400_000
    rng = np.random.default_rng(12)
    epsilon, u = draw_errors(rng, n, rho=rho, sigma=sigma, errors=errors, df=df)
    for values, sd in ((epsilon / sigma, 1.0), (u, 1.0)):
        assert abs(values.mean()) < 5 / np.sqrt(n)
        # A kurtosis of at most 9, that of the t, makes the sd of a variance sqrt(8/n).
        assert values.var() == pytest.approx(sd, abs=6 * np.sqrt(8 / n))
    products = epsilon * u / sigma
    assert abs(products.mean() - rho) < 6 * products.std() / np.sqrt(n)


def test_t_errors_share_a_divisor_and_chi_squared_ones_are_skewed():
    rng = np.random.default_rng(13)
    epsilon, u = draw_errors(rng, 200_000, rho=0.0, sigma=1.0, errors="t")
    # Without correlation, a large u still comes with a large epsilon: one divisor for both.
    far = np.abs(u) > 3
    assert np.abs(epsilon[far]).mean() > 2 * np.abs(epsilon[~far]).mean()
    _, u = draw_errors(rng, 200_000, rho=0.0, sigma=1.0, errors="chi2")
    # sqrt(8/3) = 1.63; the sd of this estimate is about .02.
    assert np.mean(u**3) == pytest.approx(np.sqrt(8 / 3), abs=0.12)
    assert u.min() > -3 / np.sqrt(6)


def test_unknown_errors_are_refused():
    with pytest.raises(DataError, match="errors must be one of normal, t, chi2, got 'laplace'"):
        make_interactions(10, rho=0.5, alpha=1.0, seed=0, errors="laplace")


@pytest.mark.parametrize("errors", ["t", "chi2"])
def test_probability_given_x_is_the_average_over_the_instrument(errors):
    index = np.array([-1.7, 0.0, 0.6, 2.4])
    for j, found in enumerate(probability_given_x(index, 1.0, errors)):
        grid = np.linspace(-8, 8, 40_001)
        weight = np.exp(-0.5 * grid**2)
        exact = weight @ selection_probability(index[j] + grid, errors) / weight.sum()
        # chi-squared errors end at -1.22, where their distribution function has a kink of order
        # 3/2 that 96 nodes see to a few 1e-4.
        assert found == pytest.approx(exact, abs=1e-8 if errors == "t" else 5e-4)
    without = probability_given_x(index, 0.0, errors)
    np.testing.assert_allclose(without, selection_probability(index, errors), rtol=1e-12)


def test_interactions_follow_the_formula_and_repeat_themselves():
    drawn = make_interactions(300, rho=0.6, alpha=0.7, seed=4)
    assert list(drawn.frame.columns) == ["x1", "x2", "x3", "x4", "x5", "z", "y"]
    x1, x2, x3, x4, x5 = (drawn.frame[f"x{j}"].to_numpy() for j in range(1, 6))
    assert np.abs(drawn.frame[["x1", "x5"]].to_numpy()).max() <= 1
    f0 = np.sin(np.pi * x1 * x2) + x3 * x4 + x5**2 + x1 / 2
    np.testing.assert_allclose(drawn.truth.f0, f0, rtol=1e-13)
    index = -1.2 * (x1 + x4) + 0.7 * drawn.frame["z"].to_numpy()
    np.testing.assert_allclose(drawn.truth.propensity, ndtr(index), rtol=1e-13)
    by_x = ndtr(-1.2 * (x1 + x4) / np.sqrt(1 + 0.7**2))
    np.testing.assert_allclose(drawn.truth.propensity_x, by_x, rtol=1e-13)
    again = make_interactions(300, rho=0.6, alpha=0.7, seed=4)
    pd.testing.assert_frame_equal(drawn.frame, again.frame)
    with pytest.raises(DataError, match="rho is 1 but must lie strictly"):
        make_interactions(10, rho=1, alpha=0.0, seed=0)


@pytest.mark.parametrize("errors", ["normal", "t", "chi2"])
def test_interactions_select_as_their_truth_says(errors):
    n = 100_000
    drawn = make_interactions(n, rho=0.9, alpha=1.0, seed=5, errors=errors)
    s = drawn.frame["y"].notna().to_numpy()
    np.testing.assert_array_equal(drawn.frame["y"][s], drawn.truth.y[s])
    for p in (drawn.truth.propensity, drawn.truth.propensity_x):
        for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0)):
            rows = (p >= low) & (p < high)
            error = np.sqrt(np.mean(p[rows] * (1 - p[rows])) / rows.sum())
            assert abs(s[rows].mean() - p[rows].mean()) < 5 * error
    epsilon = drawn.truth.y - drawn.truth.f0
    assert epsilon.std() == pytest.approx(0.5, rel=0.1 if errors == "t" else 0.03)
    assert epsilon[s].mean() > 0.1  # selection leans on the error
