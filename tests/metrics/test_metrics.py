"""Metrics against closed forms, brute force and scoringrules."""

from dataclasses import dataclass

import numpy as np
import pytest
import scoringrules
from scipy.special import ndtr, ndtri
from scipy.stats import norm, poisson

from heckesel.errors import DataError
from heckesel.math.truncated import moments_given_selection
from heckesel.metrics import (
    bias,
    calibration_error,
    central_calibration_error,
    coverage,
    crps,
    evaluate,
    gaussian_nll,
    interval_score,
    regions,
    rmse,
    sharpness,
)
from heckesel.predictive import GivenSelection, Predictive

M = 200
LEVELS = np.arange(1, 20) / 20


def normal_predictive(seed=0):
    rng = np.random.default_rng(seed)
    mean, epistemic, aleatoric = rng.normal(size=M), rng.random(M), 0.2 + rng.random(M)
    y = mean + 1.3 * np.sqrt(epistemic + aleatoric) * rng.normal(size=M)
    return y, Predictive.normal(mean, epistemic, aleatoric)


def given_selection(index, rho):
    """Location 0 and scale 1, so that the outcome is the error itself."""
    index, rho = np.broadcast_arrays(np.asarray(index, float), np.asarray(rho, float))
    mean, variance = moments_given_selection(index, rho)
    distribution = GivenSelection(np.zeros(len(mean)), np.ones(len(mean)), index, rho)
    return Predictive(mean, np.zeros(len(mean)), variance, distribution)


def test_coverage_counts_the_outcomes_inside_and_width_is_their_price():
    predictive = Predictive.normal(np.zeros(4), 0.0, np.array([1.0, 1.0, 4.0, 16.0]))
    y = np.array([1.64, 1.65, -3.28, -6.60])  # Phi(1.6449) = .95: in, out, in, out
    assert coverage(y, predictive, level=0.9) == 0.5
    np.testing.assert_allclose(sharpness(predictive, level=0.9), 4 * norm.ppf(0.95), rtol=1e-14)


def test_calibration_errors_equal_shares_below_quantiles_and_inside_intervals():
    predictive = given_selection(np.linspace(-2, 2, M), 0.8)
    y = predictive.sample(1, seed=3)[0] * 1.2
    below = [np.mean(y <= q) for q in predictive.quantile(LEVELS)]
    inside = [coverage(y, predictive, level=level) for level in LEVELS]
    assert calibration_error(y, predictive) == pytest.approx(np.mean(np.abs(below - LEVELS)))
    assert central_calibration_error(y, predictive) == pytest.approx(
        np.mean(np.abs(inside - LEVELS))
    )


def test_calibration_errors_of_a_shifted_normal_have_their_closed_form():
    m, shift = 20000, 0.6
    y = ndtri((np.arange(m) + 0.5) / m)  # the population itself: shares err by at most 1/m
    predictive = Predictive.normal(np.full(m, shift), 0.0, 1.0)
    one_sided = np.mean(np.abs(ndtr(ndtri(LEVELS) + shift) - LEVELS))
    half = ndtri((1 + LEVELS) / 2)
    central = np.mean(np.abs(ndtr(shift + half) - ndtr(shift - half) - LEVELS))
    assert calibration_error(y, predictive) == pytest.approx(one_sided, abs=1 / m)
    assert central_calibration_error(y, predictive) == pytest.approx(central, abs=1 / m)


@dataclass(frozen=True)
class Counts:
    """Poisson counts; with `at`, normal above it and `at` instead of everything below."""

    mean: np.ndarray
    at: float | None = None

    def cdf(self, y):
        if self.at is None:
            return poisson.cdf(y, self.mean)
        return np.where(y < self.at, 0.0, ndtr(y - self.mean))

    def sample(self, size, rng):
        shape = size, len(self.mean)
        if self.at is None:
            return rng.poisson(self.mean, shape).astype(float)
        return np.maximum(self.mean + rng.standard_normal(shape), self.at)


def test_the_average_over_the_jump_equals_many_draws_of_the_randomised_transform():
    mean, y = np.array([0.4, 1.1, 2.5, 3.0]), np.array([0.0, 2.0, 2.0, 7.0])
    before, at = poisson.cdf(y - 1, mean), poisson.cdf(y, mean)
    u = before + np.random.default_rng(4).random((200_000, 4)) * (at - before)
    predictive = Predictive(mean, 0 * mean, mean, Counts(mean))
    for error, drawn in (
        (calibration_error, u),
        (central_calibration_error, np.abs(2 * u - 1)),
    ):
        shares = np.array([np.mean(drawn <= level) for level in LEVELS])
        bound = 4 * 0.5 / np.sqrt(u.size)
        assert abs(error(y, predictive) - np.mean(np.abs(shares - LEVELS))) < bound


