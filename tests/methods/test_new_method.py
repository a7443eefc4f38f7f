"""A new method is one file and one line of METHODS: everything else takes it from there."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import heckesel as hk
from heckesel.estimators.network_options import network_config
from heckesel.methods import DEEP, METHODS, Method, fit_one
from tests.methods import toy_method
from tests.small_models import SMALL, X, Y

TOY = Method(
    "a toy",
    "toy",
    DEEP,
    "ToyFit",
    "tests.methods.toy_method",
    way="by drawing a line",
    weight_decay=0.5,
    members=4,
    needs_folds=True,
    one_sigma=True,
    rho_prior=True,
    explains=True,
)


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setitem(METHODS, "toy_method", TOY)
    return hk.DeepHeckmanRegressor(method="toy", **SMALL).fit(X, Y)


def test_a_new_method_fits_and_predicts_by_the_name_a_user_types(model):
    seen = Y.notna()
    columns = np.column_stack([model.columns_.x(X)[seen], np.ones(seen.sum())])
    expected = columns @ np.linalg.lstsq(columns, Y[seen], rcond=None)[0]
    np.testing.assert_allclose(model.predict(X)[seen], expected)
    assert model.rho_.tolist() == [0.0]


def test_a_new_method_states_its_properties_and_builds_its_options(model):
    given = hk.DeepHeckmanRegressor(method="toy", rho_prior="positive", selection="auto")
    network = network_config(given, selected=20)
    assert (network.folds, network.n_members, network.weight_decay) == (5, 4, 0.5)
    assert (network.noise, network.tails) == ("constant", "normal")
    assert (network.selection, network.errors) == ("linear", "normal")
    assert toy_method.options(network, given) == toy_method.ToyConfig(5, "positive")
    assert model.explanation_ == model.identification_.sentence
    with pytest.raises(hk.DataError, match="method='auto' or 'profile' or 'toy', but"):
        hk.DeepHeckmanRegressor(method="joint", rho_prior="positive").fit(X, Y)


def test_a_new_method_that_cannot_read_files_says_so(model, tmp_path):
    pytest.importorskip("pyarrow")
    X.assign(y=Y).to_parquet(tmp_path / "rows.parquet")
    files = hk.DeepHeckmanRegressor(["z"], method="toy", batch_size=32)
    with pytest.raises(hk.DataError, match="method='toy' needs all rows in memory"):
        files.fit(tmp_path / "rows.parquet", "y")


def test_a_new_method_is_fitted_by_its_name_in_the_table(model):
    from heckesel.data import selection_data

    data = selection_data(X[["x"]], X[["x", "z"]], Y)
    assert fit_one("toy_method", data).predict(data.x).mean.shape == (len(X),)


def test_a_fit_of_a_new_method_is_saved_loaded_and_checked(model, tmp_path):
    path = tmp_path / "toy.heckesel"
    model.save(path)
    loaded = hk.load(path)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.fitted_.slope, model.fitted_.slope)
    assert set(model.info_) == {"rho", "sigma", "share"}
    assert loaded.info_ == model.info_
    assert loaded.fitted_.info == model.fitted_.info


def test_networks_of_a_new_method_are_found_whatever_its_fields_are_called():
    from heckesel.networks.ensembles.selection_ensemble import GaussianEnsemble, with_networks
    from heckesel.networks.training.ensemble_training import Members

    @dataclass(frozen=True)
    class Fit:
        nets: Members
        baseline: GaussianEnsemble
        count: int

    ones = Members((1, 2), np.ones((1, 4)), np.zeros(1))
    found = with_networks(
        Fit(ones, GaussianEnsemble(ones, None, None), 3),
        lambda members: replace(members, parameters=2 * members.parameters),
    )
    assert (found.nets.parameters == 2).all()
    assert (found.baseline.members.parameters == 2).all()
    assert found.count == 3


def test_without_its_line_a_method_is_unknown():
    with pytest.raises(hk.DataError, match="method must be one of two-step, joint"):
        hk.DeepHeckmanRegressor(method="toy", **SMALL).fit(X, Y)
