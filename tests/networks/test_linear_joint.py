"""The joint likelihood of several linear models at once, its ridges and its evidence."""

import numpy as np
import pytest
import torch
from scipy.special import log_ndtr

from heckesel.classical import ml as joint
from heckesel.networks.rho import linear_joint as lj
from tests.classical.linear_models import bases_of, draw, sample_of

HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


def one_ridge(h):
    """All columns but the constant."""
    return np.append(np.ones(h), 0.0)[:, None]


def two_ridges(h):
    """The first column, the others, and the constant free."""
    groups = np.zeros((h + 1, 2))
    groups[0, 0] = groups[1:h, 1] = 1.0
    return groups


MODELS = [draw(n, 3, seed) for n, seed in ((40, 0), (75, 1), (23, 2))]  # of different lengths
BASES = bases_of(MODELS, two_ridges(3))
# gamma (3), delta (4), theta: nowhere near an optimum, and different for each model
POINTS = torch.as_tensor(np.random.default_rng(3).normal(size=(3, 8)) * 0.6)
POINTS[:, -1] = torch.tensor([0.6, 1.3, 2.1])
A = torch.tensor([-1.1, 0.4, 1.7], dtype=torch.float64)


def as_tensors(*values):
    return [torch.as_tensor(value, dtype=torch.float64) for value in values]


def settled(bases, a, *, rounds=8, updates=50, ridge=None):
    """Optima with v and ridges both at their fixed points, beyond the tolerances of one call."""
    v, start = lj.start_at(bases)
    ridge = start if ridge is None else ridge
    for _ in range(rounds):
        found = lj.conditional_optima(bases, a, v, ridge, updates=updates)
        v, ridge = found.v, found.ridge
    return found


def sharply(bases, a, ridge, v, steps=6):
    """v at fixed a and ridges by plain Newton steps, to rounding."""
    for _ in range(steps):
        _, score, information = lj._penalised(bases, lj._surface(bases, v, a), ridge)
        v = v + torch.linalg.solve(information, score)
    return v


def evidence_at(bases, a, ridge, v):
    v = sharply(bases, a, ridge, v)
    return lj.conditional_optima(bases, a, v, ridge, updates=0).evidence


def test_the_score_is_the_slope_of_the_value():
    here, step = lj._surface(BASES, POINTS, A), 1e-5
    for j in range(POINTS.shape[1]):
        shift = torch.zeros(8, dtype=torch.float64)
        shift[j] = step
        up, down = (lj._surface(BASES, POINTS + side * shift, A).value for side in (1, -1))
        # Central differences of a sum of order 100 at this step err by 1e-9 from rounding.
        np.testing.assert_allclose((up - down) / (2 * step), here.score[:, j], rtol=1e-6, atol=1e-7)


def test_the_information_is_minus_the_slope_of_the_score():
    here, step = lj._surface(BASES, POINTS, A), 1e-5
    for j in range(POINTS.shape[1]):
        shift = torch.zeros(8, dtype=torch.float64)
        shift[j] = step
        up, down = (lj._surface(BASES, POINTS + side * shift, A).score for side in (1, -1))
        slope = (down - up) / (2 * step)
        np.testing.assert_allclose(slope, here.information[:, :, j], rtol=1e-6, atol=1e-7)


def test_ridges_act_on_value_score_and_information_as_written():
    ridge = torch.as_tensor(np.random.default_rng(4).uniform(0.5, 9, size=(3, 2)))
    here = lj._surface(BASES, POINTS, A)
    value, score, information = lj._penalised(BASES, here, ridge)
    for k in range(3):
        of_delta = np.array([ridge[k, 0], ridge[k, 1], ridge[k, 1], 0.0])
        each = np.concatenate([np.full(3, lj.GAMMA_RIDGE), of_delta, [0.0]])
        v = POINTS[k].numpy()
        assert value[k] == pytest.approx(float(here.value[k] - 0.5 * each @ v**2), rel=1e-13)
        np.testing.assert_allclose(score[k], here.score[k].numpy() - each * v, rtol=1e-13)
        added = np.diag(each)
        np.testing.assert_allclose(information[k] - here.information[k], added, atol=1e-11)


