"""The paper's baselines: what each must equal in a special case."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr

from heckesel.data import selection_data
from heckesel.deep.training import NetworkConfig
from heckesel.errors import DataError
from reproduction.baselines import METHODS, Oracle, fit

CONFIG = NetworkConfig(hidden=(8,), n_members=2, epochs=40, dtype="float64", device="cpu")
X_NEW = np.linspace(-2, 2, 9)[:, None]
ORACLE = Oracle(lambda x: 2 * x[:, 0], 0.5)


def _problem(n=300, seed=0, rho=0.8):
    """sigma is .5, the index -.5 x + z; the propensity does not depend on the unit."""
    rng = np.random.default_rng(seed)
    x, z, u, v = rng.uniform(-2, 2, n), *rng.normal(size=(3, n))
    y = 1 + 0.5 * x + 0.5 * (rho * u + np.sqrt(1 - rho**2) * v)
    seen = np.where(-0.5 * x + z + u > 0, y, np.nan)
    data = selection_data(x[:, None], np.column_stack([x, z]), seen)
    return SimpleNamespace(data=data, truth=SimpleNamespace(y=y, propensity=np.full(n, 0.3)))


def _fit(name, problem, **options):
    (found,) = fit(name, [problem], [1], CONFIG, device="cpu", oracle=ORACLE, **options)
    return found


@pytest.mark.parametrize("name", METHODS)
def test_every_method_predicts_the_population(name):
    found = _fit(name, _problem()).predict(X_NEW)
    assert found.mean.shape == (9,)
    assert (found.std > 0).all()


def test_equal_propensities_are_the_plain_ensemble_and_unequal_ones_are_not():
    problem = _problem()
    plain = _fit("deep_ensemble", problem).predict(X_NEW)
    equal = _fit("weighted_ensemble", problem).predict(X_NEW)
    np.testing.assert_allclose(equal.mean, plain.mean, rtol=1e-9)
    problem.truth.propensity = ndtr(problem.data.w @ [-0.5, 1.0])
    unequal = _fit("weighted_ensemble", problem).predict(X_NEW)
    assert (np.abs(unequal.mean - plain.mean) > 1e-4).all()


def test_the_skyline_is_the_ensemble_on_complete_data():
    problem = _problem()
    complete = replace(problem.data, y=problem.truth.y, s=np.ones(300, dtype=bool))
    expected = _fit("deep_ensemble", SimpleNamespace(data=complete)).predict(X_NEW)
    np.testing.assert_array_equal(_fit("skyline", problem).predict(X_NEW).mean, expected.mean)


def test_the_blind_model_keeps_rho_at_zero_for_all_three_targets():
    found = _fit("blind_two_head", _problem())
    assert found.info.rho == [0.0, 0.0]
    w = np.column_stack([X_NEW, np.zeros(9)])
    for target in ("selected", "unselected"):
        given = found.predict(X_NEW, w, target)
        np.testing.assert_allclose(given.mean, found.predict(X_NEW).mean)


def test_the_oracle_predicts_the_given_mean_and_sd():
    found = _fit("oracle", _problem())
    np.testing.assert_allclose(found.predict(X_NEW).mean, 2 * X_NEW[:, 0])
    np.testing.assert_allclose(found.predict(X_NEW).std, 0.5)
    with pytest.raises(DataError, match="the population only"):
        found.predict(X_NEW, target="selected")


def test_a_dropout_prediction_does_not_depend_on_the_other_points():
    found = _fit("mc_dropout", _problem())
    together, alone = found.predict(X_NEW), found.predict(X_NEW[3:4])
    np.testing.assert_allclose(together.mean[3:4], alone.mean, rtol=1e-12)
    assert (together.epistemic > 0).all()


def test_a_gaussian_process_finds_the_line_of_the_selected():
    problem = _problem(rho=0.0)
    found = _fit("gp", problem).predict(X_NEW)
    assert (np.abs(found.mean - 1 - 0.5 * X_NEW[:, 0]) < 4 * np.sqrt(found.epistemic) + 0.05).all()
    np.testing.assert_allclose(np.sqrt(found.aleatoric), 0.5, rtol=0.2)


def test_a_method_that_does_not_exist_is_refused():
    with pytest.raises(DataError, match="there is no method 'magic'"):
        _fit("magic", _problem())
