"""Losses and their slopes, the network's chain rule, and the initial weights."""

import numpy as np
import pytest
import torch
from scipy.special import log_ndtr
from scipy.stats import norm
from torch import nn

from heckesel.networks.losses import normal as losses
from heckesel.networks.losses.shape import joint_with
from heckesel.networks.training.batches import Batch, with_constant
from heckesel.networks.training.steps import (
    backward,
    forward,
    initial_weights,
    layer_views,
    member_seed,
    parameter_count,
    workspace,
)

pytestmark = pytest.mark.arithmetic

K, N, M, Q = 2, 9, 6, 2
LOSSES = {
    "gaussian": losses.GAUSSIAN,
    "two_step": losses.TWO_STEP,
    "joint": losses.JOINT,
    "joint_varying": losses.JOINT_VARYING,
    "noise_scale": losses.NOISE_SCALE,
    "probit": losses.PROBIT,
    "blind": losses.BLIND,
    "joint_scale": joint_with((0, 2), shape=False),
    "joint_shape": joint_with((), shape=True),
    "joint_shape_and_scale": joint_with((1,), shape=True),
}


def _rows(seed=0, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 1.5, (K, N + M))
    weight /= weight.sum(axis=1, keepdims=True)
    arrays = {
        "x": rng.normal(size=(K, N, 3)),
        "y": rng.normal(size=(K, N)),
        "weight": weight[:, :N],
        "mills": rng.uniform(0.1, 2.0, (K, N)),
        "w": with_ones(rng.normal(size=(K, N, Q))),
        "w_unselected": with_ones(rng.normal(size=(K, M, Q))),
        "weight_unselected": weight[:, N:],
    }
    return Batch(**{name: torch.tensor(array, dtype=dtype) for name, array in arrays.items()})


def with_ones(w):
    return np.concatenate([w, np.ones((*w.shape[:2], 1))], axis=2)


def _point(loss, seed=1):
    rng = np.random.default_rng(seed)
    head = (Q + 1 if loss.linear else 0) + len(loss.scalars)
    output = torch.tensor(rng.normal(0.2, 0.8, (K, N, loss.outputs)))
    return output, torch.tensor(rng.normal(0.1, 0.5, (K, head)))