def test_the_surface_is_that_of_the_classic_likelihood():
    here = lj._surface(BASES, POINTS, A)
    for k, model in enumerate(MODELS):
        point = np.append(POINTS[k].numpy(), float(A[k]))
        value, score, hessian = joint.evaluate(sample_of(model), point)
        assert float(here.value[k]) == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(here.score[k], score[:-1], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(here.information[k], -hessian[:-1, :-1], rtol=1e-10, atol=1e-9)


def test_a_theta_that_is_not_positive_has_no_likelihood():
    points = POINTS.clone()
    points[:, -1] = torch.tensor([0.0, -1.0, 1.0])
    value = lj._surface(BASES, points, A).value
    assert value[0] == value[1] == -torch.inf
    assert torch.isfinite(value[2])


@pytest.mark.parametrize("a", [-1.5, 0.0, 0.8, 3.2])
def test_without_ridges_the_optimum_is_the_classic_one(a):
    bases = bases_of(MODELS, np.zeros((4, 0)))
    v, ridge = lj.start_at(bases)
    found = lj.conditional_optima(bases, torch.full((3,), a, dtype=torch.float64), v, ridge)
    for k, model in enumerate(MODELS):
        sample = sample_of(model)
        classic = joint.solve_at(sample, a, joint.at_zero(sample))
        # A step that is worth less than 1e-5 is not taken; that is .0045 standard errors.
        value = float(lj._surface(bases, found.v, found.a).value[k])
        assert value == pytest.approx(classic.value, abs=1.1e-5)
        left = found.v[k].numpy() - classic.v
        assert -left @ classic.hessian[:-1, :-1] @ left < 2.2e-5
        log_det = np.linalg.slogdet(-classic.hessian[:-1, :-1])[1]
        assert float(found.evidence[k]) == pytest.approx(classic.value - 0.5 * log_det, abs=5e-3)


def test_the_evidence_of_a_tiny_ridge_is_that_of_no_ridge_up_to_its_logarithm():
    a = torch.full((3,), 0.5, dtype=torch.float64)
    free = bases_of(MODELS, np.zeros((4, 0)))
    bound = bases_of(MODELS, one_ridge(3))
    v, none = lj.start_at(free)
    ridge = torch.full((3, 1), 1e-9, dtype=torch.float64)
    gap = evidence_at(bound, a, ridge, v) - evidence_at(free, a, none, v)
    np.testing.assert_allclose(gap, 0.5 * 3 * np.log(1e-9), rtol=0, atol=1e-6)


def test_differences_of_the_evidence_between_ridges_are_exact_for_a_known_scale():
    # At rho = 0 and a given theta the likelihood is Gaussian in delta, so theta y has the marginal
    # N(0, I + X X'/lambda). The module averages over theta too: its part of the determinant, what
    # is left of it given delta, is taken off.
    model = draw(60, 3, 5)
    model["columns"] = model["columns"][:, :3]  # no free column
    model["weight"] = np.ones(60)
    bases = bases_of([model], np.ones((3, 1)))
    x, y = model["columns"][model["s"]], model["y"][model["s"]]
    a, values, exact = torch.zeros(1, dtype=torch.float64), [], []
    for size in (0.3, 40.0):
        (ridge,) = as_tensors([[size]])
        v = settled(bases, a, ridge=ridge, updates=0).v
        v = sharply(bases, a, ridge, v)
        information = lj._penalised(bases, lj._surface(bases, v, a), ridge)[2][0].numpy()
        whole, inner = (np.linalg.slogdet(information[3:end, 3:end])[1] for end in (7, 6))
        values.append(float(evidence_at(bases, a, ridge, v)[0]) + 0.5 * (whole - inner))
        covariance = np.eye(len(y)) + x @ x.T / size
        theta = float(v[0, -1])
        z = theta * y
        log_density = -0.5 * z @ np.linalg.solve(covariance, z) + len(y) * np.log(theta)
        exact.append(log_density - 0.5 * np.linalg.slogdet(covariance)[1])
    assert values[1] - values[0] == pytest.approx(exact[1] - exact[0], abs=1e-8)
    assert abs(exact[1] - exact[0]) > 1  # so that the comparison says something


def brute_force_evidence(model, ridge, a, v, information):
    """Log of the integral of likelihood times prior over gamma, delta and theta, one number each.

    Laplace's method has (2 pi)^(1/2) for each, the prior one in its denominator; the module leaves
    these constants out, which is log 2 pi here."""
    s, weight = model["s"], model["weight"]
    w, column, y = model["w"][:, 0], model["columns"][:, 0], model["y"]
    sd = np.sqrt(np.diag(np.linalg.inv(information)))

    def log_posterior(gamma, delta, theta):
        index, e = w * gamma, theta * y[s] - column[s] * delta
        rho = np.tanh(a)
        b = (index[s] + rho * e) / np.sqrt(1 - rho**2)
        selected = np.log(theta) - HALF_LOG_2PI - 0.5 * e**2 + log_ndtr(b)
        prior = 0.5 * np.log(ridge / (2 * np.pi)) - 0.5 * ridge * delta**2
        return weight[s] @ selected + weight[~s] @ log_ndtr(-index[~s]) + prior

    top = log_posterior(*v)
    nodes, weights = np.polynomial.legendre.leggauss(24)  # over seven standard errors each way
    grids = [centre + 7 * d * nodes for centre, d in zip(v, sd, strict=True)]
    shares = [7 * d * weights for d in sd]
    total = sum(
        p * q * r * np.exp(log_posterior(g, d, t) - top)
        for g, p in zip(grids[0], shares[0], strict=True)
        for d, q in zip(grids[1], shares[1], strict=True)
        for t, r in zip(grids[2], shares[2], strict=True)
    )
    return top + np.log(total) - 2 * HALF_LOG_2PI


@pytest.mark.parametrize("a", [0.0, 0.9])
def test_the_evidence_is_the_likelihood_integrated_over_everything_but_rho(a):
    model = draw(500, 1, 6)
    model |= {"columns": model["columns"][:, :1], "w": model["w"][:, 1:2]}
    model["weight"] = np.ones(500)
    bases = bases_of([model], np.ones((1, 1)))
    (at,) = as_tensors([a])
    for size in (0.5, 60.0):
        (ridge,) = as_tensors([[size]])
        v = sharply(bases, at, ridge, settled(bases, at, ridge=ridge, updates=0).v)
        found = lj.conditional_optima(bases, at, v, ridge, updates=0)
        exact = brute_force_evidence(model, size, a, v[0].numpy(), found.information[0].numpy())
        # Laplace's method is off by order 1/n, a few thousandths here.
        assert float(found.evidence[0]) == pytest.approx(exact, abs=0.01)


def slope_in_log_ridge(bases, a, found, group, *, frozen):
    """Central difference of the evidence; `frozen` keeps the curvature of the likelihood."""
    step, values = 0.01, []
    for side in (1, -1):
        ridge = found.ridge.clone()
        ridge[:, group] *= np.exp(side * step)
        v = sharply(bases, a, ridge, found.v)
        value, _, information = lj._penalised(bases, lj._surface(bases, v, a), ridge)
        if frozen:
            plain = lj._surface(bases, sharply(bases, a, found.ridge, found.v), a)
            information = lj._penalised(bases, plain, ridge)[2]
        log_det = torch.linalg.slogdet(information)[1]
        sizes = bases.membership.sum(dim=0)
        values.append(value + 0.5 * (ridge.log() @ sizes - log_det))
    return ((values[0] - values[1]) / (2 * step)).numpy()


def test_settled_ridges_are_where_the_evidence_is_flat():
    # Few rows and small coefficients, so that a fifth of what determines a ridge is their variance;
    # the slope ignores how the curvature of the likelihood changes with v, which is of order 1/n.
    models = [draw(150, 14, seed) for seed in (7, 8)]
    for model, seed in zip(models, (70, 80), strict=True):
        beta = np.append(np.random.default_rng(seed).normal(size=14) * 0.12, 0.3)
        model["y"] = model["y"] + model["columns"] @ (beta - np.linspace(0.8, -0.4, 15))
    bases = bases_of(models, two_ridges(14))
    (a,) = as_tensors([0.3, -0.6])
    found = settled(bases, a)
    low, high = lj.RIDGE_RANGE
    assert ((found.ridge > 10 * low) & (found.ridge < high / 10)).all()
    covariance = torch.linalg.inv(found.information).diagonal(dim1=1, dim2=2)[:, 3:-1]
    shrunk = found.ridge * (covariance @ bases.membership) / bases.membership.sum(dim=0)
    assert (shrunk[:, 1] > 0.15).all()
    for group in range(2):
        # An update is given up when it promises less than .01, so a slope of about .01 may stay.
        frozen = slope_in_log_ridge(bases, a, found, group, frozen=True)
        np.testing.assert_allclose(frozen, 0.0, atol=0.015)
        whole = slope_in_log_ridge(bases, a, found, group, frozen=False)
        np.testing.assert_allclose(whole, 0.0, atol=0.05)


def test_settled_ridges_beat_others_by_evidence():
    bases = bases_of([draw(300, 6, 9)], one_ridge(6))
    (a,) = as_tensors([0.4])
    found = settled(bases, a)
    best = evidence_at(bases, a, found.ridge, found.v)
    for factor in (0.2, 0.5, 2.0, 5.0):
        other = evidence_at(bases, a, found.ridge * factor, found.v)
        assert float(best - other) > 0.05  # at factors of two the evidence falls by about .2


def test_irrelevant_columns_are_shrunk_and_relevant_ones_are_not():
    rng = np.random.default_rng(10)
    model = draw(600, 3, 11)
    model["columns"] = np.column_stack([rng.normal(size=(600, 6)), model["columns"]])
    membership = np.zeros((10, 2))
    membership[:6, 0] = membership[6:9, 1] = 1.0
    found = settled(bases_of([model], membership), torch.zeros(1, dtype=torch.float64))
    nothing, matters = found.ridge[0].numpy()
    assert nothing > 50 * matters
    assert 0.1 < matters < 50  # coefficients over sigma are near one


def test_the_answer_of_a_model_does_not_depend_on_its_neighbours():
    # Fifty updates: some arrive long before others, and must not move on with them.
    together = lj.conditional_optima(BASES, A, *lj.start_at(BASES), updates=50)
    for k, model in enumerate(MODELS):
        alone = bases_of([model], two_ridges(3))
        found = lj.conditional_optima(alone, A[k : k + 1], *lj.start_at(alone), updates=50)
        # Same steps in both; padding changes the order of sums.
        np.testing.assert_allclose(together.v[k], found.v[0], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(together.ridge[k], found.ridge[0], rtol=1e-7)
        assert float(together.evidence[k]) == pytest.approx(float(found.evidence[0]), abs=1e-8)


def test_a_weight_of_three_is_three_rows():
    model = draw(50, 2, 12)
    model["weight"] = np.random.default_rng(13).integers(1, 4, 50).astype(float)
    times = model["weight"].astype(int)
    repeated = {name: np.repeat(values, times, axis=0) for name, values in model.items()}
    repeated["weight"] = np.ones(times.sum())
    bases = bases_of([model, repeated], one_ridge(2))
    (a,) = as_tensors([0.7, 0.7])
    found = lj.conditional_optima(bases, a, *lj.start_at(bases), updates=5)
    np.testing.assert_allclose(found.v[0], found.v[1], rtol=1e-8, atol=1e-10)
    assert float(found.evidence[0]) == pytest.approx(float(found.evidence[1]), abs=1e-8)


def test_rescaled_columns_leave_the_evidence_and_the_fit_alone():
    # With c X the ridge is c^2 lambda: r/2 log of it makes up for the determinant.
    model = draw(200, 4, 14)
    scaled = model | {"columns": model["columns"] * np.array([5.0, 5.0, 5.0, 5.0, 1.0])}
    (a,) = as_tensors([0.5])
    ends = [settled(bases_of([each], one_ridge(4)), a) for each in (model, scaled)]
    assert float(ends[1].ridge / ends[0].ridge) == pytest.approx(25, rel=0.02)
    bases = [bases_of([each], one_ridge(4)) for each in (model, scaled)]
    first = evidence_at(bases[0], a, ends[0].ridge, ends[0].v)
    second = evidence_at(bases[1], a, ends[0].ridge * 25, ends[1].v)
    assert float(first) == pytest.approx(float(second), abs=1e-8)


def test_y_in_other_units_shifts_every_evidence_by_the_same():
    models = [draw(200, 3, 15), draw(200, 3, 15, scale=100.0)]
    bases = bases_of(models, one_ridge(3))
    shifts = []
    for at in (-0.8, 0.0, 1.2):
        a = torch.full((2,), at, dtype=torch.float64)
        ridge = torch.full((2, 1), 2.0, dtype=torch.float64)
        v = sharply(bases, a, ridge, settled(bases, a, ridge=ridge, updates=0).v)
        first, second = evidence_at(bases, a, ridge, v)
        shifts.append(float(second - first))
    np.testing.assert_allclose(shifts, shifts[0], rtol=0, atol=1e-7)
    # theta is 100 times smaller: its likelihood by 100^-mass, its standard error too.
    mass = models[0]["weight"][models[0]["s"]].sum()
    assert shifts[0] == pytest.approx(-(mass + 1) * np.log(100), abs=1e-6)


def test_the_optimum_is_one_whatever_the_start():
    bases = bases_of(MODELS, one_ridge(3))
    ridge = torch.full((3, 1), 1.5, dtype=torch.float64)
    first = lj.conditional_optima(bases, A, lj.start_at(bases)[0], ridge, updates=0)
    far = POINTS * 8  # full Newton steps from here would leave theta > 0 or overshoot
    second = lj.conditional_optima(bases, A, far, ridge, updates=0)
    np.testing.assert_allclose(first.evidence, second.evidence, rtol=0, atol=1e-2)
    value = [lj._penalised(bases, lj._surface(bases, f.v, A), ridge)[0] for f in (first, second)]
    np.testing.assert_allclose(value[0], value[1], rtol=0, atol=2e-5)
