"""What is particular to single methods; what they share is in the contract test."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.special import ndtr

from heckesel.classical import linear_model as linear_heckman
from heckesel.classical.two_step import fit_two_step
from heckesel.data import selection_data
from heckesel.errors import DataError
from heckesel.methods import (
    blind_two_head,
    deep_ensemble,
    fit_one,
    heckman_joint,
    heckman_two_step,
    least_squares,
    mc_dropout,
    oracle,
    skyline,
    weighted_ensemble,
)
from heckesel.methods.oracle import OracleConfig
from heckesel.methods.skyline import SkylineConfig
from heckesel.methods.weighted_ensemble import WeightedConfig
from heckesel.networks.training.config import NetworkConfig

CONFIG = NetworkConfig(
    hidden=(8, 8), n_members=2, epochs=60, warm_up=20, dtype="float64", device="cpu"
)
X_NEW = np.linspace(-2, 2, 9)[:, None]


def _draw(n=300, seed=0, rho=0.8, slope=0.5):
    """Data and the outcomes of all units; sigma is .5, the index -.5 x + z."""
    rng = np.random.default_rng(seed)
    x, z, u, v = rng.uniform(-2, 2, n), *rng.normal(size=(3, n))
    y = 1 + slope * x + 0.5 * (rho * u + np.sqrt(1 - rho**2) * v)
    seen = np.where(-0.5 * x + z + u > 0, y, np.nan)
    return selection_data(x[:, None], np.column_stack([x, z]), seen), y


def _assert_equal(one, other):
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9)
    np.testing.assert_allclose(one.std, other.std, rtol=1e-9)


def test_equal_propensities_are_the_plain_ensemble_and_unequal_ones_are_not():
    data, _ = _draw()
    plain = fit_one(deep_ensemble, data, seed=1, config=CONFIG).predict(X_NEW)
    equal, unequal = (
        fit_one(weighted_ensemble, data, seed=1, config=WeightedConfig(p, CONFIG)).predict(X_NEW)
        for p in (np.full(data.n, 0.3), ndtr(data.w @ [-0.5, 1.0]))
    )
    _assert_equal(equal, plain)
    assert (np.abs(unequal.mean - plain.mean) > 1e-4).all()


def test_a_propensity_that_is_not_given_comes_from_a_probit():
    data, _ = _draw(20_000)
    truth = ndtr(data.w @ [-0.5, 1.0])
    # A probit on 20 000 units has coefficients with standard errors of about .015.
    np.testing.assert_allclose(weighted_ensemble.estimated_propensity(data), truth, atol=0.03)


def test_the_skyline_is_the_ensemble_on_complete_data():
    data, y = _draw()
    complete = selection_data(data.x, data.w, y)
    expected = fit_one(deep_ensemble, complete, seed=1, config=CONFIG).predict(X_NEW)
    found = fit_one(skyline, data, seed=1, config=SkylineConfig(y, CONFIG)).predict(X_NEW)
    _assert_equal(found, expected)
    with pytest.raises(DataError, match="needs x and y of every unit"):
        fit_one(skyline, data, seed=1, config=SkylineConfig(data.y, CONFIG))


def test_the_oracle_predicts_the_given_mean_and_sd():
    config = OracleConfig(lambda x: 2 * x[:, 0], 0.5)
    predictive = fit_one(oracle, _draw()[0], seed=0, config=config).predict(X_NEW)
    np.testing.assert_allclose(predictive.mean, 2 * X_NEW[:, 0])
    np.testing.assert_allclose(predictive.std, 0.5)
    with pytest.raises(DataError, match="the population only"):
        fit_one(oracle, _draw()[0], seed=0, config=config).predict(X_NEW, target="selected")


@pytest.mark.parametrize(
    "method", [heckman_two_step, heckman_joint, blind_two_head, deep_ensemble, mc_dropout]
)
def test_the_training_loss_is_a_log_density_in_the_units_of_y(method):
    data, _ = _draw()
    small, large = (
        fit_one(method, replace(data, y=unit * data.y), seed=1, config=CONFIG).info.training_loss
        for unit in (1.0, 1000.0)
    )
    # Outcomes a thousand times as large have a density a thousand times as low; where the mean
    # is over all units, only the selected share has one.
    over_all_units = method in (heckman_joint, blind_two_head)
    shift = np.log(1000.0) * (data.s.mean() if over_all_units else 1.0)
    np.testing.assert_allclose(np.subtract(large, small), shift, rtol=1e-6)


def test_the_blind_model_gives_all_three_targets_the_same_mean():
    data, _ = _draw()
    fitted = fit_one(blind_two_head, data, seed=1, config=CONFIG)
    everyone = fitted.predict(X_NEW)
    w = np.column_stack([X_NEW, np.zeros(9)])
    for target in ("selected", "unselected"):
        given = fitted.predict(X_NEW, w, target)
        np.testing.assert_allclose(given.mean, everyone.mean)
        np.testing.assert_allclose(given.interval(), everyone.interval(), atol=1e-8)
    assert fitted.info.rho == [0.0, 0.0]


@pytest.mark.parametrize(
    ("method", "classic"),
    [(heckman_two_step, fit_two_step), (heckman_joint, partial(fit_one, linear_heckman))],
)
def test_on_a_line_the_corrected_ensembles_find_what_the_classic_estimator_finds(method, classic):
    data, _ = _draw(3000)
    data = replace(data, w=data.w * [1, 4] + [0, 3])
    config = replace(CONFIG, hidden=(8, 8), epochs=1200, warm_up=100, dtype="float32")
    fitted = fit_one(method, data, seed=1, config=config)
    if classic is fit_two_step:
        constant = np.ones((data.n, 1))
        found = classic(
            replace(data, x=np.hstack([data.x, constant]), w=np.hstack([data.w, constant]))
        )
    else:
        found = classic(data).estimates
    # The networks may bend a little where the line may not, and decay pulls weights by 1e-5:
    # a tenth of the standard errors (.03 for rho and the index).
    index = data.w @ found.gamma[:2] + found.gamma[2]
    np.testing.assert_allclose(fitted.index(data.w), index, atol=0.003)
    np.testing.assert_allclose(fitted.info.rho, found.rho, atol=0.003)
    np.testing.assert_allclose(fitted.info.sigma, found.sigma, rtol=0.003)


def test_a_dropout_prediction_does_not_depend_on_the_other_points():
    fitted = fit_one(mc_dropout, _draw()[0], seed=1, config=CONFIG)
    together, alone = fitted.predict(X_NEW), fitted.predict(X_NEW[3:4])
    np.testing.assert_allclose(together.mean[3:4], alone.mean, rtol=1e-12)
    assert (together.epistemic > 0).all()


def test_linear_methods_recover_a_line_and_only_one_of_them_without_bias():
    data, y = _draw(40_000)
    line = 1 + 0.5 * X_NEW[:, 0]
    naive = fit_one(least_squares, data).predict(X_NEW)
    corrected = fit_one(linear_heckman, data)
    predictive = corrected.predict(X_NEW)
    assert (naive.mean - line > 0.1).all()
    # Errors in units of the fit's own standard error; nine correlated points, four of them.
    assert (np.abs(predictive.mean - line) < 4 * np.sqrt(predictive.epistemic)).all()
    np.testing.assert_allclose(predictive.aleatoric, 0.25, rtol=0.05)
    expected = np.polyfit(data.x[data.s, 0], data.y[data.s], 1)
    np.testing.assert_allclose(naive.mean, np.polyval(expected, X_NEW[:, 0]), rtol=1e-10)
    unseen = corrected.predict(data.x[~data.s], data.w[~data.s], "unselected")
    # 20 000 outcomes with an sd of .5 that nobody saw: four standard errors.
    assert abs(unseen.mean.mean() - y[~data.s].mean()) < 0.04
