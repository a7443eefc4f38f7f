"""Errors of several forms at fixed rho: derivatives, special cases, held-out evidence, mixtures."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
import torch
from scipy.special import ndtr

from heckesel.classical import likelihood as normal
from heckesel.classical.checks import unsuited_to_density
from heckesel.classical.likelihood import ERROR_MODELS
from heckesel.data import selection_data
from heckesel.methods import fit_one, heckman_auto
from heckesel.methods.spline_joint import spline_basis
from heckesel.networks.rho import form_held_out, form_shape, form_student
from heckesel.networks.rho import form_posterior as form_posterior_module
from heckesel.networks.rho.fitted_points import Design, Fitting, Points, independent_optima
from heckesel.networks.rho.form_held_out import Folds, evidence_of, held_out_readings
from heckesel.networks.rho.form_likelihood import Units, split, surface_at, value_at
from heckesel.networks.rho.form_mixture import design_of
from heckesel.networks.rho.form_optima import optimise
from heckesel.networks.rho.form_posterior import form_posterior, weighted
from heckesel.networks.rho.rho_prior import UNIFORM
from heckesel.networks.training.batches import data_scale_of

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


@pytest.mark.parametrize("family", [form_shape, form_student])
def test_score_and_information_are_the_derivatives_of_the_value(family):
    units, v, step = random_units(), random_point(), 1e-5
    here = surface_at(family, units, v, A)
    np.testing.assert_allclose(here.value, value_at(family, units, v, A), rtol=1e-13)
    for place in range(v.shape[1]):
        move = torch.zeros(v.shape[1], dtype=v.dtype)
        move[place] = step
        up, down = (surface_at(family, units, v + sign * move, A) for sign in (1, -1))
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
        assert value_at(form_shape, units, v, A)[k].item() == pytest.approx(expected, rel=1e-12)


def test_t_errors_have_the_likelihood_of_the_linear_model():
    """The NumPy likelihood of a unit with bivariate t errors, which has its own distribution
    functions, at errors and indices that reach into the tails."""
    rng = np.random.default_rng(3)
    index, e = 20 * rng.normal(size=(2, 200)), 20 * rng.normal(size=(2, 200))
    for a in (-2.5, 0.0, 1.2):
        expected = ERROR_MODELS["t"].selected(index.ravel(), e.ravel(), a, np.log(form_student.DF))
        none = torch.zeros(2, 1, dtype=torch.float64)
        given = (torch.as_tensor(index), torch.as_tensor(e), none, none, none + a)
        np.testing.assert_allclose(
            form_student.selected(*given).ravel(), expected.value, rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(
            form_student.slopes(*given).value.ravel(), expected.value, rtol=1e-9, atol=1e-12
        )
    out = ERROR_MODELS["t"].unselected(index.ravel(), 0.0, np.log(form_student.DF)).value
    found, _, _ = form_student.unselected(torch.as_tensor(index))
    np.testing.assert_allclose(found.ravel(), out, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("df", [4, 5])
def test_logarithms_of_the_t_distribution_function_in_40_digits(df):
    t = [-1e6, -1e3, -31.0, -29.9, -10.0, -3.0, -0.5, 0.0, 1.0, 5.0]
    found = form_student._log_cdf(torch.tensor(t, dtype=torch.float64), df)

    def exact(value: float) -> float:
        with mpmath.workdps(40):
            share = df / (df + mpmath.mpf(value) ** 2)
            tail = mpmath.betainc(mpmath.mpf(df) / 2, 0.5, 0, share, regularized=True) / 2
            return float(mpmath.log(tail if value < 0 else 1 - tail))

    np.testing.assert_allclose(found, [exact(value) for value in t], rtol=1e-11)


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


def weight_of(model, *errors: str) -> float:
    return sum(each.weight for each in model.info.candidates if each.errors in errors)


def splines_with_known_mean(model):
    points = model.splines.points
    return replace(model.splines, points=replace(points, root=0 * points.root))


def design_for(data) -> Design:
    from heckesel.methods.spline_joint import spline_basis
    from heckesel.networks.rho.form_mixture import design_of
    from heckesel.networks.training.batches import data_scale_of

    scaling = data_scale_of(data, standardise=True)
    basis = spline_basis(scaling.x(data.x[data.s]), (), 4)
    index_basis = spline_basis(scaling.w(data.w), (), 2)
    return design_of(data, scaling, basis, index_basis, torch.device("cpu"))


def test_an_optimum_has_no_slope_and_no_form_is_worse_than_the_normal_one():
    design = design_for(skewed_data(n=300)[0])
    start, forms = independent_optima(design), np.arange(4)  # of one family
    k = len(forms)
    a = torch.full((k,), 0.4, dtype=torch.float64)
    units, free = design.units.repeated(k), design.free(forms)
    ridge = start.ridge.expand(k, -1)
    found = optimise(
        form_shape, units, a, start.v.expand(k, -1), ridge, free, design.penalty, updates=0
    )
    precision = ridge @ design.penalty.membership.T + design.penalty.fixed
    at = surface_at(form_shape, units, found.v, a)
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
    group = torch.as_tensor(rng.integers(0, 6, units.weight.shape[1]))
    group_out = torch.as_tensor(rng.integers(0, 6, units.weight_unselected.shape[1]))
    fold, fold_out = group % 2, group_out % 2
    readings = held_out_readings(
        form_shape,
        units,
        Folds(group, group_out, 6, 2),
        a,
        start.v,
        start.ridge,
        free,
        design.penalty,
    )
    evidence, _ = evidence_of(readings.sum(axis=2))
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
        found = optimise(form_shape, kept, a, start.v, start.ridge, free, design.penalty, updates=0)
        expected += value_at(form_shape, held, found.v, a).item()
    assert evidence[0] == pytest.approx(expected, abs=0.05)  # both stop .01 short of the optimum


def test_it_finds_the_form_and_the_correlation(fitted):
    model, data, y = fitted
    assert weight_of(model, "shape", "shape and scale") > 0.9
    low, high = model.info.rho_interval
    assert -0.2 < low < 0.6 < high
    hidden = model.predict(data.x[~data.s]).interval(0.9)
    inside = (hidden[:, 0] <= y[~data.s]) & (y[~data.s] <= hidden[:, 1])
    assert inside.mean() == pytest.approx(0.9, abs=0.06)  # 250 units: a standard error of .02


def test_the_three_targets_obey_the_law_of_total_probability(fitted):
    """P(y <= t) = P(s) P(y <= t | s) + P(not s) P(y <= t | not s), once f counts as known."""
    model, data, _ = fitted
    known = splines_with_known_mean(model)
    x, w = data.x[:9], data.w[:9]
    t = np.linspace(-1, 1, 9)
    chance = ndtr(known.index(w))
    whole, inside, outside = (
        known.predict(x, w, target).cdf(t) for target in ("population", "selected", "unselected")
    )
    np.testing.assert_allclose(whole, chance * inside + (1 - chance) * outside, atol=1e-7)


def test_a_factor_in_both_errors_gives_the_t_form_its_weight():
    """Bivariate t(4) errors and a strong instrument, where rho is known anyway."""
    rng = np.random.default_rng(6)
    x, z, u, v = rng.normal(size=(4, 1500))
    factor = np.sqrt(4 / rng.chisquare(4, 1500))
    y = x + 0.5 * factor * (0.6 * u + 0.8 * v)
    s = 0.5 * x + 1.5 * z + factor * u > 0
    data = selection_data(x[:, None], np.column_stack([x, z]), np.where(s, y, np.nan))
    model = fit_one(heckman_auto, data, seed=0, device="cpu")
    assert weight_of(model, "t") > 0.5
    low, high = model.info.rho_interval
    assert low < 0.6 < high
    known = splines_with_known_mean(model)
    t, few = np.linspace(-1, 1, 9), slice(0, 9)
    chance = ndtr(known.index(data.w[few]))
    whole, inside, outside = (
        known.predict(data.x[few], data.w[few], target).cdf(t)
        for target in ("population", "selected", "unselected")
    )
    np.testing.assert_allclose(whole, chance * inside + (1 - chance) * outside, atol=1e-6)


def points_with(readings) -> Points:
    """Two values of rho of one form whose groups of held-out units have these log-likelihoods."""
    nothing = torch.zeros(2, 1)
    readings = np.array(readings)[:, None, :] + np.zeros((2, len(form_held_out.FACTORS), 1))
    form, a = np.zeros(2, dtype=int), np.array([-0.5, 0.5])
    return Points(form, a, np.zeros(2), readings, *[nothing] * 3)


def test_a_peak_between_the_points_of_the_grid_is_found(monkeypatch):
    """With one point of the coarse grid in sight, the posterior would stay beside that point."""
    data = sample(rho=np.tanh(0.4), n=800)
    fine = posterior_of(data)
    monkeypatch.setattr(form_posterior_module, "COARSE", np.linspace(-3.0, 3.0, 4))
    coarse = posterior_of(data)
    mean, expected = (each.weight @ each.points.rho for each in (coarse, fine))
    sd = np.sqrt(fine.weight @ (fine.points.rho - expected) ** 2)
    assert mean == pytest.approx(expected, abs=0.3 * sd)


def sample(rho, n):
    rng = np.random.default_rng(7)
    x, z, u = rng.normal(size=(3, n))
    y = x + rho * u + np.sqrt(1 - rho**2) * rng.normal(size=n)
    s = 2.0 * z + u > 0
    y = np.where(s, y, np.nan)
    return selection_data(x[:, None], np.column_stack([x, z]), y)


def posterior_of(data):
    place = torch.device("cpu")
    scaling = data_scale_of(data, standardise=True)
    bases = (spline_basis(each, (), 0) for each in (scaling.x(data.x[data.s]), scaling.w(data.w)))
    design = design_of(data, scaling, *bases, place)
    return form_posterior(Fitting(design, heckman_auto.folds_of(data, 5, 0, place)), UNIFORM)


def test_weights_are_those_of_the_likelihood_where_all_groups_agree():
    gain = 0.05 * np.ones(20)  # one log-unit in all
    weight = weighted(points_with([gain, np.zeros(20)]), UNIFORM).weight
    assert weight[0] == pytest.approx(1 / (1 + np.exp(-1)), abs=1e-9)


def test_a_few_groups_do_not_determine_the_weights():
    """Five log-units, once from all groups and once the balance of large gains and losses."""
    sure = weighted(points_with([0.25 * np.ones(20), np.zeros(20)]), UNIFORM).weight
    torn = np.tile([8.0, -7.5], 10)
    doubtful = weighted(points_with([torn, np.zeros(20)]), UNIFORM).weight
    assert sure[0] > 0.99
    assert 0.5 < doubtful[0] < 0.7


def test_a_rival_has_weight_only_where_it_clearly_leads():
    """Two log-units in twenty groups: the same in each, or the balance of gains and losses."""
    posterior = weighted(points_with([np.zeros(20), np.zeros(20)]), UNIFORM)
    assert posterior.share_of(0.1 * np.ones(20)) == pytest.approx(1 / (1 + np.exp(-2)), abs=1e-9)
    doubtful = posterior.share_of(np.tile([2.1, -1.9], 10))
    assert doubtful < 0.05
    assert posterior.share_of(np.tile([9.1, -0.9], 10)) > 0.9  # 82 with a standard error of 22


def test_the_surfaces_that_the_outcome_uses_are_found():
    """A plain product and a wave; the other four pairs play no part."""
    rng = np.random.default_rng(2)
    x, z, noise = rng.normal(size=(800, 4)), rng.normal(size=800), rng.normal(size=800)
    y = 0.6 * x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2] * x[:, 3]) + 0.3 * noise
    s = 0.5 * x[:, 0] + z + rng.normal(size=800) > -0.5
    data = selection_data(x, np.column_stack([x, z]), np.where(s, y, np.nan))
    found = fit_one(heckman_auto, data, seed=0, device="cpu")
    surfaces = [list(pair) for pair in found.info.surfaces]
    assert [0, 1] in surfaces
    assert [2, 3] in surfaces
    assert len(surfaces) <= 4
    held = ~data.s
    error = found.predict(x[held]).mean - (y - 0.3 * noise)[held]
    assert np.sqrt(np.mean(error**2)) < 0.3  # the surfaces have a standard deviation of .86


def test_weights_of_two_are_rows_twice():
    data, _ = skewed_data(n=200)
    twice = selection_data(data.x, data.w, data.y, weight=np.full(data.n, 2.0))
    one, two = (design_for(each) for each in (data, twice))
    v = independent_optima(one).v
    a = torch.tensor([0.3], dtype=torch.float64)
    both = (value_at(form_shape, each.units, v, a) for each in (two, one))
    np.testing.assert_allclose(next(both), 2 * next(both), rtol=1e-12)


@pytest.mark.parametrize(
    ("outcomes", "reason"),
    [
        (np.repeat([0.0, 1.0], 50), "only 2 distinct values"),
        (np.concatenate([np.zeros(30), np.linspace(1, 9, 70)]), "30% of the outcomes equal 0"),
        (np.linspace(0, 1, 100), None),
    ],
)
def test_an_outcome_without_a_density_is_recognised(outcomes, reason):
    found = unsuited_to_density(outcomes, np.ones(len(outcomes)))
    assert found is reason or reason in found
