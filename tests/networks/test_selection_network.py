"""A selection index of networks: cross-fitted, and chosen on held-out rows if it is better."""

from dataclasses import replace

import numpy as np
import pytest

import heckesel as hk
from heckesel.data import selection_data
from heckesel.errors import DataError
from heckesel.math.special import inverse_mills
from heckesel.methods import fit_one
from heckesel.methods.heckman_two_step import first_step
from heckesel.methods.parts.selection_network import fit_indices
from heckesel.networks.training.batches import assign_folds, data_scale_of
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import FitRequest

NETWORK = NetworkConfig(
    hidden=(16,), n_members=4, folds=4, epochs=200, device="cpu", selection="network", patience=40
)


def _draw(n, seed, curve):
    rng = np.random.default_rng(seed)
    x, z, u = rng.uniform(-2, 2, (n, 1)), rng.normal(size=n), rng.normal(size=n)
    index = curve(x[:, 0], z)
    y = x[:, 0] + 0.5 * (0.7 * u + np.sqrt(0.51) * rng.normal(size=n))
    w = np.column_stack([x, z])
    return selection_data(x, w, np.where(index + u > 0, y, np.nan)), index


def _bent(x, z):
    return 1.5 * np.abs(z) - 1.2 - 0.4 * x


def test_a_bent_index_is_found_where_a_probit_misses_it():
    data, index = _draw(2500, 0, _bent)
    fitted = fit_one("heckman_two_step", data, seed=1, config=NETWORK)
    losses = fitted.info.selection_losses
    assert losses["network"] < losses["linear"] - 0.02
    assert np.corrcoef(fitted.index(data.w), index)[0, 1] > 0.9
    probit = fit_one("heckman_two_step", data, seed=1, config=replace(NETWORK, selection="linear"))
    assert np.corrcoef(probit.index(data.w), index)[0, 1] < 0.9
    for target in ("selected", "unselected"):
        assert np.isfinite(fitted.predict(data.x[:5], data.w[:5], target).interval()).all()


def test_networks_do_not_beat_a_probit_where_the_index_is_linear():
    data, _ = _draw(1000, 1, lambda x, z: 0.3 - 0.5 * x + z)
    losses = fit_one("heckman_two_step", data, seed=1, config=NETWORK).info.selection_losses
    assert losses["linear"] < losses["network"] + 0.005


@pytest.mark.parametrize(
    ("curve", "best"), [(_bent, "network"), (lambda x, z: 0.3 - 0.5 * x + z, "linear")]
)
def test_held_out_rows_choose_between_a_probit_and_networks(curve, best):
    data, _ = _draw(1000, 4, curve)
    small = replace(NETWORK, epochs=60)
    fits = {
        name: fit_one("heckman_two_step", data, seed=1, config=replace(small, selection=name))
        for name in ("linear", "network", "auto")
    }
    chosen = fits["auto"]
    assert chosen.info.selection == best
    assert chosen.info.selection_losses == fits["network"].info.selection_losses
    np.testing.assert_allclose(chosen.index(data.w), fits[best].index(data.w), rtol=1e-9)
    np.testing.assert_allclose(
        chosen.predict(data.x).mean, fits[best].predict(data.x).mean, rtol=1e-3
    )


def test_an_estimator_with_folds_chooses_the_index_on_held_out_rows():
    data, _ = _draw(700, 5, _bent)
    options = {"selection": "auto", "epochs": 200, "hidden": (8,), "progress": False}
    options |= {"instruments": [1]}
    for rows, expected in ((700, "network"), (120, None)):
        model = hk.DeepHeckmanRegressor(**{"method": "two-step"} | options).fit(
            data.w[:rows], data.y[:rows]
        )
        assert model.info_.get("selection") == expected
    joint = hk.DeepHeckmanRegressor(**options, method="joint").fit(data.w, data.y)
    assert "selection" not in joint.info_


def test_a_units_index_does_not_depend_on_whether_it_was_selected():
    data, _ = _draw(300, 2, _bent)
    scaling, fold = data_scale_of(data, True), assign_folds(data, 4, seed=1)
    (crossed,) = fit_indices(FitRequest([data], [1], NETWORK))
    outputs = crossed.members.outputs(scaling.w(data.w))[..., 0]
    np.testing.assert_allclose(crossed.index, outputs[fold, np.arange(data.n)], rtol=1e-12)
    first = first_step(data, scaling, folds=4, seed=1, index=crossed)
    np.testing.assert_allclose(first.batch.mills, inverse_mills(crossed.index[data.s]), rtol=1e-12)
    np.testing.assert_array_equal(first.batch.fold, fold[data.s])


def test_a_network_index_is_refused_where_it_cannot_be_cross_fitted():
    with pytest.raises(DataError, match="needs folds"):
        NetworkConfig(selection="network")
    with pytest.raises(DataError, match="folds is 5 and n_members is 3"):
        NetworkConfig(selection="network", folds=5, n_members=3)
    with pytest.raises(DataError, match="'auto' needs folds"):
        NetworkConfig(selection="auto")
    with pytest.raises(DataError, match="linear, network, auto"):
        NetworkConfig(selection="tree")
    data, _ = _draw(200, 3, _bent)
    with pytest.raises(DataError, match='needs method="two-step"'):
        fit_one("heckman_joint", data, seed=0, config=NETWORK)
