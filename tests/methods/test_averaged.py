"""`heckman_outcome` and `heckman_averaged`: what they predict, and what they find."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

import heckesel as hk
from heckesel.classical.probit import fit_probit
from heckesel.data import selection_data
from heckesel.errors import DataError
from heckesel.math.special import inverse_mills
from heckesel.methods import fit_one, heckman_averaged, heckman_outcome, heckman_two_step
from heckesel.networks.ensembles.outcome_ensemble import OutcomeEnsemble, mean_and_sigma, shape_of
from heckesel.networks.losses.outcome_selection import PLAIN
from heckesel.networks.training.batches import Batch, DataScale, data_scale_of
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import Members
from heckesel.networks.training.steps import parameter_count
from reproduction.problems import as_data

SMALL = NetworkConfig(hidden=(16, 16), n_members=4, folds=2, epochs=300, dtype="float64")
X, W = np.array([[0.3], [-1.2]]), np.array([[0.3, 0.5], [-1.2, -0.8]])


def _ensemble(outputs=2, level=1.2):
    """Two networks that nobody trained."""
    sizes, rng = (1, 4, outputs), np.random.default_rng(5)
    head = 0.5 * rng.normal(size=(2, 3 + 3 + (9 if outputs == 2 else 0)))
    theta = np.hstack([rng.normal(size=(2, parameter_count(sizes))), head])
    scaling = DataScale(np.array([0.1]), np.array([2.0]), np.zeros(2), np.ones(2), 0.7, 1.5)
    return OutcomeEnsemble(Members(sizes, theta, np.zeros(2)), scaling, level, {})


def _density_and_chance(fit, at):
    """Of y at point `at`: the density of the mixture over members, and P(s = 1 | y) of each."""
    shape = shape_of(fit.members)
    x, w = fit.scaling.x(X), np.column_stack([fit.scaling.w(W), np.ones(len(W))])
    mean, sigma = mean_and_sigma(fit.members, shape, x)
    f = fit.members.outputs(x)[:, at, 0]
    index = shape.gamma @ w[at] + shape.theta * f
    noise = fit.level * sigma[:, at]

    def both(y):
        scaled = (y - fit.scaling.y_centre) / fit.scaling.y_scale
        width = noise[:, None] * shape.width
        e = (scaled - mean[:, at, None] - noise[:, None] * shape.shift) / width
        density = (shape.share * np.exp(-0.5 * e**2) / (np.sqrt(2 * np.pi) * width)).sum(axis=1)
        chance = ndtr(index + shape.kappa * (scaled - f))
        return density / fit.scaling.y_scale / len(mean), chance

    return both


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("at", [0, 1])
def test_predictions_for_all_targets_are_the_integrals(outputs, at):
    fit = _ensemble(outputs)
    both = _density_and_chance(fit, at)
    weights = {
        "population": lambda y: both(y)[0].sum(),
        "selected": lambda y: (both(y)[0] * both(y)[1]).sum(),
        "unselected": lambda y: (both(y)[0] * (1 - both(y)[1])).sum(),
    }
    for target, weight in weights.items():

        def moment(power, weight=weight):
            return quad(lambda y: y**power * weight(y), -40, 40, limit=400)[0]

        total, first, second = (moment(power) for power in range(3))
        found = fit.predict(X, W, target)
        assert found.mean[at] == pytest.approx(first / total, rel=1e-6)
        assert found.std[at] ** 2 == pytest.approx(second / total - (first / total) ** 2, rel=1e-6)
        below = quad(weight, -40, 0.4, limit=400)[0] / total
        assert found.cdf(np.full(2, 0.4))[at] == pytest.approx(below, rel=1e-6)


@pytest.mark.parametrize("outputs", [1, 2])
def test_variance_between_members_is_epistemic_for_every_target(outputs):
    fit = _ensemble(outputs)
    alone = [
        replace(fit, members=replace(fit.members, parameters=fit.members.parameters[[j]]))
        for j in (0, 1)
    ]
    for target in ("population", "selected", "unselected"):
        found, each = fit.predict(X, W, target), [one.predict(X, W, target) for one in alone]
        assert max(one.epistemic.max() for one in each) < 1e-12
        mean = np.stack([one.mean for one in each])
        share = (found.mean - mean[1]) / (mean[0] - mean[1])  # the weight of the first
        doubt = share * (1 - share) * (mean[0] - mean[1]) ** 2
        np.testing.assert_allclose(found.epistemic, doubt, rtol=1e-8)


def _seen(look: float, n=3000, seed=0):
    """Selection that sees e + look * f, f a wave of a column that selection does not bend with."""
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-2, 2, n), rng.normal(size=n)
    f, skewed = np.sin(2 * x), (rng.gamma(2.0, size=n) - 2) / np.sqrt(2)
    e = 0.5 * skewed
    s = 0.3 * x + z + 1.5 * (e + look * f) + rng.normal(size=n) > 0
    data = selection_data(x[:, None], np.column_stack([x, z]), np.where(s, f + e, np.nan))
    return data, f, x[:, None]


@cache
def _fit_to_seen(look: float):
    return fit_one(heckman_outcome, _seen(look)[0], seed=0, config=SMALL)


@pytest.mark.parametrize("look", [0.0, 1.0])
def test_the_data_determine_whether_selection_depends_on_the_outcome(look):
    data, f, x = _seen(look)
    fit = _fit_to_seen(look)
    assert abs(fit.info.outcome_seen - look) < 0.25
    true = 1.5 * 0.5 / np.sqrt(1 + (1.5 * 0.5) ** 2)
    assert np.mean(fit.info.rho) == pytest.approx(true, abs=0.1)
    assert np.mean(fit.info.sigma) == pytest.approx(0.5, abs=0.05)
    two_step = fit_one(heckman_two_step, data, seed=0, config=SMALL)
    errors = [np.sqrt(np.mean((one.predict(x).mean - f) ** 2)) for one in (fit, two_step)]
    assert errors[0] < 0.7 * errors[1]
    assert errors[0] < 0.08


def test_the_start_with_the_lowest_held_out_loss_is_used(monkeypatch):
    data, _, _ = _seen(1.0, n=400)
    both = fit_one(heckman_outcome, data, seed=0, config=SMALL)
    losses = []
    for start in heckman_outcome.STARTS:
        monkeypatch.setattr(heckman_outcome, "STARTS", (start,))
        losses.append(
            fit_one(heckman_outcome, data, seed=0, config=SMALL).members.validation.mean()
        )
    assert losses[0] != losses[1]
    assert both.members.validation.mean() == min(losses)


def test_members_start_at_one_linear_model_whatever_selection_sees():
    data, _, _ = _seen(1.0, n=400)
    cell = heckman_outcome.flagged_rows(data, data_scale_of(data, True))
    s = cell.selected > 0
    probit = fit_probit(cell.w, s, np.ones(len(s))).gamma
    mills = inverse_mills(cell.w[s] @ probit)
    beta = np.linalg.lstsq(np.column_stack([cell.x[s], mills]), cell.y[s], rcond=None)[0]
    rows = Batch(**{name: torch.as_tensor(part)[None] for name, part in cell.present().items()})
    f = torch.as_tensor(cell.x @ beta[:-1])[None, :, None]
    losses = []
    for seen, head in zip(
        heckman_outcome.STARTS, heckman_outcome.classic_heads(cell, True), strict=True
    ):
        log_sigma, kappa, theta = head[-3:]
        assert theta == seen * kappa
        rho = beta[-1] / np.exp(log_sigma)
        assert kappa * np.exp(log_sigma) == pytest.approx(rho / np.sqrt(1 - rho**2))
        losses.append(PLAIN.value_and_slopes(f, torch.as_tensor(head)[None], rows)[0].item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    chance = ndtr((cell.w @ head[:-3] + theta * f[0, :, 0].numpy()) * np.sqrt(1 - rho**2))
    np.testing.assert_allclose(chance, ndtr(cell.w @ probit), atol=1e-6)


def test_skewed_errors_keep_their_skewness():
    (_, _, x), fit = _seen(1.0), _fit_to_seen(1.0)
    assert fit.info.noise == "varying"  # the free form
    predicted = fit.predict(x[:5])
    assert ((predicted.quantile(0.95) + predicted.quantile(0.05)) / 2 > predicted.mean + 0.05).all()


def _smooth(n=500, seed=2):
    return as_data(hk.datasets.make_controlled(n, rho=0.6, alpha=1.0, seed=seed))


def _corners(n=900):
    """An outcome of three columns at once, which no curve and no surface has."""
    rng = np.random.default_rng(5)
    x, z, u = np.sign(rng.normal(size=(n, 3))), rng.normal(size=n), rng.normal(size=n)
    y = 2 * x.prod(axis=1) + 0.3 * (0.5 * u + rng.normal(size=n))
    return selection_data(x, np.column_stack([x, z]), np.where(0.5 + z + u > 0, y, np.nan))


@pytest.fixture(scope="module")
def of_three():
    return fit_one(heckman_averaged, _smooth(), seed=0, config=SMALL)


@pytest.fixture(scope="module")
def of_two():
    return fit_one(heckman_averaged, _corners(), seed=0, config=SMALL)


@pytest.mark.parametrize(("kind", "parts"), [("of_three", 3), ("of_two", 2)])
def test_the_average_has_the_moments_of_a_mixture_of_its_parts(kind, parts, request):
    fit = request.getfixturevalue(kind)
    assert len(fit.parts) == len(fit.info.averaged) == parts
    data = _smooth() if kind == "of_three" else _corners()
    x, w = data.x[:7], data.w[:7]
    for target in ("population", "selected", "unselected"):
        each = [part.predict(x, w, target) for part in fit.parts]
        found = fit.predict(x, w, target)
        mean = np.mean([one.mean for one in each], axis=0)
        np.testing.assert_allclose(found.mean, mean)
        second = np.mean([one.std**2 + one.mean**2 for one in each], axis=0)
        np.testing.assert_allclose(found.std**2, second - mean**2, rtol=1e-9)
        noise = np.mean([one.aleatoric for one in each], axis=0)
        np.testing.assert_allclose(found.aleatoric, noise)
        share_below = np.mean([one.cdf(mean + 0.3) for one in each], axis=0)
        np.testing.assert_allclose(found.cdf(mean + 0.3), share_below, rtol=1e-12)
    np.testing.assert_array_equal(fit.index(w), fit.two_step.index(w))
    alone = fit_one(heckman_two_step, data, seed=0, config=SMALL)
    np.testing.assert_array_equal(alone.predict(x).mean, fit.two_step.predict(x).mean)
    assert len(fit.info.rho) == len(fit.info.sigma) == parts * SMALL.n_members
    assert len(fit.info.best_epoch) == 2 * SMALL.n_members


def test_the_loss_of_networks_and_its_standard_error_are_those_over_folds(of_three, of_two):
    for fit in (of_three, of_two):
        losses, k = fit.likelihood.members.validation, SMALL.n_members
        unit = np.log(fit.likelihood.scaling.y_scale)
        share = (_smooth() if fit is of_three else _corners()).s.mean()
        by_fold = np.array([losses[fold :: SMALL.folds].mean() for fold in range(SMALL.folds)])
        assert fit.info.joint_losses["network"] == pytest.approx(losses.mean() + share * unit)
        error = abs(by_fold[0] - by_fold[1]) / 2  # of the mean of two
        assert fit.info.joint_loss_error == pytest.approx(error)
        assert len(losses) == k
    apart = of_two.info.joint_losses["spline"] - of_two.info.joint_losses["network"]
    assert apart > 0.1 > of_two.info.joint_loss_error


@pytest.mark.parametrize(("above", "joins"), [(-0.1, True), (0.9, True), (1.1, False)])
def test_splines_are_used_within_one_standard_error(of_three, above, joins, monkeypatch):
    """above : the splines' loss over that of networks, in standard errors"""
    allowed = of_three.info.joint_losses["network"] + above * of_three.info.joint_loss_error
    monkeypatch.setattr(heckman_averaged, "_spline_held_out_loss", lambda *_: allowed)
    again = heckman_averaged._averaged(
        _smooth(), of_three.two_step, of_three.likelihood, of_three.spline, folds=SMALL.folds
    )
    assert (again.spline is not None) == joins
    assert ("splines" in again.info.averaged) == joins


