"""A user's own module in place of the perceptrons."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from heckesel.data import selection_data
from heckesel.errors import DataError
from heckesel.methods import fit_one, heckman_joint, heckman_two_step, own_network
from heckesel.networks.training.batches import data_scale_of
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.steps import (
    INITIAL_WEIGHTS,
    initial_weights,
    layer_views,
    member_seed,
)

SIZES = (2, 6, 5, 1)
CONFIG = NetworkConfig(
    hidden=SIZES[1:-1], n_members=2, epochs=40, warm_up=15, dtype="float64", device="cpu"
)
X_NEW = np.random.default_rng(3).normal(size=(9, 2))


def _data(n=90, seed=0):
    rng = np.random.default_rng(seed)
    x, z, u = rng.normal(size=(n, 2)), rng.normal(size=n), rng.normal(size=n)
    y = np.sin(x[:, 0]) + 0.4 * u + 0.2 * rng.normal(size=n)
    return selection_data(x, np.column_stack([x, z]), np.where(z + u > 0, y, np.nan))


def _perceptrons_like_ours(seed):
    """make_net whose j-th call is the j-th member of the batched trainer."""
    calls = iter(range(CONFIG.n_members))

    def make_net(own_seed):
        row = initial_weights([member_seed(seed, next(calls), INITIAL_WEIGHTS)], SIZES)
        layers = []
        for matrix in layer_views(torch.tensor(row), SIZES):
            linear = nn.Linear(*matrix.shape[1:]).double()
            linear.weight = nn.Parameter(matrix[0, :-1].T.clone())
            linear.bias = nn.Parameter(matrix[0, -1].clone())
            layers += [linear, nn.SiLU()]
        return nn.Sequential(*layers[:-1])

    return make_net


@pytest.mark.parametrize("batch_size", [None, 32], ids=["full batch", "mini-batches"])
@pytest.mark.parametrize(
    ("method", "module"), [("two-step", heckman_two_step), ("joint", heckman_joint)]
)
def test_a_perceptron_as_a_custom_module_equals_the_built_in_one(method, module, batch_size):
    data, config = _data(), replace(CONFIG, batch_size=batch_size)
    ours = fit_one(module, data, seed=7, config=config)
    scaling = data_scale_of(data, True)
    theirs = own_network.fit(
        _perceptrons_like_ours(7), scaling.x(data.x), data, seed=7, method=method, config=config
    )
    expected, found = ours.predict(X_NEW), theirs.predict(scaling.x(X_NEW))
    # One computation written twice; rounding magnified by forty epochs.
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-8)
    np.testing.assert_allclose(found.std, expected.std, atol=1e-8)
    for key in ("rho", "sigma", "training_loss"):
        np.testing.assert_allclose(getattr(theirs.info, key), getattr(ours.info, key), atol=1e-8)


def test_inputs_of_any_shape_and_type_reach_the_module():
    data = _data()
    tokens = np.random.default_rng(1).integers(0, 11, (90, 4, 3))

    def make_net(seed):
        return nn.Sequential(nn.Flatten(), nn.Embedding(11, 2), nn.Flatten(), nn.Linear(24, 1))

    config = replace(CONFIG, dtype="float32", batch_size=30, epochs=3)
    calls = []
    fitted = own_network.fit(
        make_net, tokens, data, seed=1, config=config, progress=lambda *call: calls.append(call)
    )
    assert fitted.predict(tokens[:7]).mean.shape == (7,)
    assert fitted.predict(tokens[:7], data.w[:7], "unselected").mean.shape == (7,)
    assert calls == [(done, 6) for done in range(1, 7)]


def test_modules_that_draw_from_the_global_generator_are_repeatable():
    data = _data()

    def make_net(seed):
        return nn.Sequential(nn.Linear(2, 8), nn.SiLU(), nn.Dropout(0.2), nn.Linear(8, 1)).double()

    means = []
    for draws in (3, 7):
        torch.rand(draws)  # whatever the caller drew before must not matter
        before = torch.random.get_rng_state()
        fitted = own_network.fit(make_net, data.x, data, seed=1, config=CONFIG)
        means.append(fitted.predict(X_NEW).mean)
        assert torch.equal(before, torch.random.get_rng_state())
    np.testing.assert_array_equal(*means)


def test_lazy_frozen_and_unused_weights_are_trained_as_torch_would():
    data = _data()
    unused, frozen = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(1), requires_grad=False)

    def make_net(seed):
        net = nn.Sequential(nn.LazyLinear(4), nn.SiLU(), nn.Linear(4, 1))
        net.register_parameter("unused", unused)
        net.register_parameter("frozen", frozen)
        return net

    config = replace(CONFIG, n_members=1, weight_decay=0.0)  # in float64, the weights in float32
    fitted = own_network.fit(make_net, data.x.astype("float32"), data, seed=1, config=config)
    (net,) = fitted.members.nets
    assert {weight.dtype for weight in net.parameters()} == {torch.float32}
    assert torch.equal(unused, torch.ones(3))
    assert torch.equal(frozen, torch.ones(1))
    assert fitted.info.training_loss[0] < 1.0


def test_a_module_with_the_wrong_output_is_refused():
    with pytest.raises(DataError, match=r"to shape \(\d+, 1\) but returned \(\d+, 3\)"):
        own_network.fit(
            lambda seed: nn.Linear(2, 3).double(), _data().x, _data(), seed=1, config=CONFIG
        )


def test_a_wrong_number_of_inputs_or_an_unknown_method_is_refused():
    with pytest.raises(DataError, match="inputs have 5 rows but there are 90 units"):
        own_network.fit(lambda seed: nn.Linear(2, 1), np.zeros((5, 2)), _data(), seed=1)
    with pytest.raises(DataError, match="two-step, joint, blind, got 'ml'"):
        own_network.fit(lambda seed: nn.Linear(2, 1), _data().x, _data(), seed=1, method="ml")