def test_gaussian_nll_is_the_mean_log_density_of_scipy():
    y, predictive = normal_predictive()
    expected = -norm.logpdf(y, predictive.mean, predictive.std).mean()
    assert gaussian_nll(y, predictive) == pytest.approx(expected, rel=1e-13)


def test_crps_and_interval_score_equal_those_of_scoringrules():
    y, predictive = normal_predictive()
    peer = np.mean(scoringrules.crps_normal(y, predictive.mean, predictive.std))
    assert crps(y, predictive) == pytest.approx(peer, rel=1e-12)
    for level in (0.5, 0.9):
        lower, upper = predictive.interval(level).T
        peer = np.mean(scoringrules.interval_score(y, lower, upper, 1 - level))
        assert interval_score(y, predictive, level=level) == pytest.approx(peer, rel=1e-12)


def test_crps_by_quadrature_collapses_to_the_normal_formula_without_correlation():
    y = np.linspace(-14, 14, M)  # also outcomes beyond the range of the quadrature
    same = crps(y, given_selection(np.linspace(-3, 3, M), 0.0))
    assert same == pytest.approx(crps(y, Predictive.normal(np.zeros(M), 0.0, 1.0)), rel=1e-11)


def test_crps_given_selection_equals_the_score_of_many_draws():
    index, y = np.array([-4.0, -1.0, 0.5, 2.0]), np.array([3.0, -0.5, 0.8, -2.0])
    predictive = given_selection(index, np.array([0.9, -0.9, 0.7, 0.99]))
    draws = predictive.sample(200_000, seed=5)  # (size, 4)
    for i in range(4):
        spread = scoringrules.crps_ensemble(y[i], np.sort(draws[:, i]), estimator="pwm")
        error = np.std(np.abs(draws[:, i] - y[i])) / np.sqrt(len(draws))
        assert abs(crps(y[[i]], predictive.take(np.array([i]))) - spread) < 5 * error


def test_crps_of_certain_selection_is_that_of_a_truncated_normal():
    index, y = np.array([-1.5, 0.0, 1.0]), np.array([1.0, 1.4, -0.3])
    predictive = given_selection(index, 1.0)
    peer = scoringrules.crps_tnormal(y, 0.0, 1.0, -index, np.inf)
    own = [crps(y[[i]], predictive.take(np.array([i]))) for i in range(3)]
    np.testing.assert_allclose(own, peer, atol=5e-3)  # F has a corner at -index


def test_bias_is_signed_and_rmse_is_not():
    predictive = Predictive.normal(np.array([1.0, 2.0, 3.0]), 0.0, 1.0)
    f0 = np.array([2.0, 2.0, 1.0])
    assert bias(f0, predictive) == pytest.approx(1 / 3)
    assert rmse(f0, predictive) == pytest.approx(np.sqrt(5 / 3))


def test_regions_include_their_lower_edge_and_skip_fewer_than_ten_points():
    propensity = np.repeat([0.29, 0.3, 0.69, 0.7], [9, 10, 3, 12])
    found = regions(propensity)
    assert set(found) == {"mid", "well"}
    np.testing.assert_array_equal(found["mid"], np.arange(9, 22))
    np.testing.assert_array_equal(found["well"], np.arange(22, 34))


def test_evaluate_gives_every_metric_overall_and_by_region():
    y, predictive = normal_predictive()
    propensity = np.linspace(0, 1, M)
    row = evaluate(y, predictive, f0=predictive.mean - 0.1, propensity_x=propensity)
    metrics = ["coverage90", "width90", "nll", "crps", "interval_score90"]
    metrics += ["ece", "ece_central", "bias_f0", "rmse_f0"]
    names = [f"_{name}" for name in ("against", "mid", "well")]
    assert set(row) == {m + s for m in metrics for s in ("", *names)} | {"n" + s for s in names}
    assert row["n_against"] + row["n_mid"] + row["n_well"] == M
    rows = np.flatnonzero(propensity < 0.3)
    alone = evaluate(y[rows], predictive.take(rows), f0=predictive.mean[rows] - 0.1)
    assert {f"{key}_against": value for key, value in alone.items()}.items() <= row.items()
    assert row["bias_f0"] == pytest.approx(0.1)


def test_evaluate_refuses_outcomes_that_do_not_fit_the_points():
    y, predictive = normal_predictive()
    with pytest.raises(DataError, match=r"y has shape \(3,\) but the predictive has 200 points"):
        evaluate(y[:3], predictive)
    with pytest.raises(DataError, match="y is nan in row 7"):
        evaluate(np.where(np.arange(M) == 7, np.nan, y), predictive)
    with pytest.raises(DataError, match="propensity_x has shape"):
        evaluate(y, predictive, propensity_x=np.zeros(3))
