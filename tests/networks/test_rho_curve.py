"""The evidence as a curve over rho: its grid, priors, modes, interval, and the mixture it makes."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

import heckesel as hk
from heckesel.classical import ml as joint
from heckesel.fit_info import RhoInfo, as_dictionary, from_dictionary
from heckesel.networks.rho import rho_curve
from heckesel.networks.rho.linear_joint import conditional_optima
from heckesel.networks.rho.rho_curve import (
    Curve,
    curve_summary,
    rho_curves,
    rho_interval,
    rho_modes,
)
from heckesel.networks.rho.rho_mixture import mixture_points
from heckesel.networks.rho.rho_prior import RhoPrior, bin_edges, rho_prior
from tests.classical.linear_models import bases_of, draw, sample_of

FREE = np.zeros((2, 0))  # one column and a constant, no ridge: the evidence has a second witness


def plain(n, seed, **options):
    return draw(n, 1, seed, **options) | {"weight": np.ones(n)}


def brute_force_posterior(model, rho, density=np.ones_like):
    """Mean, sd and 5, 95 % quantiles of rho from the classic likelihood on a fine even grid."""
    sample = sample_of(model)
    log_weight = []
    v = joint.at_zero(sample)
    for value in rho:
        point = joint.solve_at(sample, np.arctanh(value), v)
        v = point.v
        log_weight.append(point.value - 0.5 * np.linalg.slogdet(-point.hessian[:-1, :-1])[1])
    weight = np.exp(np.array(log_weight) - max(log_weight)) * density(rho)
    weight /= weight.sum()
    mean = weight @ rho
    low, high = np.interp([0.05, 0.95], np.cumsum(weight) - 0.5 * weight, rho)
    return mean, np.sqrt(weight @ (rho - mean) ** 2), low, high


def moments(curve):
    share = curve.weight.sum(axis=1)
    mean = share @ curve.rho
    return mean, np.sqrt(share @ (curve.rho - mean) ** 2), *rho_interval(curve)


@pytest.mark.parametrize(
    ("n", "true_rho"), [(60, 0.0), (300, 0.5), (300, -0.9)], ids=["wide", "medium", "near -1"]
)
def test_the_posterior_of_rho_is_that_of_a_fine_grid(n, true_rho):
    model = plain(n, 1, rho=true_rho)
    (curve,) = rho_curves(bases_of([model], FREE), 1, RhoPrior())
    assert curve.weight.sum() == pytest.approx(1, abs=1e-12)
    assert curve.weight.sum(axis=1).max() <= rho_curve.LARGEST_SHARE
    mean, sd, low, high = brute_force_posterior(model, np.linspace(-0.9975, 0.9975, 401))
    found = moments(curve)
    # Seven values or more hold the mass; the sum over them is good to a few hundredths of its sd,
    # but an end of the interval falls into a bin over which mass is taken to be uniform.
    assert found[0] == pytest.approx(mean, abs=0.05 * sd)
    assert found[1] == pytest.approx(sd, rel=0.05)
    assert found[2:] == pytest.approx((low, high), abs=0.3 * sd)


def test_a_posterior_far_narrower_than_the_first_grid_is_resolved():
    model = plain(20_000, 2, rho=0.4)
    (curve,) = rho_curves(bases_of([model], FREE), 1, RhoPrior())
    mean, sd, low, high = brute_force_posterior(model, np.linspace(0.28, 0.52, 121))
    assert sd < 0.03  # of .17, a bin of the first grid
    found = moments(curve)
    assert found[0] == pytest.approx(mean, abs=0.05 * sd)
    assert found[1] == pytest.approx(sd, rel=0.05)
    assert found[2:] == pytest.approx((low, high), abs=0.15 * sd)


def test_a_density_weighs_the_curve():
    model = plain(150, 3, rho=0.3)

    def density(rho):
        return np.exp(-0.5 * ((rho + 0.4) / 0.15) ** 2)

    (curve,) = rho_curves(bases_of([model], FREE), 1, rho_prior(density))
    mean, sd, _, _ = brute_force_posterior(model, np.linspace(-0.9975, 0.9975, 401), density)
    found = moments(curve)
    assert found[0] == pytest.approx(mean, abs=0.05 * sd)
    assert found[1] == pytest.approx(sd, rel=0.05)


@pytest.mark.parametrize(
    ("given", "low", "high"),
    [("positive", 0, 1), ("negative", -1, 0), ((0.32, 0.34), 0.32, 0.34), ((-1, 0.25), -1, 0.25)],
)
def test_a_sign_or_an_interval_has_no_mass_beyond_its_ends(given, low, high):
    (curve,) = rho_curves(bases_of([plain(200, 4, rho=0.3)], FREE), 1, rho_prior(given))
    edges, share = bin_edges(curve.rho), curve.weight.sum(axis=1)
    assert share.sum() == pytest.approx(1)
    assert (share[(edges[1:] <= low) | (edges[:-1] >= high)] == 0).all()
    assert (share[(edges[1:] > low) & (edges[:-1] < high)] > 0).all()
    # A value stands for the bin around it, so the last one may be half a bin beyond the end;
    # the grid has closed in on the ends.
    beyond = share > 0
    reach = max(low - curve.rho[beyond].min(), curve.rho[beyond].max() - high)
    assert reach < 0.06


def test_an_interval_is_the_same_as_its_density():
    bases = bases_of([plain(200, 5)], FREE)
    by_ends = rho_curves(bases, 1, rho_prior((-0.5, 0.5)))[0]
    by_density = rho_curves(bases, 1, rho_prior(lambda r: 3.0 * (np.abs(r) <= 0.5)))[0]
    # Five nodes per bin resolve the ends to a tenth of a bin.
    assert moments(by_ends)[:2] == pytest.approx(moments(by_density)[:2], abs=0.01)


@pytest.mark.parametrize("given", [None, "uniform", (-1, 1), [-1.0, 1.0], np.array([-1, 1])])
def test_several_ways_of_writing_no_prior_are_equivalent(given):
    edges = np.array([-1.0, -0.3, 0.1, 1.0])
    np.testing.assert_allclose(rho_prior(given).mass(edges), [0.7, 0.4, 0.9])


def test_prior_mass_of_a_density_is_its_integral_over_the_bin():
    edges = bin_edges(np.tanh(rho_curve.COARSE))
    assert (edges[0], edges[-1]) == (-1.0, 1.0)
    mass = rho_prior(lambda r: 0.75 * (1 - r**2)).mass(edges)
    integral = np.diff(0.75 * (edges - edges**3 / 3))
    # The midpoint rule on fifths of a bin: 1/600 of its width squared times the curvature.
    np.testing.assert_allclose(mass, integral, atol=2e-5)
    assert mass.sum() == pytest.approx(1, abs=2e-4)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("positiv", "one of uniform, positive, negative, an interval or a function"),
        ((0.2, 0.2), "needs -1 <= low < high <= 1"),
        ((0.5, -0.5), "needs -1 <= low < high <= 1"),
        ((0, 1.5), "needs -1 <= low < high <= 1"),
        ((0, np.nan), "needs -1 <= low < high <= 1"),
        ((0, 0.5, 1), "is two numbers"),
        (("a", "b"), "is two numbers"),
        (0.5, "is two numbers"),
    ],
)
def test_wrong_priors_are_refused_with_what_is_wanted(given, sentence):
    with pytest.raises(hk.DataError, match=sentence):
        rho_prior(given)


@pytest.mark.parametrize(
    "density",
    [
        lambda r: 1.0,
        lambda r: np.full_like(r, np.nan),
        lambda r: r,
        np.zeros_like,
    ],
    ids=["one number", "missing", "negative", "nowhere"],
)
def test_a_function_that_is_no_density_is_refused(density):
    with pytest.raises(hk.DataError, match="must take an array of rho and return a density"):
        rho_prior(density).mass(np.linspace(-1, 1, 8))


def test_models_of_a_dataset_are_weighted_by_their_evidence():
    model = plain(200, 6)
    worse = model | {"columns": model["columns"].copy()}
    noise = np.random.default_rng(7).normal(size=200)
    worse["columns"][:, 0] += 0.05 * noise
    bases = bases_of([model, worse], FREE)
    (curve,) = rho_curves(bases, 2, RhoPrior())
    evidence = np.stack([at_optimum(bases, curve, at) for at in range(len(curve.a))])
    expected = evidence + np.log(np.diff(bin_edges(curve.rho)))[:, None]
    expected = np.exp(expected - logsumexp(expected))
    np.testing.assert_allclose(curve.weight, expected, atol=1e-7)
    assert 0.01 < curve.weight[:, 1].sum() < 0.99
    combined = logsumexp(evidence, axis=1)
    np.testing.assert_allclose(curve.log_evidence, combined, atol=1e-6)


def test_the_curve_of_a_dataset_does_not_depend_on_other_datasets():
    membership = np.array([[1.0], [0.0]])
    models = [plain(60, 8, rho=0.0), plain(5000, 9, rho=0.7), plain(300, 10, rho=-0.4)]
    together = rho_curves(bases_of(models, membership), 1, RhoPrior())
    lengths = set()
    for model, curve in zip(models, together, strict=True):
        (alone,) = rho_curves(bases_of([model], membership), 1, RhoPrior())
        np.testing.assert_array_equal(curve.a, alone.a)
        np.testing.assert_allclose(curve.weight, alone.weight, atol=1e-6)
        np.testing.assert_allclose(curve.v, alone.v, rtol=1e-5, atol=1e-6)
        lengths.add(len(curve.a))
    assert len(lengths) > 1  # they needed grids of different lengths


def test_every_point_of_the_curve_holds_the_optimum_it_claims():
    bases = bases_of([plain(300, 11, rho=0.6)], np.array([[1.0], [0.0]]))
    (curve,) = rho_curves(bases, 1, RhoPrior())
    assert (np.diff(curve.a) > 0).all()
    again = np.array([at_optimum(bases, curve, at)[0] for at in range(len(curve.a))])
    np.testing.assert_allclose(curve.log_evidence, again, atol=1e-6)


def at_optimum(bases, curve, at):
    """(k,) evidence, found again from what the curve holds at one of its values."""
    a = torch.full((len(bases.w),), float(curve.a[at]), dtype=torch.float64)
    start = (torch.as_tensor(part) for part in (curve.v[at], curve.ridge[at]))
    return conditional_optima(bases, a, *start, updates=0).evidence.numpy()


def made_up(evidence, rho=None):
    """One model; theta is 1, 2, 3, ... along the curve."""
    evidence = np.asarray(evidence, dtype=float)
    rho = np.linspace(-0.9, 0.9, len(evidence)) if rho is None else np.asarray(rho)
    mass = np.diff(bin_edges(rho))
    weight = mass * np.exp(evidence)
    theta = 1.0 + np.arange(len(evidence))
    return Curve(
        a=np.arctanh(rho),
        log_evidence=evidence - evidence.max(),
        v=np.stack([np.zeros_like(theta), theta], axis=1)[:, None],
        ridge=np.zeros((len(evidence), 1, 0)),
        variance_factor=np.ones(len(evidence)),
        weight=(weight / weight.sum())[:, None],
    )


def test_both_modes_of_a_curve_with_two_peaks_are_found_with_their_shares():
    curve = made_up([-5, -2, -1, -3, -6, -4, -1, 0, -2, -7])
    first, second = rho_modes(curve, y_scale=6.0)
    assert (first.rho, second.rho) == pytest.approx((curve.rho[7], curve.rho[2]))
    assert (first.sigma, second.sigma) == (6.0 / 8, 6.0 / 3)
    assert (first.log_density, second.log_density) == (0.0, -1.0)
    share = curve.weight[:, 0]
    # The valley, position 4, belongs to the mode on its right.
    assert second.weight == pytest.approx(share[:4].sum())
    assert first.weight == pytest.approx(share[4:].sum())
    assert not first.boundary
    assert not second.boundary


def test_a_curve_that_rises_to_its_end_has_a_mode_on_the_boundary():
    rising, falling = made_up([-4, -3, -2, -1, 0]), made_up([0, -1, -4, -1, -0.5])
    (only,) = rho_modes(rising, 1.0)
    assert only.boundary
    assert only.rho == pytest.approx(0.9)
    assert only.weight == pytest.approx(1)
    assert [(mode.rho, mode.boundary) for mode in rho_modes(falling, 1.0)] == [
        (pytest.approx(-0.9), True),
        (pytest.approx(0.9), True),
    ]


def test_a_mode_has_the_sigma_of_its_best_model():
    curve = made_up([-3, 0, -2])
    two = replace(
        curve,
        v=np.concatenate([curve.v, curve.v * 10], axis=1),
        weight=np.hstack([0.3 * curve.weight, 0.7 * curve.weight]),
    )
    (mode,) = rho_modes(two, 1.0)
    assert mode.sigma == pytest.approx(1 / 20)


def test_the_interval_cuts_equal_tails_off_mass_uniform_within_bins():
    # Equal evidence: the posterior is uniform on (-1, 1), whatever the grid.
    curve = made_up(np.zeros(5), rho=[-0.95, -0.3, 0.0, 0.1, 0.8])
    assert rho_interval(curve, 0.9) == pytest.approx((-0.9, 0.9))
    assert rho_interval(curve, 0.5) == pytest.approx((-0.5, 0.5))
    # Two bins of mass 1/4 and 3/4 with the edge at 0: 5 % is a fifth into the first.
    curve = made_up(np.log([0.25, 0.75]), rho=[-0.5, 0.5])
    assert rho_interval(curve) == pytest.approx((-0.8, 1 - 0.05 / 0.75))


def test_the_summary_of_a_curve_can_be_written_as_json():
    summary = curve_summary(made_up([-5, -2, -1, -3, -6, -4, -1, 0, -2, -7]), 2.0)
    back = from_dictionary(RhoInfo, json.loads(json.dumps(as_dictionary(summary))))
    assert back == summary
    assert [mode.log_density for mode in back.modes] == [0.0, -1.0]
    assert len(back.curve["rho"]) == len(back.curve["log_evidence"]) == 10


def test_parts_know_delta_and_theta_with_gamma_free():
    models = [plain(250, 12, rho=0.4), plain(400, 13, rho=-0.2)]
    bases = bases_of(models, FREE)
    for model, parts in zip(
        models, mixture_points(bases, rho_curves(bases, 1, RhoPrior())), strict=True
    ):
        sample, at = sample_of(model), int(np.argmax(np.abs(parts.rho)))
        classic = joint.solve_at(sample, np.arctanh(parts.rho[at]), joint.at_zero(sample))
        covariance = np.linalg.inv(-classic.hessian[:-1, :-1])[3:, 3:]
        # v is .005 standard errors from the optimum at most, and the curvature moves with it.
        np.testing.assert_allclose(
            parts.cholesky_factor[at] @ parts.cholesky_factor[at].T, covariance, rtol=0.02
        )
        found = np.concatenate([parts.gamma[at], parts.delta[at], parts.theta[at : at + 1]])
        np.testing.assert_allclose(found, classic.v, atol=0.01)


@pytest.mark.parametrize("prior", ["positive", "negative", (0.2, 0.5), (0.31, 0.312)])
def test_modes_and_interval_stay_where_the_prior_is(prior):
    """Evidence that peaks on both sides, at -.6 and at .7."""
    a = np.linspace(-2, 2, 81)
    rho = np.tanh(a)
    evidence = np.logaddexp(-200 * (rho + 0.6) ** 2, 1 - 200 * (rho - 0.7) ** 2)
    belief = rho_prior(prior)
    mass = (belief.mass(bin_edges(rho)) * np.exp(evidence))[:, None]
    curve = Curve(
        a,
        evidence - evidence.max(),
        v=np.ones((81, 1, 4)),
        ridge=np.ones((81, 1, 1)),
        variance_factor=np.ones(81),
        weight=mass / mass.sum(),
        prior=belief,
    )
    low, high = rho_interval(curve)
    assert belief.low <= low < high <= belief.high
    width = np.diff(bin_edges(rho)).max()  # a grid value may stand for a bin that the prior cuts
    for mode in rho_modes(curve, 1.0):
        assert belief.low - width <= mode.rho <= belief.high + width
    assert sum(mode.weight for mode in rho_modes(curve, 1.0)) == pytest.approx(1.0)
