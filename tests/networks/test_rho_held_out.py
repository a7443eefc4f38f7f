"""The evidence for rho from held-out units."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import norm

from heckesel.networks.rho import linear_joint
from heckesel.networks.rho.linear_joint import conditional_optima, start_at
from heckesel.networks.rho.rho_curve import Laplace, rho_curves
from heckesel.networks.rho.rho_held_out import (
    PRIOR_WEIGHTS,
    VARIANCE_FACTORS,
    HeldOut,
    split_held_out,
)
from heckesel.networks.rho.rho_mixture import mixture_points
from heckesel.networks.rho.rho_prior import RhoPrior
from heckesel.networks.training.batches import Batch

CPU = torch.device("cpu")
FREE = np.zeros((3, 0))


def drawn(n, seed, rho=0.5, folds=2):
    """Rows of two columns and a constant, weights that add up to one, and folds."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(n, 2)), rng.normal(size=n)
    u = rng.normal(size=n)
    error = rho * u + np.sqrt(1 - rho**2) * rng.normal(size=n)
    y, w = x @ [1.0, -0.5] + 0.7 * error, np.column_stack([x[:, 0], z, np.ones(n)])
    s, fold = w @ [0.5, 1.0, 0.2] + u > 0, np.arange(n) % folds
    weight = rng.integers(1, 4, size=n) / n
    return Batch(
        x=np.column_stack([x, np.ones(n)])[s],
        y=y[s],
        weight=weight[s],
        w=w[s],
        w_unselected=w[~s],
        weight_unselected=weight[~s],
        fold=fold[s],
        fold_unselected=fold[~s],
    )


def evaluated(rows, total, a):
    """Of the first fold of two."""
    kept, held = split_held_out([rows], 2)
    bases = linear_joint.bases_of(kept, [total], FREE, CPU)
    optima = conditional_optima(bases, torch.full((1,), a, dtype=torch.float64), *start_at(bases))
    return HeldOut(linear_joint.bases_of(held, [total], FREE, CPU)), optima, held


def test_rows_are_either_kept_or_held_out():
    rows = drawn(60, 1, folds=3)
    for own, kept, held in zip((0, 1, 2, 0), *split_held_out([rows] * 4, 3), strict=True):
        np.testing.assert_array_equal(held.y, rows.y[rows.fold == own])
        np.testing.assert_array_equal(kept.x, rows.x[rows.fold != own])
        assert len(held.w_unselected) + len(kept.w_unselected) == len(rows.w_unselected)
        mass = kept.weight.sum() + held.weight.sum()
        mass += kept.weight_unselected.sum() + held.weight_unselected.sum()
        assert mass == pytest.approx(rows.weight.sum() + rows.weight_unselected.sum())


@pytest.mark.parametrize("rho", [-0.7, 0.0, 0.95])
def test_readings_are_the_likelihood_with_f_averaged_over_its_error(rho):
    """A row's likelihood as an integral over f, by quadrature."""
    total = 40.0
    criterion, optima, (held,) = evaluated(drawn(40, 2), total, np.arctanh(rho))
    v, q = optima.v[0].numpy(), 3
    covariance = np.linalg.inv(optima.information[0].numpy())[q:-1, q:-1]
    sigma = 1 / v[-1]
    mean, index = held.x @ v[q:-1] * sigma, held.w @ v[:q]
    for place in (0, 1, 4):
        c, value = VARIANCE_FACTORS[place], 0.0
        for row in range(len(held.y)):
            y, b = held.y[row], held.x[row]
            tau = sigma * np.sqrt(c * b @ covariance @ b)

            def given(f, y=y, row=row):
                e = (y - f) / sigma
                log_cdf = log_ndtr((index[row] + rho * e) / np.sqrt(1 - rho**2))
                return norm.pdf(e) / sigma * np.exp(log_cdf)

            likelihood = given(mean[row])
            if tau > 0:
                ends = mean[row] - 9 * tau, mean[row] + 9 * tau
                likelihood = quad(
                    lambda f, row=row, given=given, tau=tau: given(f) * norm.pdf(f, mean[row], tau),
                    *ends,
                    points=[mean[row], y],
                    limit=200,
                )[0]
            value += total * held.weight[row] * np.log(likelihood)
        unselected = log_ndtr(-held.w_unselected @ v[:q])
        value += total * held.weight_unselected @ unselected
        assert criterion.readings(optima)[0, place] == pytest.approx(value, rel=1e-7)