def test_differences_of_held_out_losses_do_not_depend_on_the_unit_of_y(of_three):
    data = _smooth()
    milli = fit_one(heckman_averaged, replace(data, y=1000 * data.y), seed=0, config=SMALL)
    for name, loss in of_three.info.joint_losses.items():
        moved = milli.info.joint_losses[name] - data.s.mean() * np.log(1000)
        assert moved == pytest.approx(loss, abs=1e-6)


def test_the_loss_of_splines_is_about_minus_their_log_likelihood(of_three):
    """Against the likelihood of all rows at the mode, which is a little better than left out."""
    data, fit = _smooth(), of_three.spline
    main = np.argmax(fit.points.weight)
    part, scaling = fit.points, fit.scaling
    f = scaling.y_centre + scaling.y_scale * (
        fit.basis.columns(scaling.x(data.x))[0] @ part.delta[main] / part.theta[main]
    )
    sigma, rho = scaling.y_scale / part.theta[main], part.rho[main]
    w = np.column_stack([scaling.w(data.w), np.ones(data.n)])
    index, e = w @ part.gamma[main], (np.where(data.s, data.y, 0.0) - f) / sigma
    inside = norm.logcdf((index + rho * e) / np.sqrt(1 - rho**2)) + norm.logpdf(e) - np.log(sigma)
    seen = -np.where(data.s, inside, norm.logcdf(-index)).mean()
    assert seen < of_three.info.joint_losses["spline"] < seen + 0.05


