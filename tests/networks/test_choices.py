"""Options that are chosen on held-out rows."""

from dataclasses import replace

import numpy as np
import pytest

import heckesel as hk
from heckesel.methods import fit_one, load_method
from heckesel.networks.training.config import WEIGHT_DECAYS, NetworkConfig
from reproduction.problems import as_data

OPEN = NetworkConfig(
    hidden=(8,), n_members=2, folds=2, epochs=40, patience=10, weight_decay="auto", tails="auto"
)
METHODS = ("heckman_two_step", "heckman_joint", "deep_ensemble", "blind_two_head")


@pytest.fixture(scope="module")
def datas():
    draws = (hk.datasets.make_controlled(300, rho=0.6, alpha=1.0, seed=seed) for seed in (1, 2))
    return [as_data(draw) for draw in draws]


def test_candidates_are_all_combinations_of_open_options():
    both = replace(OPEN, errors="auto").candidates()
    assert [(one.weight_decay, one.errors, one.tails) for one in both] == [
        (decay, errors, tails)
        for decay in WEIGHT_DECAYS
        for errors, tails in (("normal", "auto"), ("t", "normal"))
    ]
    assert replace(OPEN, weight_decay=1e-4).candidates() == [replace(OPEN, weight_decay=1e-4)]


@pytest.mark.parametrize("name", METHODS)
def test_each_dataset_has_the_fit_with_the_lowest_held_out_loss(name, datas):
    method = load_method(name)
    chosen = method.fit_many(datas, seeds=[1, 2], config=OPEN, device="cpu")
    alone = [
        method.fit_many(datas, seeds=[1, 2], config=one, device="cpu") for one in OPEN.candidates()
    ]
    for dataset, fit in enumerate(chosen):
        losses = [fits[dataset].info.held_out_loss for fits in alone]
        assert [one.held_out_loss for one in fit.info.choices] == losses
        best = int(np.argmin(losses))
        assert fit.info.weight_decay == WEIGHT_DECAYS[best]
        x = datas[dataset].x
        np.testing.assert_array_equal(
            fit.predict(x).quantile(0.3), alone[best][dataset].predict(x).quantile(0.3)
        )


def test_t_errors_are_found_where_tails_are_heavy():
    """t(3) errors on 3000 units are worth dozens of log-units."""
    draw = hk.datasets.make_controlled(3000, rho=0.5, alpha=1.0, seed=3, errors="t")
    config = replace(OPEN, weight_decay=1e-5, errors="auto", tails="normal", epochs=150)
    fit = fit_one("heckman_joint", as_data(draw), seed=1, config=config, device="cpu")
    assert fit.info.errors == "t"
    assert fit.df is not None
    by_errors = {one.errors: one.held_out_loss for one in fit.info.choices}
    assert by_errors["t"] < by_errors["normal"] - 0.005


def test_progress_runs_through_all_candidates_once(datas):
    seen = []
    fit_one(
        "deep_ensemble",
        datas[0],
        seed=1,
        config=OPEN,
        device="cpu",
        progress=lambda *at: seen.append(at),
    )
    done, of = (np.array(column) for column in zip(*seen, strict=True))
    assert set(of) == {len(WEIGHT_DECAYS) * OPEN.epochs}
    assert (np.diff(done) > 0).all()
    assert done[-1] > 2 * OPEN.epochs


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"weight_decay": "auto"}, 'weight_decay="auto" needs held-out folds'),
        ({"errors": "auto"}, 'errors="auto" needs held-out folds'),
        ({"weight_decay": "some"}, "a number that is not negative or"),
        ({"errors": "auto", "folds": 2, "noise": "varying"}, "needs a constant sigma"),
    ],
)
def test_open_options_without_folds_are_refused(options, sentence):
    with pytest.raises(hk.DataError, match=sentence):
        NetworkConfig(**options)


@pytest.mark.parametrize("name", ["mc_dropout", "heckman_profile"])
def test_methods_without_held_out_rows_refuse_them(name, datas):
    config = replace(OPEN, tails="normal")
    if name == "heckman_profile":
        from heckesel.methods.heckman_profile import ProfileConfig

        config = ProfileConfig(config)
    with pytest.raises(hk.DataError, match="set a number"):
        fit_one(name, datas[0], seed=1, config=config, device="cpu")
