"""Networks or splines: the profile takes what makes the units left out likelier."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import heckesel as hk
from heckesel.data import selection_data
from heckesel.methods import fit_one, heckman_profile, spline_joint
from heckesel.methods.heckman_profile import ProfileConfig
from heckesel.methods.spline_joint import SplineConfig, affordable
from heckesel.networks.rho.linear_joint import bases_of, conditional_optima
from heckesel.networks.rho.rho_held_out import PRIOR_WEIGHTS, HeldOut, split_held_out
from heckesel.networks.rho.rho_mixture import UPDATES, held_out_evidence
from heckesel.networks.training.config import NetworkConfig
from reproduction.problems import as_data

CPU = torch.device("cpu")
SMALL = NetworkConfig(hidden=(16,), n_members=4, epochs=400, folds=2, warm_up=0, weight_decay=1e-3)


@pytest.fixture(scope="module")
def smooth():
    return as_data(hk.datasets.make_controlled(500, rho=0.6, alpha=1.0, seed=2))


def test_the_evidence_is_that_of_each_fold_under_coefficients_without_it(smooth):
    """Fold by fold, one model at a time."""
    (fit,) = spline_joint.fit_many([smooth], seeds=[3], config=SplineConfig(folds=3))
    rows = spline_joint.with_folds(spline_joint.joint_rows(smooth, fit.scaling), smooth, 3, 3)
    columns, at = fit.basis.columns(rows.x[:, :-1])[0], int(np.argmax(fit.curve.log_evidence))
    ridges, total = fit.basis.membership, smooth.weight.sum()
    by_doubt = np.log(PRIOR_WEIGHTS)
    for fold in range(3):
        kept, held = split_held_out([replace(rows, x=columns)] * 3, 3)
        start = (fit.curve.a[at : at + 1], fit.curve.v[at], fit.curve.ridge[at])
        optima = conditional_optima(
            bases_of(kept[fold : fold + 1], [total], ridges, CPU),
            *map(torch.as_tensor, start),
            updates=UPDATES,
        )
        judge = HeldOut(bases_of(held[fold : fold + 1], [total], ridges, CPU))
        by_doubt = by_doubt + judge.readings(optima)[0]
    assert fit.info.held_out_evidence == pytest.approx(np.logaddexp.reduce(by_doubt), abs=1e-6)
    both = held_out_evidence([rows] * 2, [total] * 2, [fit] * 2, CPU, 3)
    np.testing.assert_allclose(both, fit.info.held_out_evidence, atol=1e-6)


def test_held_out_evidence_does_not_change_the_fit(smooth):
    asked, plain = (fit_one(spline_joint, smooth, config=SplineConfig(folds=f)) for f in (3, None))
    np.testing.assert_array_equal(asked.predict(smooth.x).mean, plain.predict(smooth.x).mean)
    assert plain.info.held_out_evidence is None


def test_splines_replace_networks_that_were_hardly_trained(smooth):
    hardly = replace(SMALL, epochs=5)
    fit = fit_one(heckman_profile, smooth, seed=1, config=ProfileConfig(hardly))
    told = fit.info.held_out_evidence
    assert told["spline"] > told["network"] + 10
    assert fit.info.outcome == "spline"
    alone = fit_one(spline_joint, smooth, config=SplineConfig("all"))
    np.testing.assert_allclose(fit.predict(smooth.x).mean, alone.predict(smooth.x).mean)
    assert len(fit.info.member_rho) == 4


def test_networks_stay_where_effects_are_of_three_columns_at_once():
    rng = np.random.default_rng(5)
    x, z, u = np.sign(rng.normal(size=(900, 3))), rng.normal(size=900), rng.normal(size=900)
    y = 2 * x.prod(axis=1) + 0.3 * (0.5 * u + rng.normal(size=900))
    data = selection_data(x, np.column_stack([x, z]), np.where(0.5 + z + u > 0, y, np.nan))
    fit = fit_one(heckman_profile, data, seed=1, config=ProfileConfig(SMALL))
    told = fit.info.held_out_evidence
    assert told["network"] > told["spline"] + 100
    assert fit.info.outcome == "network"


@pytest.mark.parametrize("standardise", [True, False])
def test_what_is_preferred_does_not_depend_on_the_unit_of_y(smooth, standardise):
    network = replace(SMALL, epochs=5, standardise=standardise)
    evidence = []
    for unit in (1.0, 1000.0):
        data = replace(smooth, y=unit * smooth.y)
        fit = fit_one(heckman_profile, data, seed=1, config=ProfileConfig(network))
        evidence.append(fit.info.held_out_evidence)
    mass = smooth.weight[smooth.s].sum() * np.log(1000)
    assert evidence[1]["spline"] + mass == pytest.approx(evidence[0]["spline"], abs=1e-3)
    if standardise:
        assert evidence[1]["network"] + mass == pytest.approx(evidence[0]["network"], abs=1e-3)


def test_columns_that_repeat_others_leave_the_choice_to_networks(smooth):
    twice = replace(smooth, x=np.column_stack([smooth.x, 3 - smooth.x]), x_names=("x", "again"))
    fit = fit_one(heckman_profile, twice, seed=1, config=ProfileConfig(replace(SMALL, epochs=5)))
    assert set(fit.info.held_out_evidence) == {"network"}
    beside = heckman_profile.fit_many(
        [twice, replace(twice, x=np.column_stack([smooth.x, smooth.x**2]))],
        seeds=[1, 1],
        config=ProfileConfig(replace(SMALL, epochs=5)),
    )
    assert [set(each.info.held_out_evidence) for each in beside] == [
        {"network"},
        {"network", "spline"},
    ]


def test_splines_are_as_rich_as_there_are_rows_for():
    rng = np.random.default_rng(0)
    assert affordable(rng.normal(size=(2000, 5))) == ("all", 18)
    assert affordable(rng.normal(size=(2000, 8))) == ((), 18)
    assert affordable(rng.normal(size=(300, 2))) == ("all", 18)
    assert affordable(rng.normal(size=(60, 2))) == ((), 4)
    assert affordable(rng.normal(size=(20, 2))) is None
    assert affordable(rng.normal(size=(5000, 20))) == ((), 9)
    assert affordable(rng.normal(size=(5000, 80))) is None
    assert affordable(rng.normal(size=(400_000, 2))) == ((), 18)
    assert affordable(rng.normal(size=(1_000_000, 4))) is None


def test_a_table_of_many_columns_gets_fewer_knots():
    rng = np.random.default_rng(1)
    x, z, u = rng.normal(size=(300, 4)), rng.normal(size=300), rng.normal(size=300)
    y = x.sum(axis=1) + 0.3 * (u + rng.normal(size=300))
    data = selection_data(x, np.column_stack([x, z]), np.where(z + u > 0, y, np.nan))
    assert affordable(data.x[data.s]) == ((), 4)
    (fit,) = spline_joint.fit_affordable([data], seeds=[0], folds=2)
    assert {len(np.unique(curve.knots)) - 2 for curve in fit.basis.curves} == {4}
    assert np.isfinite(fit.info.held_out_evidence)
