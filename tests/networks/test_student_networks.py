"""Student's t in torch, the joint loss with t errors, and fits to data drawn from it."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import stdtr
from scipy.stats import multivariate_t
from scipy.stats import t as student

from heckesel.data import selection_data
from heckesel.errors import DataError
from heckesel.math.student_torch import (
    degrees_of_freedom,
    log_cdf_and_slopes,
    log_density_and_slopes,
)
from heckesel.methods import fit_one, load_method
from heckesel.networks.losses import normal as losses
from heckesel.networks.losses.student import JOINT_STUDENT, joint_student
from heckesel.networks.training.batches import Batch
from heckesel.networks.training.config import NetworkConfig
from tests.networks.test_losses import K, _rows

POINTS = np.array([-60.0, -7.0, -2.01, -1.99, -0.3, 0.0, 0.8, 1.99, 2.01, 6.0])


def tensor(values):
    return torch.tensor(np.atleast_2d(values), dtype=torch.float64)


def log_cdf_by_mpmath(t, df):
    """The regularised incomplete beta function in 40 digits."""
    with mpmath.workdps(40):
        t, df = mpmath.mpf(float(t)), mpmath.mpf(float(df))
        tail = mpmath.betainc(df / 2, 0.5, 0, df / (df + t * t), regularized=True) / 2
        return float(mpmath.log(tail if t < 0 else 1 - tail))


@pytest.mark.parametrize("df", [2.01, 3.0, 7.5, 120.0])
def test_log_distribution_function_is_that_of_forty_digits(df):
    found = log_cdf_and_slopes(tensor(POINTS), tensor(df))[0][0]
    expected = [log_cdf_by_mpmath(t, df) for t in POINTS]
    # Thirty-odd nodes leave at most 1e-9 on either side of |t| = 2.
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("df", [2.01, 3.0, 7.5, 120.0, 9000.0])
@pytest.mark.parametrize("function", [log_density_and_slopes, log_cdf_and_slopes])
def test_slopes_of_the_t_are_its_differences(function, df):
    _, by_t, by_df = function(tensor(POINTS), tensor(df))
    for slope, moved in (
        (by_t, lambda h: function(tensor(POINTS + h), tensor(df))[0]),
        (by_df, lambda h: function(tensor(POINTS), tensor(df + h))[0]),
    ):
        step = 1e-5 if slope is by_t else 1e-5 * df
        # The rule changes at |t| = 2, beyond 1e-2 from any point: both differences stay inside.
        np.testing.assert_allclose(
            slope, (moved(step) - moved(-step)) / (2 * step), rtol=1e-5, atol=1e-9
        )


def test_many_degrees_of_freedom_are_normal():
    t = tensor(np.linspace(-6, 6, 25))
    found, slope, _ = log_cdf_and_slopes(t, tensor(1e8))
    log_cdf, mills = losses.log_ndtr_and_mills(t)
    # The first correction is t^4/(4 df), 3e-6 of the log at |t| = 6.
    np.testing.assert_allclose(found, log_cdf, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(slope, mills, rtol=1e-5, atol=1e-12)


def _head(seed=1, log_extra_df=0.7):
    rng = np.random.default_rng(seed)
    head = rng.normal(0.1, 0.5, (K, 6))
    head[:, -2] = log_extra_df
    return torch.tensor(head)


def test_slopes_of_the_loss_are_its_differences():
    rows, head = _rows(), _head()
    output = torch.tensor(np.random.default_rng(3).normal(0.2, 0.8, (K, rows.y.shape[1], 1)))
    _, by_output, by_head = joint_student(output, head, rows)
    step = 1e-6
    for point, slope in ((output, by_output), (head, by_head)):
        for at in np.ndindex(*point.shape):
            moved = [point.clone(), point.clone()]
            moved[0][at] += step
            moved[1][at] -= step
            up, down = (
                joint_student(*((p, head) if point is output else (output, p)), rows)[0]
                for p in moved
            )
            difference = ((up - down) / (2 * step)).numpy()
            # Central differences at this step err by 1e-10 and round by 1e-10.
            np.testing.assert_allclose(difference[at[0]], slope[at], rtol=1e-6, atol=1e-9)


def test_the_loss_is_normal_in_the_limit_of_many_degrees_of_freedom():
    rows, head = _rows(), _head(log_extra_df=9.1)
    output = torch.tensor(np.random.default_rng(3).normal(0.2, 0.8, (K, rows.y.shape[1], 1)))
    normal = losses.joint(output, torch.cat([head[:, :-2], head[:, -1:]], dim=1), rows)
    heavy = joint_student(output, head, rows)
    # At nine thousand degrees of freedom the corrections are of order e^4/(4 df).
    np.testing.assert_allclose(heavy[0], normal[0], rtol=2e-3)
    np.testing.assert_allclose(heavy[1], normal[1], rtol=1e-2, atol=1e-4)


def test_a_selected_unit_has_the_bivariate_t_probability_of_its_half_plane():
    df, rho, index, sigma, y = 4.0, 0.6, -0.3, 1.4, 0.9
    one = torch.ones(1, 1, dtype=torch.float64)
    rows = Batch(
        x=one[..., None],
        y=y * one,
        weight=one,
        w=one[..., None],
        w_unselected=one[:, :0, None],
        weight_unselected=one[:, :0],
    )
    head = torch.tensor([[index, np.log(sigma), np.log(df - 2), np.arctanh(rho)]])
    found = float(joint_student(0 * one[..., None], head.double(), rows)[0][0])
    shape = np.array([[1.0, rho], [rho, 1.0]])
    joint_density = multivariate_t(loc=[0, 0], shape=shape, df=df).pdf
    area, _ = quad(lambda u: joint_density([u, y / sigma]), -index, np.inf)
    # A second derivation: the bivariate density, integrated over the selected half plane.
    assert found == pytest.approx(-np.log(area / sigma), rel=1e-7)


def test_float32_slopes_stay_finite_far_out():
    rows, head = _rows(dtype=torch.float32), _head().float()
    output = torch.full((K, rows.y.shape[1], 1), 50.0)
    for log_extra_df in (-30.0, 0.0, 30.0):
        head[:, -2] = log_extra_df
        assert all(torch.isfinite(part).all() for part in joint_student(output, head, rows))


def _draw(n, seed, df=4.0, rho=0.7, sigma=0.5):
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-2, 2, (n, 1)), rng.normal(size=n)
    u, v = rng.normal(size=(2, n)) / np.sqrt(rng.chisquare(df, n) / df)
    y = 0.8 * x[:, 0] + sigma * (rho * u + np.sqrt(1 - rho**2) * v)
    seen = np.where(0.2 - 0.6 * x[:, 0] + z + u > 0, y, np.nan)
    return selection_data(x, np.column_stack([x, z]), seen)


def test_t_errors_find_rho_and_the_tails_where_normal_ones_do_not():
    draws = [_draw(2000, 0)]
    network = NetworkConfig(hidden=(4,), n_members=1, epochs=400, device="cpu", warm_up=20)
    heavy, normal = (
        load_method("heckman_joint").fit_many(
            draws, seeds=[0], config=replace(network, errors=errors)
        )
        for errors in ("t", "normal")
    )
    # Four degrees of freedom, from 1000 outcomes: an estimate has a sd of about .7.
    for fit in heavy:
        assert 2.5 < np.mean(fit.info.df) < 7
        assert abs(np.mean(fit.info.sigma) - 0.5) < 0.08
    rho = [np.mean([fit.info.rho for fit in fits]) for fits in (heavy, normal)]
    assert abs(rho[0] - 0.7) < 0.15
    likelihoods = [np.mean([fit.info.training_loss for fit in fits]) for fits in (heavy, normal)]
    assert likelihoods[0] < likelihoods[1] - 0.01
    x = np.linspace(-1.5, 1.5, 5)[:, None]
    predictive = heavy[0].predict(x)
    df = predictive.distribution.df
    lower, upper = predictive.interval(0.9).T
    scale = predictive.std * np.sqrt((df - 2) / df)
    np.testing.assert_allclose(upper - lower, 2 * scale * student.ppf(0.95, df), rtol=1e-9)
    np.testing.assert_allclose(predictive.cdf(upper), stdtr(df, student.ppf(0.95, df)), rtol=1e-9)
    density = student.logpdf(0.3, df, loc=predictive.mean, scale=scale)
    np.testing.assert_allclose(predictive.distribution.log_density(0.3), density, rtol=1e-9)
    with pytest.raises(DataError, match="t errors"):
        heavy[0].predict(x, np.column_stack([x, x]), "selected")


def test_t_errors_on_folds_have_their_scale_estimated_on_held_out_rows():
    network = NetworkConfig(
        hidden=(16,), n_members=4, epochs=120, device="cpu", folds=4, errors="t", noise="auto"
    )
    fit = fit_one("heckman_joint", _draw(800, 3), seed=0, config=network)
    assert len(set(fit.info.sigma)) == 1
    assert abs(fit.info.sigma[0] - 0.5) < 0.12  # members' shared error is in it
    assert 2.1 < fit.info.df[0] < 9
    assert set(fit.info.held_out_losses) == {"constant"}


def test_methods_and_options_without_t_errors_refuse_them():
    with pytest.raises(DataError, match='needs method="joint"'):
        fit_one(
            "heckman_two_step",
            _draw(100, 0),
            seed=0,
            config=NetworkConfig(errors="t", device="cpu"),
        )
    with pytest.raises(DataError, match="errors must be one of normal, t"):
        NetworkConfig(errors="cauchy")
    with pytest.raises(DataError, match="needs a constant sigma"):
        NetworkConfig(errors="t", noise="varying", folds=5)


def test_degrees_of_freedom_are_the_same_for_arrays_and_tensors():
    values = np.array([-9.0, 0.5, 30.0])
    np.testing.assert_allclose(degrees_of_freedom(values), degrees_of_freedom(torch.tensor(values)))
    assert JOINT_STUDENT.scalars[-1] == "atanh_rho"
