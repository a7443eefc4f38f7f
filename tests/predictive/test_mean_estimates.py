"""Means over rows with their uncertainty: special cases with a known answer."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, t

from heckesel.margins import (
    ComponentMean,
    Question,
    average_of,
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
