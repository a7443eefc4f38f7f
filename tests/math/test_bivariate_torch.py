"""The torch twin of the bivariate normal, its slopes, and the loss of a binary outcome."""

import mpmath as mp
import numpy as np
import pytest
import torch

from heckesel.classical.likelihood import binary_units as selected_units
from heckesel.math.bivariate import log_bivariate_cdf
from heckesel.math.bivariate_torch import log_bivariate_cdf_and_slopes
from heckesel.networks.losses.binary import INDEPENDENT_BINARY, JOINT_BINARY
from heckesel.networks.losses.normal import product
from heckesel.networks.training.batches import Batch

pytestmark = pytest.mark.arithmetic

K, N, M, Q = 3, 12, 7, 3


def tensors(*arrays):
    return [torch.as_tensor(np.asarray(array, dtype=float)) for array in arrays]


@pytest.mark.parametrize(("reach", "a_reach"), [(1.5, 0.7), (6.0, 1.5), (20.0, 2.0), (3.0, 3.0)])
def test_value_and_slopes_are_those_of_the_twin(reach, a_reach):
    rng = np.random.default_rng(0)
    h, k = reach * rng.standard_normal((2, 4000))
    a = a_reach * rng.standard_normal(4000)
    value, by_h, by_k, by_a = (
        part.numpy() for part in log_bivariate_cdf_and_slopes(*tensors(h, k, a))
    )
    # 16 nodes leave 1e-7 of the integral; far out the logarithm itself is of the order of reach^2
    np.testing.assert_allclose(value, log_bivariate_cdf(h, k, a), rtol=3e-7, atol=3e-7)
    twin = selected_units(h, k, a, np.ones(4000))
    scale = 1e-6 * (1 + np.abs(value))  # slopes are quotients: they err by what the log errs
    for ours, theirs in zip((by_h, by_k, by_a), twin.gradient, strict=True):
        assert (np.abs(ours - theirs) <= scale * np.abs(theirs) + 1e-300).all()


@pytest.mark.parametrize(
    ("h", "k", "rho"), [(0.4, -1.1, -0.7), (-6.0, -5.0, 0.5), (-9.0, 2.0, -0.9), (3.0, -12.0, 0.8)]
)
def test_the_tails_agree_with_brute_force_in_forty_digits(h, k, rho):
    with mp.workdps(40):
        width = mp.sqrt(1 - mp.mpf(rho) ** 2)

        def density(t):
            return mp.npdf(t) * mp.ncdf((k - rho * t) / width)

        stops = [mp.mpf(h) - step for step in (60, 30, 15, 8, 4, 2, 1, 0.5, 0)]
        expected = float(mp.log(mp.quad(density, stops)))
    found = log_bivariate_cdf_and_slopes(*tensors(h, k, np.arctanh(rho)))[0]
    assert float(found) == pytest.approx(expected, rel=2e-7)


def rows(seed=0):
    rng = np.random.default_rng(seed)
    weight, unselected = rng.uniform(0.2, 1, (K, N)), rng.uniform(0.2, 1, (K, M))
    weight[:, 3] = 0.0  # a row that is left out
    return Batch(
        *tensors(rng.standard_normal((K, N, 2)), rng.choice([-1.0, 1.0], (K, N)), weight),
        w=torch.as_tensor(rng.standard_normal((K, N, Q))),
        w_unselected=torch.as_tensor(rng.standard_normal((K, M, Q))),
        weight_unselected=torch.as_tensor(unselected),
    )


def point(seed=1):
    rng = np.random.default_rng(seed)
    return tensors(rng.standard_normal((K, N, 1)), rng.standard_normal((K, Q + 1)))


@pytest.mark.parametrize("loss", [JOINT_BINARY, INDEPENDENT_BINARY], ids=["joint", "independent"])
def test_slopes_of_the_loss_equal_differences(loss):
    output, head = point()
    _, by_output, by_head = loss.value_and_slopes(output, head, rows())
    step = 1e-5
    for where, slope in ((output, by_output), (head, by_head)):
        for column in range(where.shape[1]):
            keep = where[:, column].clone()
            sides = []
            for way in (1, -1):
                where[:, column] = keep + way * step
                sides.append(loss.value_and_slopes(output, head, rows())[0])
            where[:, column] = keep
            expected = (sides[0] - sides[1]) / (2 * step)
            # nodes do not move smoothly with the ends of the integral: 1e-7 over the step
            np.testing.assert_allclose(slope[:, column].reshape(K), expected, rtol=1e-3, atol=2e-4)


def test_slopes_of_the_loss_equal_automatic_differentiation_of_brute_force():
    """Phi_2 as a sum over 4000 midpoints of phi(t) Phi((k - rho t)/sqrt(1 - rho^2)), t < h."""
    data = rows()
    output, head = (part.requires_grad_() for part in point())
    a, index = head[:, -1:], product(data.w, head[:, :-1])
    share = (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000
    t = index[..., None] - 12.0 * share
    rho = torch.tanh(data.y * a)[..., None]
    inside = ((data.y * output[..., 0])[..., None] - rho * t) / torch.sqrt(1 - rho**2)
    density = torch.exp(-0.5 * t.square()) / np.sqrt(2 * np.pi)
    p = 12.0 / 4000 * (density * torch.special.ndtr(inside)).sum(dim=2)
    outside = torch.special.log_ndtr(-product(data.w_unselected, head[:, :-1]))
    loss = -(data.weight * torch.log(p)).sum(1) - (data.weight_unselected * outside).sum(1)
    loss.sum().backward()
    value, by_output, by_head = JOINT_BINARY.value_and_slopes(output.detach(), head.detach(), data)
    # the midpoint rule errs by (12/4000)^2 times slopes of some tens
    np.testing.assert_allclose(value, loss.detach(), rtol=1e-4)
    np.testing.assert_allclose(by_output, output.grad, atol=1e-4)
    np.testing.assert_allclose(by_head, head.grad, atol=1e-3)


def test_at_rho_zero_both_losses_are_two_probits():
    output, head = point()
    head[:, -1] = 0.0
    joint, apart = (
        loss.value_and_slopes(output, head, rows()) for loss in (JOINT_BINARY, INDEPENDENT_BINARY)
    )
    np.testing.assert_allclose(joint[0], apart[0], rtol=1e-12)
    np.testing.assert_allclose(joint[1], apart[1], rtol=1e-10)
    np.testing.assert_allclose(joint[2][:, :-1], apart[2][:, :-1], rtol=1e-10)


def test_float32_keeps_its_digits_where_classes_are_surprising():
    output, head = point()
    far = [10 * output, torch.cat([4 * head[:, :-1], head[:, -1:]], dim=1)]
    exact = JOINT_BINARY.value_and_slopes(*far, rows())
    single = Batch(**{name: part.float() for name, part in rows().present().items()})
    rough = JOINT_BINARY.value_and_slopes(*(part.float() for part in far), single)
    for ours, theirs in zip(rough, exact, strict=True):
        assert ours.dtype == torch.float32
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