def test_quantiles_of_rho_under_splines_are_listed_after_the_members(of_three):
    parts, k = of_three.spline.points, SMALL.n_members
    listed = np.array(of_three.info.rho[2 * k :])
    np.testing.assert_array_equal(listed, np.sort(listed))
    for value, wanted in zip(listed, (np.arange(k) + 0.5) / k, strict=True):
        below, upto = (parts.weight[mask].sum() for mask in (parts.rho < value, parts.rho <= value))
        assert below <= wanted <= upto
    assert np.mean(of_three.info.sigma[2 * k :]) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("method", [heckman_outcome, heckman_averaged])
@pytest.mark.parametrize(
    ("config", "says"),
    [
        (NetworkConfig(), "needs held-out folds; set folds=5"),
        (NetworkConfig(folds=2, errors="t"), "normal"),
    ],
)
def test_unsupported_options_of_these_methods_are_refused(method, config, says):
    with pytest.raises(DataError, match=says):
        fit_one(method, _seen(0.0, n=200)[0], seed=0, config=config)


def test_the_regressor_takes_folds_whatever_the_number_of_rows():
    draw = hk.datasets.make_controlled(120, rho=0.8, alpha=1.0, seed=0)
    options = {"method": "averaged", "hidden": (4,), "epochs": 6, "progress": False}
    model = hk.DeepHeckmanRegressor(["z"], **{"method": "two-step"} | options).fit(
        draw.frame[["x", "z"]], draw.frame["y"]
    )
    assert len(model.rho_) == 10 * len(model.fitted_.parts)
    assert np.isfinite(model.predict(draw.frame[["x", "z"]])).all()
    with pytest.raises(DataError, match="set folds"):
        model.set_params(folds=None).fit(draw.frame[["x", "z"]], draw.frame["y"])
