"""The few points that predictions of "auto" use, in place of all points of the posterior."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heckesel.data import selection_data
from heckesel.methods import heckman_auto
from heckesel.methods.spline_joint import spline_basis
from heckesel.networks.rho import form_posterior as form_posterior_module
from heckesel.networks.rho.fitted_points import Fitting, Points
from heckesel.networks.rho.form_mixture import FormMixture, design_of, form_points
from heckesel.networks.rho.form_posterior import Posterior, form_posterior
from heckesel.networks.rho.rho_prior import UNIFORM
from heckesel.networks.training.batches import data_scale_of


def posterior(a, weight, form) -> Posterior:
    nothing = torch.zeros(len(a), 1)
    points = Points(form, a, weight, np.zeros((len(a), 1, 1)), *[nothing] * 3)
    return Posterior(points, weight, weight, weight, np.zeros(1))


def moments(a, weight):
    mean = np.average(a, weights=weight)
    return weight.sum(), mean, np.average((a - mean) ** 2, weights=weight)


def test_they_keep_the_weight_mean_and_variance_of_every_form(monkeypatch):
    monkeypatch.setattr(form_posterior_module, "DROPPED", 0.0)
    rng = np.random.default_rng(0)
    a, form = rng.normal(size=90), rng.integers(0, 3, 90)
    weight = np.exp(-0.5 * (a - 0.3 * form) ** 2) * np.array([1.0, 0.3, 0.02])[form]
    weight /= weight.sum()
    kept, mass = posterior(a, weight, form).thinned()
    assert len(kept) < 45
    assert (np.diff(kept) > 0).all()
    for one in range(3):
        found = moments(a[kept][form[kept] == one], mass[form[kept] == one])
        expected = moments(a[form == one], weight[form == one])
        np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-12)
        assert found[2] == pytest.approx(expected[2], rel=0.1)


def test_one_or_two_points_are_kept_as_they_are():
    weight = np.array([0.3, 0.5, 0.2])
    kept, mass = posterior(np.array([0.1, 0.4, -1.0]), weight, np.array([0, 0, 1])).thinned()
    np.testing.assert_array_equal(kept, [0, 1, 2])
    np.testing.assert_array_equal(mass, weight)


def test_predictions_are_those_of_all_points(monkeypatch):
    rng = np.random.default_rng(3)
    x, z, u, e = rng.normal(size=(4, 500))
    y = np.where(x + 0.4 * z + u > 0, np.sin(x) + 0.5 * u + e, np.nan)
    data = selection_data(x[:, None], np.column_stack([x, z]), y)
    place, scaling = torch.device("cpu"), data_scale_of(data, standardise=True)
    bases = [spline_basis(each, (), 4) for each in (scaling.x(data.x[data.s]), scaling.w(data.w))]
    design = design_of(data, scaling, *bases, place)
    found = form_posterior(Fitting(design, heckman_auto.folds_of(data, 5, 0, place)), UNIFORM)
    few = FormMixture(*bases, scaling, form_points(found, design))
    monkeypatch.setattr(form_posterior_module, "_on_two", lambda a, mass: mass)
    every = replace(few, points=form_points(found, design))
    assert len(few.points.weight) < 0.75 * len(every.points.weight)
    at = np.linspace(-2.5, 2.5, 40)[:, None]
    given = {"population": {}, "unselected": {"w": np.column_stack([at, 0 * at])}}
    for target, others in given.items():
        a, b = (each.predict(at, target=target, **others) for each in (few, every))
        np.testing.assert_allclose((a.mean - b.mean) / b.std, 0, atol=0.01)
        np.testing.assert_allclose((a.interval(0.9) - b.interval(0.9)).T / b.std, 0, atol=0.015)
