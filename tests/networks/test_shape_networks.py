"""Networks with sinh-arcsinh errors and with a sigma that depends on x."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import log_ndtr
from scipy.stats import chi2, norm

from heckesel.classical import likelihood as shape
from heckesel.data import selection_data
from heckesel.errors import DataError
from heckesel.math.sinh_arcsinh import population_moments
from heckesel.methods import fit_one, heckman_joint, heckman_profile, spline_joint
from heckesel.networks.ensembles.noise_calibration import (
    Pairs,
    calibrated_form,
    form_loss,
    joint_loss,
)
from heckesel.networks.losses.normal import JOINT
from heckesel.networks.losses.shape import joint_with
from heckesel.networks.rho import form_profile
from heckesel.networks.rho.form_mixture import design_of
from heckesel.networks.rho.form_profile import ErrorModel, FormHeldOut, FormModels
from heckesel.networks.rho.last_layer import last_layers
from heckesel.networks.rho.linear_joint import bases_of
from heckesel.networks.rho.rho_held_out import HeldOut, split_held_out
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import FitRequest, train_datasets
from heckesel.networks.training.steps import parameter_count
from heckesel.predictive import TARGETS
from tests.networks.test_losses import K, _rows

CPU = torch.device("cpu")
SMALL = NetworkConfig(
    hidden=(12,), n_members=4, folds=2, epochs=250, weight_decay=1e-3, warm_up=0, device="cpu"
)


def draw(n, seed, kind, rho=0.6, alpha=1.0):
    """Data and the outcomes of all units; sigma triples from one end of x to the other, or errors
    are chi-squared with three degrees of freedom."""
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-2, 2, n), rng.normal(size=n)
    u, v = rng.normal(size=(2, n))
    q = rho * u + np.sqrt(1 - rho**2) * v
    e = (chi2.ppf(norm.cdf(q), 3) - 3) / np.sqrt(6) if kind == "skewed" else q
    sigma = 0.5 * (np.exp(0.5 * x) if kind == "varying" else 1.0)
    y = np.sin(1.5 * x) + 0.5 * x + sigma * e
    seen = np.where(-0.7 * x + alpha * z + u > 0, y, np.nan)
    return selection_data(x[:, None], np.column_stack([x, z]), seen), y


def _point(loss, seed=3):
    rows, rng = _rows(), np.random.default_rng(seed)
    output = torch.tensor(rng.normal(0.2, 0.8, (K, rows.y.shape[1], 1)))
    return rows, output, torch.tensor(rng.normal(0.1, 0.5, (K, 3 + len(loss.scalars))))


def test_without_skewness_and_slopes_the_loss_is_that_of_normal_errors():
    loss = joint_with((0, 2), shape=True)
    rows, output, head = _point(loss)
    head[:, 4:-1] = 0.0
    plain = torch.cat([head[:, :4], head[:, -1:]], dim=1)
    for found, expected in zip(
        loss.value_and_slopes(output, head, rows)[:2],
        JOINT.value_and_slopes(output, plain, rows)[:2],
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_the_loss_is_the_likelihood_of_the_linear_fits():
    loss = joint_with((1,), shape=True)
    rows, output, head = _point(loss)
    found = loss.value_and_slopes(output, head, rows)[0].numpy()
    for k in range(K):
        gamma, (log_sigma, slope, skewness, log_tail, a) = np.split(head[k].numpy(), [3])
        local = log_sigma + slope * rows.x[k, :, 1].numpy()
        e = (rows.y[k] - output[k, :, 0]).numpy() * np.exp(-local)
        units = shape.selected_units(rows.w[k].numpy() @ gamma, e, a, skewness, log_tail)
        unselected = log_ndtr(-(rows.w_unselected[k].numpy() @ gamma))
        expected = -rows.weight[k].numpy() @ (units.value - local)
        expected -= rows.weight_unselected[k].numpy() @ unselected
        assert found[k] == pytest.approx(expected, rel=1e-12)


def test_slopes_in_float32_stay_finite_far_out():
    loss = joint_with((0,), shape=True)
    rows, output, head = _point(loss)
    rows, head = rows.map(lambda values: values.float()), head.float()
    for skewness, log_tail, a in ((30.0, 30.0, 30.0), (-30.0, -30.0, -30.0)):
        head[:, 5], head[:, 6], head[:, -1] = skewness, log_tail, a
        parts = loss.value_and_slopes(output.float() + 50, head, rows)
        assert all(torch.isfinite(part).all() for part in parts)
        assert not parts[2][:, 5:].any()  # beyond their limits nothing moves


def _columns(data):
    """Rows with folds, and the last layers of networks trained with normal errors."""
    request = FitRequest([data], [0], replace(SMALL, epochs=40, dtype="float64"), "cpu")
    batches = request.batches()
    trained = train_datasets(batches, loss=JOINT, **request.training)
    (basis,) = last_layers(trained, batches, [data.weight.sum()], 2)
    return batches[0], request.scalings[0], basis


def test_at_every_rho_a_normal_form_has_the_optimum_of_the_profile_with_one_sigma():
    data, _ = draw(300, 0, "normal")
    rows, scaling, basis = _columns(data)
    design = design_of(data, scaling, basis, spline_joint.straight_lines(2), CPU)
    kept, held = form_profile._split(design, rows, 2, CPU)
    free = form_profile.free_coefficients(design, ErrorModel()).expand(2, -1)
    models, criterion = FormModels(kept, free), FormHeldOut(held.units, free)
    parts = [replace(rows, x=each) for each in basis.columns(rows.x[:, :-1])]
    plain_kept, plain_held = (
        bases_of(part, [data.weight.sum()] * 2, basis.membership, CPU)
        for part in split_held_out(parts, 2)
    )
    for a in (-0.8, 0.0, 1.1):
        at = torch.full((2,), a, dtype=torch.float64)
        found = models.optima(at, *models.start(), updates=12)
        plain = plain_kept.optima(at, *plain_kept.start(), updates=50)
        theta = found.v[:, sum(design.units.sizes[:2]) - 1]
        np.testing.assert_allclose(theta, plain.v[:, -1], rtol=2e-3)
        # Without a variance of the mean, the first of the factors; both stop short of the optimum.
        np.testing.assert_allclose(
            criterion.readings(found)[:, 0], HeldOut(plain_held).readings(plain)[:, 0], atol=0.1
        )


def test_only_chosen_columns_have_a_slope_of_log_sigma():
    data, _ = draw(300, 0, "normal")
    rng = np.random.default_rng(0)
    x = np.column_stack([data.x, rng.normal(size=(data.n, 2))])
    data = selection_data(x, np.column_stack([x, data.w[:, 1]]), data.y)
    _, scaling, basis = _columns(data)
    design = design_of(data, scaling, basis, spline_joint.straight_lines(4), CPU)
    free = form_profile.free_coefficients(design, ErrorModel(scale=(0, 2)))[0]
    q, width, _ = design.units.sizes
    assert free[q + width :].tolist() == [True, False, True, False, False]
    assert form_profile.free_coefficients(design, ErrorModel(shape=True))[0, -2:].all()


def _profile(data, monkeypatch, **options):
    """Of networks alone: splines are tested as another basis below."""
    monkeypatch.setattr(spline_joint, "affordable", lambda x: None)
    config = heckman_profile.ProfileConfig(replace(SMALL, epochs=150, **options))
    return fit_one(heckman_profile, data, config=config)


def _inside(fit, new, y):
    low, high = fit.predict(new.x).interval(0.9).T
    return (low < y) & (y < high)


@pytest.mark.parametrize("alpha", [1.0, 0.0])
def test_a_profile_with_sigma_of_x_covers_where_one_sigma_does_not(alpha, monkeypatch):
    """Where few are selected, sigma is large. Coverage varies by .03 between draws."""
    data, _ = draw(600, 1, "varying", alpha=alpha)
    new, y = draw(4000, 100, "varying", alpha=alpha)
    against = new.x[:, 0] > 0.5
    plain = _profile(data, monkeypatch)
    assert _inside(plain, new, y)[against].mean() < 0.8
    fit = _profile(data, monkeypatch, scale=(0,))
    assert fit.info.outcome == "network"
    assert 0.84 < _inside(fit, new, y)[against].mean() < 0.97
    (slope,) = fit.info.error_model.scale
    assert slope == pytest.approx(0.5, abs=0.12)  # the standard error is .05


def test_a_profile_finds_skewed_errors_and_their_correlation(monkeypatch):
    data, _ = draw(600, 1, "skewed", rho=0.5)
    fit = _profile(data, monkeypatch, errors="shape")
    assert fit.info.modes[0].rho == pytest.approx(0.5, abs=0.25)  # two standard errors
    assert 0.6 < fit.info.error_model.skewness < 2.0
    new, y = draw(4000, 100, "skewed", rho=0.5)
    assert 0.84 < _inside(fit, new, y).mean() < 0.97


def test_a_profile_uses_splines_where_held_out_units_are_likelier(monkeypatch):
    """Networks of one unit without training are straight lines or little better."""
    monkeypatch.setattr(spline_joint, "affordable", lambda x: ((), 2))
    data, _ = draw(400, 1, "varying")
    network = replace(SMALL, hidden=(1,), n_members=2, epochs=1, scale=(0,))
    config = heckman_profile.ProfileConfig(network)
    fit = fit_one(heckman_profile, data, config=config)
    held_out = fit.info.held_out_evidence
    assert fit.info.outcome == max(held_out, key=held_out.get) == "spline"
    assert set(fit.mixture.points.model) == {0}
    new, y = draw(4000, 100, "varying")
    assert 0.84 < _inside(fit, new, y).mean() < 0.97


def test_a_joint_fit_finds_skewed_errors_and_their_correlation():
    data, _ = draw(800, 1, "skewed", rho=0.5)
    config = replace(SMALL, hidden=(32, 32), epochs=500, errors="shape")
    fit = fit_one(heckman_joint, data, config=config)
    assert np.mean(fit.info.rho) == pytest.approx(0.5, abs=0.2)  # two standard errors
    assert 0.6 < fit.info.error_model.skewness < 2.0
    new, y = draw(4000, 100, "skewed", rho=0.5)
    assert 0.84 < _inside(fit, new, y).mean() < 0.97


def test_members_of_a_joint_fit_are_the_points_of_its_mixture():
    data, _ = draw(300, 2, "varying")
    for config in (
        replace(SMALL, epochs=30, errors="shape", scale=(0,)),
        replace(SMALL, epochs=30, errors="shape", folds=None),
    ):
        fit = fit_one(heckman_joint, data, config=config)
        mixture, points, members = fit.mixture, fit.mixture.points, fit.mixture.basis.members
        x = mixture.scaling.x(data.x)
        f = members.outputs(x)[..., 0]
        sigma = np.exp(points.scale @ x.T) / points.theta[:, None]
        each = [population_moments(*pair) for pair in points.shape]
        last = points.delta[:, -1] / points.theta
        shift = last - members.parameters[:, parameter_count(members.sizes) - 1]
        assert shift == pytest.approx(0.0 if config.folds is None else shift[0], abs=1e-6)
        mean = np.array([one.mean for one in each])[:, None] * sigma + f + shift[:, None]
        variance = np.array([one.variance for one in each])[:, None] * sigma**2
        found, unit = fit.predict(data.x), mixture.scaling.y_scale
        np.testing.assert_allclose(
            found.mean, mixture.scaling.y_centre + unit * mean.mean(axis=0), rtol=1e-9
        )
        np.testing.assert_allclose(found.epistemic, unit**2 * mean.var(axis=0), rtol=1e-7)
        np.testing.assert_allclose(found.aleatoric, unit**2 * variance.mean(axis=0), rtol=1e-9)
        gamma = members.head[:, : data.w.shape[1] + 1]
        index = mixture.scaling.w(data.w) @ gamma[:, :-1].T + gamma[:, -1]
        np.testing.assert_allclose(fit.mixture._indices(data.w), index.T, rtol=1e-9, atol=1e-12)
        parts = [fit.predict(data.x, data.w, target).mean for target in TARGETS]
        assert np.isfinite(parts).all()


def _pairs(n=400):
    rng = np.random.default_rng(0)
    return Pairs(
        mean=rng.normal(size=n),
        noise_factor=np.exp(0.3 * rng.normal(size=n)),
        doubt=rng.uniform(0, 0.2, n),
        weight=np.full(n, 1 / n),
        member=np.zeros(n, dtype=int),
        row=np.arange(n),
    )


def test_the_calibration_loss_is_normal_without_skewness_and_the_likelihood_without_doubt():
    pairs, rng = _pairs(), np.random.default_rng(1)
    n = len(pairs.mean)
    y, index, rho = pairs.mean + rng.normal(size=n), rng.normal(size=n), np.full(n, 0.6)
    found = form_loss(y, 0.8, 0.0, 0.0, rho, index, pairs)
    np.testing.assert_allclose(found, joint_loss(y, 0.8, rho, index, pairs), rtol=1e-9, atol=1e-9)
    known = replace(pairs, doubt=0 * pairs.doubt)
    sigma = 0.8 * pairs.noise_factor
    units = shape.selected_units(index, (y - pairs.mean) / sigma, np.arctanh(0.6), 0.7, -0.2)
    found = form_loss(y, 0.8, 0.7, -0.2, rho, index, known)
    np.testing.assert_allclose(found, np.log(sigma) - units.value, rtol=1e-9)


def test_calibration_finds_the_shape_that_residuals_were_drawn_from():
    pairs, rng = _pairs(20_000), np.random.default_rng(2)
    n = len(pairs.mean)
    pairs = replace(pairs, doubt=np.zeros(n))
    q = rng.normal(size=n)
    e = np.sinh((np.arcsinh(q) + 0.5) / 0.8)
    y = pairs.mean + 0.3 + 0.7 * pairs.noise_factor * e
    # rho = 0: selection says nothing about the errors
    found = calibrated_form(y, np.zeros(n), np.zeros(n), pairs, (0.0, 0.0))
    estimates = found.level, found.shift, found.skewness, np.exp(found.log_tail)
    assert estimates == pytest.approx((0.7, 0.3, 0.5, 0.8), abs=0.06)  # standard errors below .02


def test_options_that_contradict_an_error_model_are_refused():
    for options, message in (
        ({"errors": "t", "scale": (0,)}, "scale= needs normal or shape errors"),
        ({"scale": (0,), "noise": "varying"}, "scale= already models how sigma depends on x"),
        ({"errors": "shape", "noise": "varying"}, "and scale= for a sigma that depends on x"),
        ({"errors": "shape", "tails": "auto"}, 'need tails="normal"'),
    ):
        with pytest.raises(DataError, match=message.replace("(", r"\(")):
            replace(SMALL, **options)
