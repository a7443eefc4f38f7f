import numpy as np
import pytest
import torch
from scipy.special import log_ndtr as scipy_log_ndtr

from heckesel.numerics import normal
from heckesel.numerics.normal_torch import inverse_mills, log_ndtr

POINTS = np.concatenate([-np.geomspace(1e4, 1e-3, 60), np.geomspace(1e-3, 30.0, 40)])


def _value_and_slope(function, points, dtype):
    t = torch.tensor(points, dtype=dtype, requires_grad=True)
    value = function(t)
    (slope,) = torch.autograd.grad(value.sum(), t)
    return value.detach().numpy(), slope.numpy()


def test_float64_log_ndtr_and_its_slope_equal_the_numpy_twins():
    value, slope = _value_and_slope(log_ndtr, POINTS, torch.float64)
    np.testing.assert_allclose(value, scipy_log_ndtr(POINTS), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(slope, normal.inverse_mills(POINTS), rtol=1e-12, atol=1e-300)


def test_float64_inverse_mills_and_its_slope_equal_the_numpy_twins():
    value, slope = _value_and_slope(inverse_mills, POINTS, torch.float64)
    np.testing.assert_allclose(value, normal.inverse_mills(POINTS), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(slope, -normal.mills_delta(POINTS), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("t", [-1e4, -300.0, -100.0, -40.0, -5.0, -1.0, 0.0, 2.0, 4.0])
def test_float32_slope_of_log_ndtr_is_right_to_rounding_in_the_tail(t):
    _, slope = _value_and_slope(log_ndtr, [t], torch.float32)
    # erfcx and one quotient round in float32: a few units of 6e-8, and t itself is exact.
    np.testing.assert_allclose(slope, normal.inverse_mills([t]), rtol=1e-6)


def test_float32_log_ndtr_keeps_its_relative_accuracy_on_both_sides():
    points = np.array([-200.0, -30.0, -3.0, -1.0, -0.5, 0.5, 3.0, 6.0], dtype=np.float32)
    value, _ = _value_and_slope(log_ndtr, points, torch.float32)
    # t/sqrt(2) rounds by 6e-8 of itself, which the upper tail magnifies by t^2 = 36.
    np.testing.assert_allclose(value, scipy_log_ndtr(points.astype(float)), rtol=4e-6)


def test_extreme_arguments_give_finite_slopes():
    value, slope = _value_and_slope(log_ndtr, [-1e6, 50.0, 1e6], torch.float32)
    assert np.isfinite(value).all()
    np.testing.assert_allclose(slope, [1e6, 0.0, 0.0], rtol=1e-6)


def test_second_derivative_of_log_ndtr_is_minus_delta():
    points = np.array([-60.0, -7.3, -0.4, 1.9])
    t = torch.tensor(points, requires_grad=True)
    (slope,) = torch.autograd.grad(log_ndtr(t).sum(), t, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.sum(), t)
    np.testing.assert_allclose(curvature.numpy(), -normal.mills_delta(points), rtol=1e-12)
