"""The torch twins of log Phi, the inverse Mills ratio and its slope, in both precisions."""

import numpy as np
import pytest
import torch
from scipy.special import erfcx, log_ndtr

from heckesel.math import special as normal
from heckesel.math.special import erfcx_of_erfc, log_ndtr_and_mills, mills_excess

pytestmark = pytest.mark.arithmetic

POINTS = np.concatenate([-np.geomspace(1e4, 1e-3, 60), np.geomspace(1e-3, 30.0, 40)])


def value_and_slopes(points, dtype):
    """log Phi, its slope lambda, and minus the slope of that, delta."""
    t = torch.tensor(points, dtype=dtype)
    value, mills = log_ndtr_and_mills(t)
    return value.numpy(), mills.numpy(), (mills * mills_excess(t, mills)).numpy()


def test_in_float64_all_three_equal_the_numpy_twins():
    value, mills, delta = value_and_slopes(POINTS, torch.float64)
    np.testing.assert_allclose(value, log_ndtr(POINTS), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(mills, normal.inverse_mills(POINTS), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(delta, normal.mills_delta(POINTS), rtol=1e-12, atol=1e-300)


def test_lambda_is_the_slope_of_log_phi_and_minus_delta_that_of_lambda():
    points, step = np.array([-60.0, -7.3, -0.4, 1.9]), 1e-4
    _, mills, delta = value_and_slopes(points, torch.float64)
    up, down = (value_and_slopes(points + way * step, torch.float64) for way in (1, -1))
    # at this step a difference errs by 1e-8, and log Phi(-60) = -1805 rounds by 2e-13
    np.testing.assert_allclose((up[0] - down[0]) / (2 * step), mills, rtol=1e-7)
    np.testing.assert_allclose((up[1] - down[1]) / (2 * step), -delta, rtol=1e-7)


@pytest.mark.parametrize("t", [-1e4, -300.0, -100.0, -40.0, -5.0, -1.0, 0.0, 2.0, 4.0])
def test_float32_lambda_is_right_to_rounding_in_the_tail(t):
    _, mills, _ = value_and_slopes([t], torch.float32)
    # erfcx and one quotient round in float32: a few units of 6e-8, and t itself is exact.
    np.testing.assert_allclose(mills, normal.inverse_mills([t]), rtol=1e-6)


def test_float32_log_phi_keeps_its_relative_accuracy_on_both_sides():
    points = np.array([-200.0, -30.0, -3.0, -1.0, -0.5, 0.5, 3.0, 6.0], dtype=np.float32)
    value, _, _ = value_and_slopes(points, torch.float32)
    # t/sqrt(2) rounds by 6e-8 of itself, which the upper tail magnifies by t^2 = 36.
    np.testing.assert_allclose(value, log_ndtr(points.astype(float)), rtol=4e-6)


def test_the_scaled_complementary_error_function_of_a_gpu_keeps_all_digits():
    points = np.concatenate([np.linspace(0, 60, 20_001), np.geomspace(60, 1e300, 500)])
    found = erfcx_of_erfc(torch.tensor(points)).numpy()
    np.testing.assert_allclose(found, erfcx(points), rtol=2e-15)  # ten roundings
    single = points[points < 1e30].astype(np.float32)
    found = erfcx_of_erfc(torch.tensor(single)).numpy()
    np.testing.assert_allclose(found, erfcx(single.astype(float)), rtol=1e-7)


def test_extreme_arguments_give_finite_slopes():
    value, mills, delta = value_and_slopes([-1e6, 50.0, 1e6], torch.float32)
    assert np.isfinite(value).all()
    np.testing.assert_allclose(mills, [1e6, 0.0, 0.0], rtol=1e-6)
    np.testing.assert_allclose(delta, [1.0, 0.0, 0.0], rtol=1e-6)


def test_no_gradient_flows_through():
    t = torch.tensor([-1.0, 0.5], requires_grad=True)
    assert not any(part.requires_grad for part in log_ndtr_and_mills(t))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float64, 1e-12), (torch.float32, 2e-6)])
def test_the_kernel_for_gpus_equals_the_numpy_twins(dtype, rtol):
    # in float32 an argument above 5 ends in 1 - Phi below its rounding
    points = torch.tensor(POINTS[POINTS < 5.0], dtype=dtype)
    exact = points.double().numpy()
    value, mills = (each.double().cpu().numpy() for each in log_ndtr_and_mills(points.cuda()))
    np.testing.assert_allclose(value, log_ndtr(exact), rtol=rtol)
    np.testing.assert_allclose(mills, normal.inverse_mills(exact), rtol=rtol)
