"""Mixtures over rho: splines and last layers, weighed by their evidence."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp, ndtr

import heckesel as hk
from heckesel.data import selection_data
from heckesel.fit_info import RhoInfo, as_dictionary, from_dictionary
from heckesel.methods import fit_one, heckman_profile, spline_joint
from heckesel.methods.heckman_profile import ProfileConfig, both_signs
from heckesel.methods.spline_joint import SplineConfig
from heckesel.networks.rho import rho_mixture
from heckesel.networks.training.config import NetworkConfig


@pytest.fixture(scope="module")
def controlled():
    frame = hk.datasets.make_controlled(400, rho=0.6, alpha=1.0, seed=3).frame
    x, w = frame[["x"]].to_numpy(), frame[["x", "z"]].to_numpy()
    return selection_data(x, w, frame["y"].to_numpy(), weight=np.r_[np.ones(390), 2 * np.ones(10)])


@pytest.fixture(scope="module")
def mixture(controlled):
    return fit_one(spline_joint, controlled)


def test_points_have_the_weights_of_the_curve_but_for_negligible_ones(mixture):
    kept = mixture.curve.weight > rho_mixture.NEGLIGIBLE
    at, model = np.nonzero(kept)
    share = mixture.curve.weight[kept]
    np.testing.assert_allclose(mixture.points.weight, share / share.sum(), rtol=1e-12)
    np.testing.assert_allclose(mixture.points.rho, mixture.curve.rho[at])
    np.testing.assert_allclose(mixture.points.delta, mixture.curve.v[at, model, 3:-1], atol=0.01)
    assert 1 - share.sum() < 0.02


def test_the_variance_of_f_is_that_under_draws_of_delta_and_theta(mixture):
    x = np.array([[-2.5], [0.3], [2.0]])
    columns = mixture.basis.columns(mixture.scaling.x(x))
    mean, epistemic = mixture._moments(columns)
    part = int(np.argmax(mixture.points.weight))
    centre = np.append(mixture.points.delta[part], mixture.points.theta[part])
    rng = np.random.default_rng(0)
    # Draws a hundredth as wide, where the delta method is exact but for 1e-4 of the variance.
    draws = (
        centre
        + 0.01 * rng.normal(size=(200_000, len(centre))) @ mixture.points.cholesky_factor[part].T
    )
    f = draws[:, :-1] @ columns[0].T / draws[:, -1:]
    np.testing.assert_allclose(f.mean(axis=0), mean[part], atol=1e-3)
    # The variance of 2e5 draws has a relative sd of sqrt(2/2e5) = .3 %.
    np.testing.assert_allclose(1e4 * f.var(axis=0), epistemic[part], rtol=0.015)


@pytest.mark.parametrize("z", [-2.0, 0.0, 3.0])
def test_selected_and_unselected_add_up_to_the_population(mixture, z):
    x = np.linspace(-3, 3, 9)[:, None]
    w = np.column_stack([x, np.full(9, z)])
    y = np.sin(1.5 * x[:, 0]) + 0.4
    population, selected, unselected = (
        mixture.predict(x, w, target) for target in ("population", "selected", "unselected")
    )
    p = ndtr(mixture.index(w))
    for at in (y - 1, y, y + 0.7):
        both = p * selected.cdf(at) + (1 - p) * unselected.cdf(at)
        np.testing.assert_allclose(both, population.cdf(at), atol=1e-9)
    np.testing.assert_allclose(p * selected.mean + (1 - p) * unselected.mean, population.mean)


def test_the_index_holds_where_a_probability_rounds_to_one(mixture):
    # 1 - P(s = 1) is Phi(-index), so both signs of the index see the same tail.
    far = np.array([[0.0, 12.0], [0.0, 25.0], [0.0, -25.0]])
    indices = mixture._indices(far)
    assert indices[:, :2].min() > 9
    found = mixture.index(far)
    log_out = logsumexp(np.log(mixture.points.weight)[:, None] + log_ndtr(-indices), axis=0)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(log_ndtr(-found[:2]), log_out[:2], rtol=1e-10)
    near = np.array([[0.0, 0.4], [1.0, -0.2]])
    probability = mixture.points.weight @ ndtr(mixture._indices(near))
    np.testing.assert_allclose(ndtr(mixture.index(near)), probability, rtol=1e-12)


def test_datasets_may_differ_in_splines_and_columns(controlled):
    group, coarse = controlled.x[:, :1] > 0, np.digitize(controlled.x[:, 0], [-1, 0, 1])
    one = replace(controlled, x=group.astype(float))
    two = replace(one, x=np.column_stack([group, coarse]).astype(float), x_names=("g", "c"))
    together = spline_joint.fit_many([one, controlled, two])
    for fit, data in zip(together, (one, controlled, two), strict=True):
        alone = fit_one(spline_joint, data)
        np.testing.assert_allclose(alone.predict(data.x).mean, fit.predict(data.x).mean, atol=1e-6)


def test_weight_divided_among_very_many_points_still_makes_a_mixture(monkeypatch):
    monkeypatch.setattr(rho_mixture, "NEGLIGIBLE", 0.5)
    data = hk.datasets.make_controlled(200, rho=0.3, alpha=1.0, seed=5).frame
    table = selection_data(
        data[["x"]].to_numpy(), data[["x", "z"]].to_numpy(), data["y"].to_numpy()
    )
    fit = fit_one(spline_joint, table)
    assert fit.points.weight.sum() == pytest.approx(1)
    assert np.isfinite(fit.predict(table.x).mean).all()


def test_unknown_interactions_are_refused(controlled):
    for pair in ((0, 0), (0, 1), (-1, 0)):
        with pytest.raises(hk.DataError, match="an interaction is two different columns below 1"):
            fit_one(spline_joint, controlled, config=SplineConfig(interactions=[pair]))


def test_a_surface_describes_what_a_sum_of_curves_cannot():
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, size=(600, 2))
    w = np.column_stack([x, rng.normal(size=600)])
    u = rng.normal(size=600)
    y = np.where(w[:, 2] + u > -0.5, 2 * x[:, 0] * x[:, 1] + 0.3 * rng.normal(size=600), np.nan)
    data = selection_data(x, w, y)
    at = rng.uniform(-0.9, 0.9, size=(200, 2))
    truth = 2 * at[:, 0] * at[:, 1]
    errors = []
    for pairs in ((), "all"):
        fit = fit_one(spline_joint, data, config=SplineConfig(interactions=pairs))
        errors.append(np.sqrt(np.mean((fit.predict(at).mean - truth) ** 2)))
    assert errors[0] > 0.4  # the whole of x1 x2, which has sd .6 in these units
    assert errors[1] < 0.12


@pytest.mark.parametrize("folds", [2, 4, 5])
def test_every_fold_is_held_out_by_starts_of_both_signs(folds):
    starts = both_signs(2 * folds, folds)
    first, second = starts[:folds], starts[folds:]
    np.testing.assert_array_equal(first, -second)
    assert (np.sign(first[1:]) == -np.sign(first[:-1])).all()
    assert np.abs(starts).min() == heckman_profile.SMALLEST_START
    assert np.abs(starts).max() == heckman_profile.LARGEST_START


SMALL = NetworkConfig(hidden=(8,), n_members=2, epochs=30, folds=2, warm_up=0)


def test_the_profile_method_repeats_itself_and_keeps_to_its_prior(controlled):
    first, again = (
        fit_one(heckman_profile, controlled, seed=1, config=ProfileConfig(SMALL)) for _ in range(2)
    )
    np.testing.assert_array_equal(
        first.predict(controlled.x).quantile(0.3), again.predict(controlled.x).quantile(0.3)
    )
    said = as_dictionary(first.info)
    assert from_dictionary(RhoInfo, json.loads(json.dumps(said))) == first.info
    assert len(first.info.member_rho) == 2
    known = fit_one(
        heckman_profile, controlled, seed=1, config=ProfileConfig(SMALL, rho_prior=(-0.4, -0.2))
    )
    assert -0.45 < known.points.rho.min() < known.points.rho.max() < -0.15


def test_the_constant_of_the_last_layer_has_no_ridge(controlled, monkeypatch):
    # y is centred before the fit, so a ridge on the constant would hardly show in its answers.
    seen = []

    def watched(datasets, totals, scalings, bases, *rest):
        seen.append((bases[0].columns(scalings[0].x(controlled.x)), bases[0].membership))
        return rho_mixture.average_over_rho(datasets, totals, scalings, bases, *rest)

    monkeypatch.setattr(heckman_profile, "average_over_rho", watched)
    fit_one(heckman_profile, controlled, seed=1, config=ProfileConfig(replace(SMALL, epochs=2)))
    ((columns, membership),) = seen
    assert columns.shape[:2] == (2, 400)
    assert columns.shape[2] == len(membership)
    free = membership.sum(axis=1) == 0
    np.testing.assert_array_equal((columns == 1).all(axis=(0, 1)), free)
    assert free.sum() == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"errors": "t"}, 'needs method="joint"'),
        ({"noise": "varying"}, "does not support noise="),
        ({"noise": "auto"}, "does not support noise="),
        ({"selection": "network"}, 'needs method="two-step"'),
        ({"folds": None}, "evaluates rho on held-out folds"),
        ({"folds": 3}, "at least one member per fold, but n_members is 2 and folds is 3"),
    ],
)
def test_the_profile_method_refuses_options_it_does_not_have(controlled, options, sentence):
    network = replace(SMALL, **options)
    with pytest.raises(hk.DataError, match=sentence):
        fit_one(heckman_profile, controlled, seed=1, config=ProfileConfig(network))
