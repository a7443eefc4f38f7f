"""Errors of several forms at fixed rho: derivatives, special cases, held-out evidence, mixtures."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import ndtr

from heckesel.data import selection_data
from heckesel.likelihoods import normal
from heckesel.methods import fit_one, heckman_auto
from heckesel.networks.rho import form_held_out
from heckesel.networks.rho.form_held_out import Folds, held_out_evidence
from heckesel.networks.rho.form_likelihood import Units, split, surface_at, value_at
from heckesel.networks.rho.form_optima import optimise
from heckesel.networks.rho.form_posterior import FORMS, Design, independent_optima

SIZES = (3, 5, 2)  # columns of w, of [b, y] and of u
A = torch.tensor([0.5, -1.2, 0.0], dtype=torch.float64)


def random_units(seed=0, k=3, n=40, m=30) -> Units:
    rng = np.random.default_rng(seed)
    q, width, r = SIZES

    def draw(*shape):
        return torch.as_tensor(rng.normal(size=shape))

    return Units(
        residual=draw(k, n, width),
        w=draw(k, n, q),
        u=draw(k, n, r),
        weight=torch.as_tensor(rng.uniform(0.5, 1.5, size=(k, n))),
        w_unselected=draw(k, m, q),
        weight_unselected=torch.as_tensor(rng.uniform(0.5, 1.5, size=(k, m))),
    )


def random_point(seed=1, shaped=True) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    q, width, r = SIZES
    v = np.concatenate([0.3 * rng.normal(size=(3, q + width + r)), np.zeros((3, 2))], axis=1)
    v[:, q + width - 1] = 0.8  # theta is positive
    if shaped:
        v[:, -2:] = [[0.2, 0.1], [-0.3, -0.1], [0.1, -0.2]]
    else:
        v[:, q + width :] = 0.0
    return torch.as_tensor(v)


def test_score_and_information_are_the_derivatives_of_the_value():
    units, v, step = random_units(), random_point(), 1e-5
    here = surface_at(units, v, A)
    np.testing.assert_allclose(here.value, value_at(units, v, A), rtol=1e-13)
    for place in range(v.shape[1]):
        move = torch.zeros(v.shape[1], dtype=v.dtype)
        move[place] = step
        up, down = surface_at(units, v + move, A), surface_at(units, v - move, A)
        slope = (up.value - down.value) / (2 * step)
        np.testing.assert_allclose(slope, here.score[:, place], rtol=1e-6, atol=1e-5)
        bend = (up.score - down.score) / (2 * step)
        scale = here.information.abs().amax(dim=(1, 2)).max()
        np.testing.assert_allclose(bend, -here.information[:, place], atol=1e-8 * scale)


def test_without_shape_and_scale_it_is_the_normal_likelihood():
    """The NumPy likelihood of a unit, summed."""
    units, v = random_units(), random_point(shaped=False)
    gamma, rest, *_ = (part.numpy() for part in split(v, SIZES))
    for k, a in enumerate(A.tolist()):
        index = units.w[k].numpy() @ gamma[k]
        e = units.residual[k].numpy() @ rest[k]
        selected = normal.selected_units(index, e, a).value + np.log(rest[k, -1])
        out = normal.unselected_units(units.w_unselected[k].numpy() @ gamma[k]).value
        expected = units.weight[k].numpy() @ selected
        expected += units.weight_unselected[k].numpy() @ out
        assert value_at(units, v, A)[k].item() == pytest.approx(expected, rel=1e-12)


def skewed_data(n=600, rho=0.6, seed=4, alpha=1.0):
    """A valid instrument and exponential errors tied to selection by a normal copula."""
    rng = np.random.default_rng(seed)
    x, z, u, v = rng.normal(size=(4, n))
    q = rho * u + np.sqrt(1 - rho**2) * v
    e = -np.log(1 - ndtr(q)) - 1
    y = np.sin(1.5 * x) + 0.5 * x + 0.5 * e
    s = 0.3 - 0.8 * x + alpha * z + u > 0
    columns = np.column_stack([x, z])
    return selection_data(x[:, None], columns, np.where(s, y, np.nan)), y


@pytest.fixture(scope="module")
def fitted():
    data, y = skewed_data()
    return fit_one(heckman_auto, data, seed=0, device="cpu"), data, y


def design_for(data) -> Design:
    from heckesel.methods.spline_joint import spline_basis
    from heckesel.networks.rho.form_mixture import design_of
    from heckesel.networks.training.scaling import data_scale_of

    scaling = data_scale_of(data, standardise=True)
    basis = spline_basis(scaling.x(data.x[data.s]), (), 4)
    index_basis = spline_basis(scaling.w(data.w), (), 2)
    return design_of(data, scaling, basis, index_basis, torch.device("cpu"))


def test_an_optimum_has_no_slope_and_no_form_is_worse_than_the_normal_one():
    design = design_for(skewed_data(n=300)[0])
    start, forms = independent_optima(design), np.arange(len(FORMS))
    k = len(forms)
    a = torch.full((k,), 0.4, dtype=torch.float64)
    units, free = design.units.repeated(k), design.free(forms)
    ridge = start.ridge.expand(k, -1)
    found = optimise(units, a, start.v.expand(k, -1), ridge, free, design.penalty, updates=0)
    precision = ridge @ design.penalty.membership.T + design.penalty.fixed
    at = surface_at(units, found.v, a)
    slope = torch.where(free, at.score - precision * found.v, 0.0)
    step = torch.linalg.solve(found.information, slope)
    assert (0.5 * (slope * step).sum(dim=1) < 1e-2).all()  # log-units left to gain
    value = at.value - 0.5 * (precision * found.v.square()).sum(dim=1)
    assert (value >= value[0] - 1e-8).all()
    assert (found.v[~free] == 0).all()


def test_held_out_evidence_is_that_of_fits_that_never_saw_the_fold(monkeypatch):
    """Rows of a fold dropped from the table, rather than given no weight; the mean as if known."""
    monkeypatch.setattr(form_held_out, "FACTORS", np.array([1e-12]))
    monkeypatch.setattr(form_held_out, "PRIOR", np.ones(1))
    design = design_for(skewed_data(n=300)[0])
    start = independent_optima(design)
    units, free, a = design.units, design.free(np.array([1])), torch.tensor([0.5]).double()
    rng = np.random.default_rng(0)
    fold = torch.as_tensor(rng.integers(0, 2, units.weight.shape[1]))
    fold_out = torch.as_tensor(rng.integers(0, 2, units.weight_unselected.shape[1]))
    evidence, _ = held_out_evidence(
        units, Folds(fold, fold_out, 2), a, start.v, start.ridge, free, design.penalty
    )
    expected = 0.0
    for own in range(2):
        inside, outside = fold != own, fold_out != own
        kept = Units(
            units.residual[:, inside],
            units.w[:, inside],
            units.u[:, inside],
            units.weight[:, inside],
            units.w_unselected[:, outside],
            units.weight_unselected[:, outside],
        )
        held = Units(
            units.residual[:, ~inside],
            units.w[:, ~inside],
            units.u[:, ~inside],
            units.weight[:, ~inside],
            units.w_unselected[:, ~outside],
            units.weight_unselected[:, ~outside],
        )
        found = optimise(kept, a, start.v, start.ridge, free, design.penalty, updates=0)
        expected += value_at(held, found.v, a).item()
    assert evidence[0] == pytest.approx(expected, abs=0.05)  # both stop .01 short of the optimum


def test_it_finds_the_form_and_the_correlation(fitted):
    model, data, y = fitted
    forms = model.info["forms"]
    assert forms["shape"] + forms["shape and scale"] > 0.9
    low, high = model.info["rho_interval"]
    assert -0.2 < low < 0.6 < high
    hidden = model.predict(data.x[~data.s]).interval(0.9)
    inside = (hidden[:, 0] <= y[~data.s]) & (y[~data.s] <= hidden[:, 1])
    assert inside.mean() == pytest.approx(0.9, abs=0.06)  # 250 units: a standard error of .02


def test_the_three_targets_obey_the_law_of_total_probability(fitted):
    """P(y <= t) = P(s) P(y <= t | s) + P(not s) P(y <= t | not s), once f counts as known."""
    model, data, _ = fitted
    known = replace(model, points=replace(model.points, root=0 * model.points.root))
    x, w = data.x[:9], data.w[:9]
    t = np.linspace(-1, 1, 9)
    chance = (model.points.weight[:, None] * ndtr(model._indices(w))).sum(axis=0)
    whole, inside, outside = (
        known.predict(x, w, target).cdf(t) for target in ("population", "selected", "unselected")
    )
    np.testing.assert_allclose(whole, chance * inside + (1 - chance) * outside, atol=1e-7)


def test_weights_of_two_are_rows_twice():
    data, _ = skewed_data(n=200)
    twice = selection_data(data.x, data.w, data.y, weight=np.full(data.n, 2.0))
    one, two = (design_for(each) for each in (data, twice))
    v = independent_optima(one).v
    a = torch.tensor([0.3], dtype=torch.float64)
    np.testing.assert_allclose(value_at(two.units, v, a), 2 * value_at(one.units, v, a), rtol=1e-12)


@pytest.mark.parametrize(
    ("outcomes", "reason"),
    [
        (np.repeat([0.0, 1.0], 50), "only 2 distinct values"),
        (np.concatenate([np.zeros(30), np.linspace(1, 9, 70)]), "30% of the outcomes equal 0"),
        (np.linspace(0, 1, 100), None),
    ],
)
def test_an_outcome_without_a_density_is_recognised(outcomes, reason):
    found = heckman_auto.unsuited_to_density(outcomes, np.ones(len(outcomes)))
    assert found is reason or reason in found
