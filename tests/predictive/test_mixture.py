"""Mixtures of several models."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp, ndtr

from heckesel.predictive import (
    GivenSelection,
    Mixture,
    Normal,
    Predictive,
    mix_predictives,
    mixed_given_selection,
    mixed_normal,
    predict_given_selection,
)

WEIGHT = np.array([0.5, 0.3, 0.2])
MEAN = np.array([[0.0, 4.0], [1.5, 4.2], [-6.0, 3.0]])  # (3, 2): far apart, then close
EPISTEMIC = np.array([[0.2, 0.1], [0.5, 0.3], [0.1, 0.05]])
SIGMA = np.array([[0.7], [1.1], [0.4]])
RHO = np.array([[0.8], [-0.5], [0.3]])
INDEX = np.array([[0.4, -1.2], [0.1, -0.7], [1.0, -2.0]])


def normal_mixture():
    return mixed_normal(WEIGHT, MEAN, EPISTEMIC, SIGMA)


def selected_mixture(sign=1.0):
    log_weight = np.log(WEIGHT)[:, None] + stats.norm.logcdf(sign * INDEX)
    covariance = sign * RHO * SIGMA
    return mixed_given_selection(log_weight, MEAN, EPISTEMIC, SIGMA, covariance, sign * INDEX)


def pool():
    """A t, a mixture of normals and one given selection."""
    heavy = Predictive.student(np.array([1.0, 3.0]), 0.3, np.array([0.8, 0.5]), df=12.0)
    return mix_predictives([heavy, normal_mixture(), selected_mixture()])


BOTH = pytest.mark.parametrize("make", [normal_mixture, selected_mixture, pool])


def test_a_normal_mixture_has_the_distribution_of_its_parts():
    found = normal_mixture()
    scale = np.sqrt(EPISTEMIC + SIGMA**2)
    y = np.array([0.8, 3.7])
    expected = WEIGHT @ stats.norm.cdf(y, MEAN, scale)
    np.testing.assert_allclose(found.cdf(y), expected, rtol=1e-13)
    density = WEIGHT @ stats.norm.pdf(y, MEAN, scale)
    np.testing.assert_allclose(found.log_density(y), np.log(density), rtol=1e-12)


def test_parts_of_a_pool_are_each_as_likely_as_the_next():
    found, y = pool(), np.array([0.8, 3.7])
    parts = found.distribution.components
    np.testing.assert_allclose(found.cdf(y), sum(part.cdf(y) for part in parts) / 3, rtol=1e-13)
    density = sum(np.exp(part.log_density(y)) for part in parts) / 3
    np.testing.assert_allclose(np.exp(found.log_density(y)), density, rtol=1e-12)
    np.testing.assert_allclose(found.aleatoric, sum(part.aleatoric for part in parts) / 3)


def test_a_pool_of_equals_is_any_of_them():
    one = Predictive.student(np.array([1.0, -2.0]), 0.3, np.array([0.8, 0.5]), df=5.0)
    both = mix_predictives([one, one])
    for p in (1e-6, 0.3, 0.5, 0.95):
        np.testing.assert_allclose(both.quantile(p), one.quantile(p), rtol=1e-12)
    np.testing.assert_array_equal(both.mean, one.mean)
    np.testing.assert_allclose(both.std, one.std, rtol=1e-14)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_mixture_given_selection_is_the_joint_distribution_over_models_and_units(sign):
    # P(y <= t, s = 1) = sum of w_j Phi_2; over P(s = 1) = sum of w_j Phi(index_j).
    found, y = selected_mixture(sign), np.array([0.3, 3.4])
    scale = np.sqrt(EPISTEMIC + SIGMA**2)
    for m in range(2):
        below, total, density = 0.0, 0.0, 0.0
        for j in range(3):
            index, rho = sign * INDEX[j, m], sign * RHO[j, 0] * SIGMA[j, 0] / scale[j, m]
            e = (y[m] - MEAN[j, m]) / scale[j, m]
            pair = stats.multivariate_normal(cov=[[1, -rho], [-rho, 1]])
            below += WEIGHT[j] * pair.cdf([index, e])
            total += WEIGHT[j] * ndtr(index)
            given_y = ndtr((index + rho * e) / np.sqrt(1 - rho**2))
            density += WEIGHT[j] * stats.norm.pdf(e) / scale[j, m] * given_y
        # scipy's bivariate normal is good to 1e-6 or so.
        assert found.cdf(y)[m] == pytest.approx(below / total, abs=1e-5)
        assert found.log_density(y)[m] == pytest.approx(np.log(density / total), abs=1e-10)


@BOTH
def test_the_density_is_the_slope_of_the_distribution_function(make):
    found, step = make(), 1e-5
    for y in (np.array([-0.4, 2.9]), np.array([2.0, 4.4])):
        slope = (found.cdf(y + step) - found.cdf(y - step)) / (2 * step)
        np.testing.assert_allclose(np.exp(found.log_density(y)), slope, rtol=1e-6)


@BOTH
def test_quantile_and_distribution_function_undo_each_other(make):
    found = make()
    for p in (1e-9, 0.003, 0.2, 0.5, 0.95, 1 - 1e-9):
        np.testing.assert_allclose(found.cdf(found.quantile(p)), p, rtol=1e-9)
    for y in (np.array([-5.7, 2.0]), np.array([0.6, 4.9])):
        levels = found.cdf(y)
        for m in range(2):
            assert found.quantile(levels[m])[m] == pytest.approx(y[m], abs=1e-8)
    assert (np.diff(found.quantile([0.01, 0.1, 0.5, 0.9, 0.99]), axis=0) > 0).all()


def test_quantiles_in_the_gap_between_distant_parts_are_found():
    # Half of the mass 200 sd from the other half: the density between them is zero in float64.
    found = mixed_normal(np.array([0.5, 0.5]), np.array([[0.0], [200.0]]), np.zeros((2, 1)), 1.0)
    low, high = found.quantile(0.25)[0], found.quantile(0.75)[0]
    assert (low, high) == pytest.approx((0.0, 200.0), abs=1e-9)
    middle = found.quantile(0.5)[0]
    assert found.cdf(np.array([middle]))[0] == pytest.approx(0.5, abs=1e-12)


def test_quantiles_given_selection_against_all_odds_are_found():
    # At index -60 and rho .95 all mass is 57 scales above the location.
    index, flat = np.full((2, 1), -60.0), np.zeros((2, 1))
    found = mixed_given_selection(np.log([[0.4], [0.6]]), flat, flat, 1.0, 0.95, index)
    alone = predict_given_selection(np.zeros(1), np.zeros(1), 1.0, 0.95, index[0])
    for p in (0.05, 0.5, 0.95):
        np.testing.assert_allclose(found.quantile(p), alone.quantile(p), rtol=1e-9)
    assert found.quantile(0.5)[0] > 56


@BOTH
def test_mean_and_variance_are_those_of_the_distribution(make):
    found = make()
    for m in range(2):
        one = found.distribution.take([m])

        def density(y, one=one):
            return float(np.exp(one.log_density(np.array([y])))[0])

        mean = quad(lambda y: y * density(y), -12, 12, points=[-6, 0, 4], limit=200)[0]
        square = quad(lambda y: y**2 * density(y), -12, 12, points=[-6, 0, 4], limit=200)[0]
        assert found.mean[m] == pytest.approx(mean, abs=1e-6)
        assert found.epistemic[m] + found.aleatoric[m] == pytest.approx(square - mean**2, abs=1e-5)


@BOTH
def test_draws_have_the_moments_and_the_distribution(make):
    found, size = make(), 40_000
    draws = found.sample(size, seed=1)
    assert draws.shape == (size, 2)
    np.testing.assert_array_less(
        np.abs(draws.mean(axis=0) - found.mean), 5 * found.std / np.sqrt(size)
    )
    for p in (0.1, 0.5, 0.9):
        share = (draws <= found.quantile(p)).mean(axis=0)
        np.testing.assert_allclose(share, p, atol=5 * np.sqrt(p * (1 - p) / size))
    # Points are drawn on their own: the part one took says nothing about the other's.
    assert abs(np.corrcoef(draws.T)[0, 1]) < 5 / np.sqrt(size)


def test_doubt_is_within_and_between_parts_and_noise_is_their_mean():
    found = normal_mixture()
    rng = np.random.default_rng(2)
    which = rng.choice(3, p=WEIGHT, size=400_000)
    f = rng.normal(MEAN[which, 0], np.sqrt(EPISTEMIC[which, 0]))
    # The fourth moment of f is below 4 times its squared variance.
    assert found.epistemic[0] == pytest.approx(f.var(), rel=5 * np.sqrt(3 / 4e5))
    np.testing.assert_allclose(found.aleatoric, WEIGHT @ (SIGMA[:, 0] ** 2))


def test_one_part_is_that_part():
    alone = mixed_normal(np.array([1.0]), MEAN[:1], EPISTEMIC[:1], SIGMA[:1])
    part = Normal(MEAN[0], np.sqrt(EPISTEMIC[0] + SIGMA[0] ** 2))
    y = np.array([0.4, 3.1])
    np.testing.assert_allclose(alone.cdf(y), part.cdf(y), rtol=1e-14)
    np.testing.assert_allclose(alone.quantile(0.83), part.quantile(0.83), rtol=1e-12)
    np.testing.assert_allclose(alone.epistemic, EPISTEMIC[0])
    one = slice(0, 1)
    given = mixed_given_selection(
        np.array([[-7.0, 3.0]]),
        MEAN[one],
        EPISTEMIC[one],
        SIGMA[one],
        RHO[one] * SIGMA[one],
        INDEX[one],
    )
    expected = predict_given_selection(MEAN[0], EPISTEMIC[0], SIGMA[0], RHO[0] * SIGMA[0], INDEX[0])
    for name in ("mean", "epistemic", "aleatoric"):
        np.testing.assert_allclose(getattr(given, name), getattr(expected, name), rtol=1e-13)
    np.testing.assert_allclose(given.quantile(0.07), expected.quantile(0.07), atol=1e-9)


def test_parts_without_weight_leave_no_trace():
    weight = np.array([0.5, 0.0, 0.5])
    found = mixed_normal(weight, MEAN, EPISTEMIC, SIGMA)
    kept = mixed_normal(weight[[0, 2]], MEAN[[0, 2]], EPISTEMIC[[0, 2]], SIGMA[[0, 2]])
    y = np.array([1.0, 4.0])
    np.testing.assert_allclose(found.log_density(y), kept.log_density(y), rtol=1e-14)
    np.testing.assert_allclose(found.quantile(0.6), kept.quantile(0.6), rtol=1e-10)


@pytest.mark.parametrize("broken", [-1.0, np.nan])
def test_a_component_of_weight_zero_may_be_anything(broken):
    weight, zero = np.array([0.5, 0.0, 0.5]), np.array([[False] * 2, [True] * 2, [False] * 2])
    mean, epistemic = (np.where(zero, broken, each) for each in (MEAN, EPISTEMIC))
    with np.errstate(divide="ignore"):
        log_weight = np.log(weight)[:, None] + np.zeros((3, 2))
    whole = [mixed_normal(weight, mean, np.where(zero, -9.0 * abs(broken), epistemic), SIGMA)]
    kept = [mixed_normal(weight[[0, 2]], MEAN[[0, 2]], EPISTEMIC[[0, 2]], SIGMA[[0, 2]])]
    given = SIGMA, RHO * SIGMA, INDEX
    whole.append(mixed_given_selection(log_weight, mean, epistemic, *given))
    rest = (each[[0, 2]] for each in (log_weight, MEAN, EPISTEMIC, *given))
    kept.append(mixed_given_selection(*rest))
    parts = [Predictive.normal(MEAN[j], EPISTEMIC[j], SIGMA[j] ** 2) for j in range(3)]
    law = Normal(np.full(2, broken), np.full(2, broken))
    parts[1] = Predictive(*(np.full(2, broken) for _ in range(3)), law)
    whole.append(mix_predictives(parts, log_weight))
    kept.append(mix_predictives([parts[0], parts[2]]))
    for found, expected in zip(whole, kept, strict=True):
        for what in ("mean", "epistemic", "aleatoric", "std"):
            np.testing.assert_allclose(getattr(found, what), getattr(expected, what), rtol=1e-14)
        np.testing.assert_allclose(found.interval(), expected.interval(), rtol=1e-9)
        assert np.isfinite(found.sample(50)).all()


@BOTH
def test_points_can_be_taken_one_by_one(make):
    whole = make().distribution
    y = np.array([0.3, 3.3])
    for rows in ([1], np.array([False, True]), slice(1, 2)):
        part = whole.take(rows)
        assert part.weight.shape == (3, 1)
        np.testing.assert_allclose(part.cdf(y[1:]), whole.cdf(y)[1:], rtol=1e-13)
        np.testing.assert_allclose(part.quantile(0.4), whole.quantile(0.4)[1:], rtol=1e-12)


def test_weights_are_those_of_the_models_among_the_selected():
    # Log weights may carry any constant: shares of exp(-2000) are no reason to fail.
    log_weight = np.log(WEIGHT)[:, None] - 2000.0 + np.zeros((3, 2))
    found = mixed_given_selection(log_weight, MEAN, EPISTEMIC, SIGMA, RHO * SIGMA, INDEX)
    assert isinstance(found.distribution, Mixture)
    assert isinstance(found.distribution.components, GivenSelection)
    np.testing.assert_allclose(found.distribution.weight, np.column_stack([WEIGHT, WEIGHT]))
    shares = selected_mixture().distribution.weight
    log_share = np.log(WEIGHT)[:, None] + stats.norm.logcdf(INDEX)
    np.testing.assert_allclose(np.log(shares), log_share - logsumexp(log_share, axis=0))
