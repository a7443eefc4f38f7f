"""Where heads of members on folds start: at a linear two-step where instruments are strong."""

from dataclasses import replace

import numpy as np
import pytest

from heckesel.classical.probit import instruments_are_strong
from heckesel.classical.two_step import fit_two_step
from heckesel.data import selection_data
from heckesel.datasets import make_controlled
from heckesel.methods import fit_one
from heckesel.methods.heckman_joint import classic_head
from heckesel.methods.heckman_two_step import first_step, linear_start
from heckesel.networks.losses.normal import BLIND, JOINT
from heckesel.networks.training.batches import data_scale_of, joint_rows
from heckesel.networks.training.config import NetworkConfig
from heckesel.verdict.fitted import identify_data
from reproduction.problems import as_data

NETWORK = NetworkConfig(
    hidden=(16,), n_members=4, epochs=300, dtype="float64", device="cpu", folds=4, patience=40
)


def _pool(alpha, n=600, seed=100, rho=0.0):
    return as_data(make_controlled(n, rho=rho, alpha=alpha, sigma=0.5, seed=seed))


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.15, 0.2, 0.3, 1.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_an_instrument_is_strong_where_its_wald_statistic_is_ten(alpha, seed):
    data = _pool(alpha, seed=seed)
    assert instruments_are_strong(data) == (identify_data(data).evidence["wald"] >= 10)
    more = np.random.default_rng(3).uniform(1, 3, data.n)
    weighted = replace(data, weight=more)
    assert instruments_are_strong(weighted) == (identify_data(weighted).evidence["wald"] >= 10)


@pytest.mark.parametrize("alpha", [0.0, 0.15, 1.0])
def test_columns_that_depend_on_one_another_do_not_hide_an_instrument(alpha):
    data = _pool(alpha)
    twice = selection_data(
        data.x,
        np.column_stack([data.w, 1000 * data.w[:, 0] - 7]),
        data.y,
        w_names=(*data.w_names, "again"),
        excluded=data.instruments,
    )
    assert instruments_are_strong(twice) == instruments_are_strong(data)


def test_nothing_is_strong_without_an_instrument():
    data = _pool(1.0)
    assert not instruments_are_strong(
        selection_data(data.x, data.x, data.y, x_names=data.x_names, w_names=data.x_names)
    )


def test_a_strong_instrument_starts_the_heads_at_a_classic_two_step():
    data = _pool(1.0, rho=0.6)
    first = first_step(data, data_scale_of(data, False), folds=5)
    constant = np.ones((data.n, 1))
    classic = fit_two_step(
        selection_data(
            np.hstack([data.x, constant]),
            np.hstack([data.w, constant]),
            data.y,
            x_names=(*data.x_names, "Intercept"),
            w_names=(*data.w_names, "Intercept"),
        )
    )
    start = linear_start(first.batch, first.strong)
    c, sigma = start.c, start.sigma
    assert first.strong
    assert c == pytest.approx(classic.lambda_coef, rel=1e-6)
    assert sigma == pytest.approx(classic.sigma, rel=1e-6)


def test_a_weak_one_starts_them_at_least_squares_without_a_correction():
    data = _pool(0.0, rho=0.6)
    first = first_step(data, data_scale_of(data, True), folds=5)
    x, y = first.batch.x, first.batch.y
    residual = y - x @ np.linalg.solve(x.T @ x, x.T @ y)
    start = linear_start(first.batch, first.strong)
    c, sigma = start.c, start.sigma
    assert not first.strong
    assert c == 0
    assert sigma == pytest.approx(np.sqrt(np.mean(residual**2)), rel=1e-10)
    dataset = joint_rows(data, data_scale_of(data, True))
    *_, log_sigma, atanh_rho = classic_head(dataset, JOINT, first.strong)
    assert atanh_rho == 0
    assert np.exp(log_sigma) == pytest.approx(sigma, rel=1e-10)
    assert classic_head(dataset, BLIND, first.strong)[-1] == log_sigma


@pytest.mark.parametrize("name", ["heckman_two_step", "heckman_joint"])
def test_a_nonlinear_outcome_is_not_mistaken_for_selection_without_an_instrument(name):
    data = _pool(0.0)  # rho is zero, f a sine: its bend loads on the Mills ratio
    fit = fit_one(name, data, seed=100, config=NETWORK)
    linear = linear_start(first_step(data, data_scale_of(data, True)).batch, strong=True).c
    assert linear > 3  # in sds of y, where a linear two-step would have started
    # Over three pools the two-step ends within .5 of zero and the joint within .2; started at the
    # linear two-step they end beyond 4.5 and .93.
    assert np.abs(fit.info.rho).max() < 0.7