def test_folds_add_up_and_count_alike():
    rng = np.random.default_rng(3)
    readings = rng.normal(size=(4, 3, len(VARIANCE_FACTORS)))
    found = HeldOut(None).evidence(readings)
    together = np.exp(readings).prod(axis=1)  # (j, c)
    np.testing.assert_allclose(np.exp(found.log_evidence), together @ PRIOR_WEIGHTS)
    belief = together * PRIOR_WEIGHTS / (together @ PRIOR_WEIGHTS)[:, None]
    np.testing.assert_allclose(found.variance_factor, belief @ VARIANCE_FACTORS)
    np.testing.assert_allclose(found.share, 1 / 3)


def test_known_columns_have_the_same_evidence_in_training_and_held_out_rows():
    """With three free coefficients both are the likelihood but for a log-unit or two."""
    rows, total = drawn(4000, 4, rho=0.6), 4000.0
    kept, held = split_held_out([rows, rows], 2)
    bases = linear_joint.bases_of(kept, [total] * 2, FREE, CPU)
    criterion = HeldOut(linear_joint.bases_of(held, [total] * 2, FREE, CPU))
    (held_out,) = rho_curves(bases, 2, RhoPrior(), criterion)
    everything = linear_joint.bases_of([rows], [total], FREE, CPU)
    (seen,) = rho_curves(everything, 1, RhoPrior(), Laplace())
    means, sds = [], []
    for curve in (held_out, seen):
        share = curve.weight.sum(axis=1)
        means.append(share @ curve.rho)
        sds.append(np.sqrt(share @ (curve.rho - means[-1]) ** 2))
    assert means[0] == pytest.approx(means[1], abs=sds[1])
    assert sds[0] == pytest.approx(sds[1], rel=0.3)


def test_columns_that_hold_the_noise_of_training_rows_have_no_held_out_evidence():
    """One column is y itself on the rows a model saw, noise on its own fold."""
    rows, total = drawn(600, 5, rho=0.6), 600.0
    rng = np.random.default_rng(6)
    leaky = []
    for own in (0, 1):
        column = np.where(rows.fold == own, rng.normal(size=len(rows.y)), rows.y)
        leaky.append(replace(rows, x=np.column_stack([0.5 * column, rows.x])))
    honest = [replace(rows, x=np.column_stack([0 * rows.y, rows.x]))] * 2
    ridge = np.ones((4, 1))
    ridge[-1] = 0.0

    def evidence(models):
        """At rho = 0, by training rows and by held-out rows."""
        kept, held = (
            linear_joint.bases_of(part, [total] * 2, ridge, CPU)
            for part in split_held_out(models, 2)
        )
        at_zero = torch.zeros(2, dtype=torch.float64)
        optima = conditional_optima(kept, at_zero, *start_at(kept), updates=20)
        criterion = HeldOut(held)
        return (
            float(optima.evidence.sum()),
            float(criterion.evidence(criterion.readings(optima)[None]).log_evidence[0]),
        )

    (seen, held_out), (seen_honest, left_out_honest) = evidence(leaky), evidence(honest)
    assert seen > seen_honest + 100
    assert held_out < left_out_honest - 100


def test_the_variance_factor_scales_the_covariance_and_nothing_else():
    rows, total = drawn(300, 7), 300.0
    bases = linear_joint.bases_of([rows], [total], FREE, CPU)
    (curve,) = rho_curves(bases, 1, RhoPrior())
    (plain,) = mixture_points(bases, [curve])
    (scaled,) = mixture_points(bases, [replace(curve, variance_factor=4 * curve.variance_factor)])
    np.testing.assert_allclose(scaled.cholesky_factor, 2 * plain.cholesky_factor)
    for name in ("weight", "rho", "delta", "theta"):
        np.testing.assert_array_equal(getattr(scaled, name), getattr(plain, name))


def test_evidence_is_finite_where_one_reading_is_hopeless():
    readings = np.zeros((2, 2, len(VARIANCE_FACTORS)))
    readings[0, 0] = -2000.0
    found = HeldOut(None).evidence(readings)
    np.testing.assert_allclose(found.log_evidence, [-2000.0, 0.0], atol=1e-12)
