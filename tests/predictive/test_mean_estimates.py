"""Means over rows with their uncertainty: special cases with a known answer."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, t

import heckesel as hk
from heckesel.margins import (
    ComponentMean,
    Question,
    average_of,
    elasticity_of,
    estimate_mixture,
    groups_of,
)

FRAME = pd.DataFrame({"g": ["a", "b", "a", "b", "b"]})
RNG = np.random.default_rng(3)


def answer(components, *, level=0.9, **options):
    asked = [Question(average_of(groups_of(FRAME, "g")), 1)]
    (found,) = estimate_mixture(components, asked, level, **options)
    return found


def a_component(weight=1.0, shift=0.0):
    gradient, root = RNG.normal(size=(5, 3)), RNG.normal(size=(3, 3))
    return ComponentMean(weight, shift + RNG.normal(size=5), gradient, root)


def test_one_component_is_the_delta_method():
    one = a_component()
    found = answer([one], level=0.95)
    for g, rows in enumerate(([0, 2], [1, 3, 4])):
        slope = one.gradient[rows].mean(axis=0)
        se = np.sqrt(slope @ one.root @ one.root.T @ slope)
        value = one.mean[rows].mean()
        assert found.value[g] == pytest.approx(value)
        assert found.se[g] == pytest.approx(se)
        assert found.low[g] == pytest.approx(value - norm.ppf(0.975) * se)
        assert found.high[g] == pytest.approx(value + norm.ppf(0.975) * se)
        assert found.p[g] == pytest.approx(2 * norm.sf(abs(value / se)))


def test_the_jackknife_of_a_mean_is_its_standard_error():
    """Leaving out one of n outcomes at a time: s / sqrt(n), with a t of n - 1 degrees."""
    y = RNG.normal(3.0, 2.0, size=12)
    without = (y.sum() - y) / 11  # (12,)
    component = ComponentMean(1.0, np.repeat(without[:, None], 5, axis=1), folds=12)
    found = answer([component])
    se = y.std(ddof=1) / np.sqrt(12)
    np.testing.assert_allclose(found.value, y.mean())
    np.testing.assert_allclose(found.se, se)
    np.testing.assert_allclose(found.high, y.mean() + t.ppf(0.95, 11) * se)
    np.testing.assert_allclose(found.p, 2 * t.sf(y.mean() / se, 11))


def test_the_interval_is_that_of_the_mixture():
    parts = [a_component(0.3), a_component(0.7, shift=4.0)]
    found = answer(parts)
    rows = [0, 2]
    values = [part.mean[rows].mean() for part in parts]
    sds = [np.linalg.norm(part.gradient[rows].mean(axis=0) @ part.root) for part in parts]

    def cdf(y):
        return sum(w * norm.cdf(y, *each) for w, *each in zip((0.3, 0.7), values, sds, strict=True))

    assert found.value[0] == pytest.approx(0.3 * values[0] + 0.7 * values[1])
    between = 0.3 * 0.7 * (values[0] - values[1]) ** 2
    within = 0.3 * sds[0] ** 2 + 0.7 * sds[1] ** 2
    assert found.se[0] == pytest.approx(np.sqrt(between + within))
    for end, share in ((found.low[0], 0.05), (found.high[0], 0.95)):
        assert end == pytest.approx(brentq(lambda y, share=share: cdf(y) - share, -40, 40))


def test_rows_may_weigh_components_differently():
    """The value is that of the predictions; the standard error stays that of the components."""
    log_weights = RNG.normal(size=(2, 5))
    plain = [a_component(0.4), a_component(0.6)]
    parts = [
        ComponentMean(each.weight, each.mean, each.gradient, each.root, log_weight=own)
        for each, own in zip(plain, log_weights, strict=True)
    ]
    share = np.exp(log_weights) / np.exp(log_weights).sum(axis=0)
    predicted = share[0] * plain[0].mean + share[1] * plain[1].mean
    found, before = answer(parts), answer(plain)
    assert found.value[1] == pytest.approx(predicted[[1, 3, 4]].mean())
    np.testing.assert_allclose(found.se, before.se)
    np.testing.assert_allclose(found.low - before.low, found.value - before.value)


def test_probabilities_have_intervals_between_zero_and_one():
    gradient, root = np.ones((5, 1)), np.array([[0.2]])
    found = answer([ComponentMean(1.0, np.full(5, 0.05), gradient, root)], is_probability=True)
    z = norm.ppf(0.05)
    half = norm.ppf(0.95) * 0.2 / norm.pdf(z)
    np.testing.assert_allclose(found.low, norm.cdf(z - half))
    np.testing.assert_allclose(found.high, norm.cdf(z + half))
    np.testing.assert_allclose(found.se, 0.2)


def test_an_elasticity_of_a_power_is_its_exponent():
    x, step = np.array([0.5, 1.0, 2.0, 3.0, 4.0]), 1e-4
    means = [2 * (x + move) ** 1.7 for move in (step, -step, 0.0)]
    quantity = elasticity_of(groups_of(FRAME, None), x, 2 * step)
    value, _ = quantity.of(means, [None] * 3)
    assert value == pytest.approx(1.7, rel=1e-6)  # differences
    with pytest.raises(hk.DataError, match="row 0 is 1 and that of row 2 is -1"):
        quantity.of([means[0], means[1], np.array([1.0, 1.0, -1.0, 1.0, 1.0])], [None] * 3)