@pytest.mark.parametrize("name", LOSSES)
def test_slopes_are_the_differences_of_the_loss(name):
    loss, rows = LOSSES[name], _rows()
    output, head = _point(loss)
    _, by_output, by_head = loss.value_and_slopes(output, head, rows)
    step = 1e-6
    for point, slope in ((output, by_output), (head, by_head)):
        assert slope.shape == point.shape
        for at in np.ndindex(*point.shape):
            moved = [point.clone(), point.clone()]
            moved[0][at] += step
            moved[1][at] -= step
            up, down = (
                loss.value_and_slopes(*((p, head) if point is output else (output, p)), rows)[0]
                for p in moved
            )
            difference = ((up - down) / (2 * step)).numpy()
            # Central differences at this step err by 1e-10 and round by 1e-10.
            np.testing.assert_allclose(difference[at[0]], slope[at], rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(np.delete(difference, at[0]), 0.0, atol=0)


def test_joint_loss_is_the_bivariate_normal_likelihood():
    rows = _rows()
    output, head = _point(losses.JOINT)
    value = losses.joint(output, head, rows)[0]
    for j in range(K):
        *gamma, log_sigma, atanh_rho = head[j].tolist()
        sigma, rho = np.exp(log_sigma), np.tanh(atanh_rho)
        index = rows.w[j].numpy() @ gamma
        e = (rows.y[j] - output[j, :, 0]).numpy() / sigma
        # P(u > -index | e) by the conditional normal: a derivation that never forms B.
        given = norm.logsf(-index, loc=rho * e, scale=np.sqrt(1 - rho**2))
        selected = norm.logpdf(e) - np.log(sigma) + given
        unselected = log_ndtr(-rows.w_unselected[j].numpy() @ gamma)
        expected = -(rows.weight[j].numpy() @ selected)
        expected -= rows.weight_unselected[j].numpy() @ unselected
        np.testing.assert_allclose(value[j], expected, rtol=1e-12)


def test_joint_density_of_a_selected_unit_integrates_to_its_selection_probability():
    y = torch.linspace(-12, 12, 81, dtype=torch.float64)[:, None]  # one network, one row each
    one = torch.ones_like(y)
    none = one[:, :0]
    rows = Batch(
        x=y[..., None],
        y=y,
        weight=one,
        w=one[..., None],
        w_unselected=none[..., None],
        weight_unselected=none,
    )
    index, sigma, atanh_rho = -0.4, 1.3, 0.9
    head = torch.tensor([[index, np.log(sigma), atanh_rho]]).expand(81, -1)
    density = np.exp(-losses.joint(torch.zeros_like(y)[..., None], head, rows)[0].numpy())
    # The trapezoid rule is exact to rounding for a smooth density that has died out at both ends.
    np.testing.assert_allclose(np.trapezoid(density, dx=0.3), norm.cdf(index), rtol=1e-9)


def test_blind_loss_is_the_joint_loss_at_rho_zero():
    rows = _rows()
    output, head = _point(losses.BLIND)
    with_rho = torch.cat([head, torch.zeros(K, 1, dtype=torch.float64)], dim=1)
    np.testing.assert_allclose(
        losses.blind(output, head, rows)[0], losses.joint(output, with_rho, rows)[0], rtol=1e-13
    )


def test_a_local_sigma_with_factor_one_is_the_common_one():
    rows = _rows()
    output, head = _point(losses.JOINT)
    flat = torch.cat([output, torch.zeros_like(output)], dim=2)
    for one, two in zip(
        losses.joint(output, head, rows), losses.joint(flat, head, rows), strict=True
    ):
        np.testing.assert_allclose(two[..., :1] if two.dim() == 3 else two, one, rtol=1e-13)


def test_a_local_sigma_is_the_joint_loss_at_that_sigma():
    rows = _rows()
    output, head = _point(losses.JOINT_VARYING)
    log_factor = losses.LOG_NOISE_FACTOR_LIMIT * np.tanh(0.8 / losses.LOG_NOISE_FACTOR_LIMIT)
    output[..., 1] = 0.8
    moved = head.clone()
    moved[:, -2] += log_factor
    np.testing.assert_allclose(
        losses.joint(output, head, rows)[0],
        losses.joint(output[..., :1], moved, rows)[0],
        rtol=1e-13,
    )


def test_joint_loss_and_slopes_stay_finite_at_rho_one_in_float32():
    rows = _rows(dtype=torch.float32)
    output, head = (part.float() for part in _point(losses.JOINT))
    for atanh_rho in (-500.0, 19.0, 500.0):
        head[:, -1] = atanh_rho
        assert all(torch.isfinite(part).all() for part in losses.joint(output, head, rows))


def test_log_variance_outside_its_range_has_no_slope():
    rows = _rows()
    output, head = _point(losses.GAUSSIAN)
    output[:, 0, 1], output[:, 1, 1] = 6.5, -10.5
    _, slope, _ = losses.gaussian(output, head, rows)
    assert (slope[:, :2, 1] == 0).all()
    assert (slope[:, 2:, 1] != 0).all()


def test_networks_and_their_gradients_equal_those_of_torch_modules():
    sizes = (3, 5, 4, 2)
    block = torch.tensor(initial_weights([member_seed(0, j, 0) for j in range(K)], sizes))
    rng = np.random.default_rng(2)
    x = torch.tensor(rng.normal(size=(K, N, 3)))
    slope = torch.tensor(rng.normal(size=(K, N, 2)))
    constant = torch.cat([x, torch.ones(K, N, 1)], dim=2)
    masks = [torch.tensor(rng.integers(0, 2, (K, N, width)) / 0.5) for width in (5, 4)]
    layers, gradient = layer_views(block, sizes), torch.zeros_like(block)
    room = workspace(constant, layers)
    ours = forward(constant, layers, room, masks)
    backward(constant, layers, slope, layer_views(gradient, sizes), room, masks)
    for j in range(K):
        parts = [layer[j].clone().requires_grad_() for layer in layers]
        hidden = x[j]
        for part, mask in zip(parts[:-1], masks, strict=True):
            hidden = nn.functional.silu(hidden @ part[:-1] + part[-1]) * mask[j]
        output = hidden @ parts[-1][:-1] + parts[-1][-1]
        output.backward(slope[j])
        np.testing.assert_allclose(ours[j], output.detach(), rtol=1e-12, atol=1e-14)
        expected = torch.cat([part.grad.flatten() for part in parts])
        np.testing.assert_allclose(gradient[j], expected, rtol=1e-11, atol=1e-14)


def test_initial_weights_are_uniform_within_one_over_root_fan_in():
    sizes = (4, 64, 64, 1)
    seeds = [member_seed(7, j, 0) for j in range(30)]
    block = initial_weights(seeds, sizes)
    assert block.shape == (30, parameter_count(sizes))
    for layer, fan_in in zip(layer_views(torch.tensor(block), sizes), sizes, strict=False):
        scaled = layer.numpy().ravel() * np.sqrt(fan_in)
        assert np.abs(scaled).max() <= 1.0
        # The mean of r uniforms on (-1, 1) has sd 1/sqrt(3 r), that of their squares
        # sqrt(4/45)/sqrt(r); five sds.
        root = np.sqrt(len(scaled))
        assert abs(scaled.mean()) < 5 * np.sqrt(1 / 3) / root
        assert abs((scaled**2).mean() - 1 / 3) < 5 * np.sqrt(4 / 45) / root


def test_a_member_starts_the_same_in_any_batch_and_unlike_the_others():
    sizes = (4, 8, 1)
    five = initial_weights([member_seed(7, j, 0) for j in range(5)], sizes)
    alone = initial_weights([member_seed(7, 3, 0)], sizes)
    np.testing.assert_array_equal(five[3], alone[0])
    assert len(np.unique(five[:, 0])) == 5


def test_with_constant_puts_the_ones_last():
    np.testing.assert_array_equal(with_constant(np.array([[2.0], [3.0]])), [[2, 1], [3, 1]])
