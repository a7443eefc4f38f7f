"""The likelihood of a selection that may look at the outcome, against what it must agree with."""

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from heckesel.networks.losses.normal import JOINT
from heckesel.networks.losses.outcome_selection import FREE, PLAIN, START_SHAPE, error_shape
from heckesel.networks.training.batches import Batch

K, N, Q = 2, 9, 3
RNG = np.random.default_rng(0)
W = RNG.normal(size=(K, N, Q))
Y, WEIGHT = RNG.normal(size=(K, N)), RNG.uniform(0.5, 1.5, (K, N))
SELECTED = (np.arange(N) % 2 == 0) * np.ones((K, 1))


def _tensors(*arrays):
    return [torch.as_tensor(array, dtype=torch.float64) for array in arrays]


def _rows(selected=SELECTED):
    y, weight, w, s = _tensors(Y, WEIGHT, W, selected)
    return Batch(x=None, y=y, weight=weight, w=w, selected=s)


def _point(loss, seed=1):
    rng = np.random.default_rng(seed)
    head = 0.7 * rng.normal(size=(K, Q + len(loss.scalars)))
    return _tensors(rng.normal(size=(K, N, loss.outputs)), head)


@pytest.mark.parametrize("loss", [PLAIN, FREE], ids=["plain", "free"])
def test_slopes_are_those_of_finite_differences(loss):
    output, head = _point(loss)
    _, by_output, by_head = loss.value_and_slopes(output, head, _rows())
    step = 1e-6
    for values, slopes in ((output, by_output), (head, by_head)):
        flat, found = values.view(-1), []
        for at in range(flat.numel()):
            start, sides = flat[at].item(), []
            for move in (step, -step):
                flat[at] = start + move
                sides.append(loss.value_and_slopes(output, head, _rows())[0].sum().item())
            flat[at] = start
            found.append((sides[0] - sides[1]) / (2 * step))
        np.testing.assert_allclose(slopes.reshape(-1), found, rtol=1e-6, atol=1e-7)


def _split(rows, selected: bool):
    """The rows of one kind, in the layout of the joint likelihood."""
    at = np.flatnonzero(SELECTED[0] == selected)
    return rows.y[:, at], rows.weight[:, at], rows.w[:, at], at


def test_with_theta_zero_the_loss_is_the_joint_likelihood():
    """theta = 0: kappa = rho/(sigma sqrt(1-rho^2)), and gamma that of the probit over that root."""
    output, _ = _point(PLAIN)
    rho, sigma = np.array([0.6, -0.3]), np.array([0.8, 1.7])
    root = np.sqrt(1 - rho**2)
    gamma = RNG.normal(size=(K, Q))
    (head,) = _tensors(
        np.column_stack([gamma / root[:, None], np.log(sigma), rho / (sigma * root), 0 * rho])
    )
    (joint_head,) = _tensors(np.column_stack([gamma, np.log(sigma), np.arctanh(rho)]))
    rows = _rows()
    y, weight, w, at = _split(rows, True)
    _, weight_out, w_out, _ = _split(rows, False)
    split = Batch(x=None, y=y, weight=weight, w=w, w_unselected=w_out, weight_unselected=weight_out)
    ours = PLAIN.value_and_slopes(output, head, rows)[0]
    theirs = JOINT.value_and_slopes(output[:, at], joint_head, split)[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_with_a_linear_f_the_loss_does_not_depend_on_theta():
    """w'gamma + theta f is the same index where f is linear in w, whatever theta."""
    _, head = _point(PLAIN)
    beta = torch.tensor([[0.3, -0.5, 0.2]] * K, dtype=torch.float64)
    f = torch.einsum("knq,kq->kn", torch.as_tensor(W), beta)[..., None]
    moved = head.clone()
    moved[:, -1] += 0.9
    moved[:, :Q] -= 0.9 * beta
    rows = _rows()
    before, after = (PLAIN.value_and_slopes(f, h, rows)[0] for h in (head, moved))
    np.testing.assert_allclose(after, before, rtol=1e-12)
    assert (PLAIN.value_and_slopes(f**2, moved, rows)[0] != before).all()


def test_equal_parts_without_a_shift_are_the_plain_form():
    output, head = _point(PLAIN)
    both = torch.cat([output, torch.zeros_like(output)], dim=2)
    shaped = torch.cat([head, head.new_zeros(K, 9)], dim=1)
    plain = PLAIN.value_and_slopes(output, head, _rows())[0]
    np.testing.assert_allclose(FREE.value_and_slopes(both, shaped, _rows())[0], plain, rtol=1e-12)


def test_an_unselected_unit_has_the_integral_over_outcomes():
    output, head = _point(FREE, seed=4)
    output[..., 1] = 0.0  # sigma is the common one
    nobody = np.zeros((K, N))
    ours = FREE.value_and_slopes(output, head, _rows(nobody))[0]
    share, shift, width = (part.numpy() for part in error_shape(head[:, Q + 3 :])[:3])
    gamma, (log_sigma, kappa, theta) = head[:, :Q].numpy(), head[:, Q : Q + 3].numpy().T
    expected = np.zeros(K)
    for k in range(K):
        for i in range(N):
            f, index = float(output[k, i, 0]), W[k, i] @ gamma[k]

            def missed(e, k=k, f=f, index=index):
                density = np.exp(share[k]) @ norm.pdf(e, shift[k], np.exp(width[k]))
                lean = index + theta[k] * f + kappa[k] * np.exp(log_sigma[k]) * e
                return density * ndtr(-lean)

            expected[k] -= WEIGHT[k, i] * np.log(quad(missed, -30, 30, limit=200)[0])
    np.testing.assert_allclose(ours, expected, rtol=1e-7)


def test_parts_start_close_to_a_standard_normal():
    shape = torch.tensor([START_SHAPE], dtype=torch.float64)
    log_share, shift, log_width = (part.numpy()[0] for part in error_shape(shape)[:3])
    share, width = np.exp(log_share), np.exp(log_width)
    mean = share @ shift
    assert abs(mean) < 1e-9
    assert abs(share @ (width**2 + shift**2) - 1) < 0.1
    points = np.linspace(-3, 3, 61)
    mixed = (share * ndtr((points[:, None] - shift) / width)).sum(axis=1)
    assert np.abs(mixed - ndtr(points)).max() < 0.02
