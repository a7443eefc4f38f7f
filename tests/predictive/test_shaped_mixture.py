"""Stacked mixtures against mixtures of the same components one by one."""

import numpy as np
import pytest

from heckesel.math.sinh_arcsinh import population_moments
from heckesel.networks.rho.shaped_mixture import ShapedMixture, mixed_shapes
from heckesel.predictive import mix_predictives, predict_shape, predict_student

SHAPES = np.array([[0.0, 0.0], [0.4, -0.3], [-0.6, 0.2]])  # skewness and log tail
WEIGHT = np.array([0.4, 0.25, 0.2, 0.15])
DF = 4
M = 300


def components(students: int):
    """Location, sigma, epistemic of three sinh-arcsinh components and, perhaps, a t."""
    rng = np.random.default_rng(4)
    k = 3 + students
    return rng.normal(0, 2, (k, M)), np.exp(rng.normal(0, 0.5, (k, M))), rng.random((k, M))


def both(students: int):
    location, sigma, epistemic = components(students)
    weight = WEIGHT[: 3 + students] / WEIGHT[: 3 + students].sum()
    parts = [predict_shape(location[j], epistemic[j], sigma[j], *SHAPES[j]) for j in range(3)]
    if students:
        parts.append(predict_student(location[3], epistemic[3], sigma[3], DF))
    one_by_one = mix_predictives(parts, np.log(weight)[:, None] + np.zeros(M))
    mean, aleatoric = (np.stack([getattr(p, n) for p in parts]) for n in ("mean", "aleatoric"))
    ends = np.stack([part.quantile([0.5, 0.9]) for part in parts])  # gives location and scale
    shapes = [population_moments(*shape) for shape in SHAPES]
    wider = np.sqrt(1 + epistemic / aleatoric)
    assert np.allclose(mean[:3], [location[j] + sigma[j] * shapes[j].mean for j in range(3)])
    assert np.isfinite(ends).all()
    stacked = ShapedMixture(
        weight, mean + wider * (location - mean), wider * sigma, *SHAPES.T, students, DF
    )
    return one_by_one, mixed_shapes(stacked, mean, epistemic, aleatoric)


@pytest.mark.parametrize("students", [0, 1])
def test_stacked_components_have_the_distribution_of_their_mixture(students):
    expected, found = both(students)
    rng = np.random.default_rng(5)
    y = expected.mean + expected.std * rng.normal(0, 3, M)
    for name in ("mean", "epistemic", "aleatoric"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12)
    np.testing.assert_allclose(found.cdf(y), expected.cdf(y), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(found.log_density(y), expected.log_density(y), rtol=1e-10)
    far = y + 1e3 * expected.std  # where the density of normal components underflows
    np.testing.assert_allclose(found.log_density(far), expected.log_density(far), rtol=1e-10)


@pytest.mark.parametrize("students", [0, 1])
@pytest.mark.parametrize("p", [1e-6, 0.05, 0.5, 0.95, 1 - 1e-6])
def test_quantiles_of_stacked_components_invert_their_distribution_function(students, p):
    expected, found = both(students)
    quantile = found.quantile(p)
    np.testing.assert_allclose(expected.cdf(quantile), p, rtol=1e-9)
    np.testing.assert_allclose(quantile, expected.quantile(p), rtol=1e-9, atol=1e-9)
    some = found.take(np.arange(40, 80)).quantile(p)
    np.testing.assert_allclose(some, quantile[40:80], rtol=1e-9)  # 1 - 1e-6 has ten digits


def test_several_outcomes_of_each_point_have_a_row_each():
    expected, found = both(1)
    y = expected.quantile([0.1, 0.7])
    np.testing.assert_allclose(found.cdf(y), [expected.cdf(row) for row in y], rtol=1e-10)
    density = [expected.log_density(row) for row in y]
    np.testing.assert_allclose(found.log_density(y), density, rtol=1e-10)


def test_draws_of_stacked_components_have_its_distribution():
    _, found = both(1)
    draws = found.take([7]).sample(20_000, seed=1)[:, 0]
    below = np.sort(found.take([7]).cdf(draws[:, None])[:, 0])
    gap = np.abs(below - (np.arange(len(below)) + 0.5) / len(below)).max()
    assert gap < 1.95 / np.sqrt(len(below))  # Kolmogorov-Smirnov at .001
