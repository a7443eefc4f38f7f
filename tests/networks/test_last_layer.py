"""Last layers of members as columns, rotated to the few axes with information."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heckesel.networks.rho.last_layer import LEAST_INFORMATION, last_layers, side_by_side
from heckesel.networks.rho.linear_joint import bases_of, conditional_optima, start_at
from heckesel.networks.training.batches import Batch
from heckesel.networks.training.ensemble_training import Members
from heckesel.networks.training.steps import parameter_count

SIZES = (2, 6, 1)


def drawn(k, *, n=300, seed=0):
    """k networks of random weights, and rows with weights that add up to one."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(n, 2)), rng.normal(size=n)
    s = z + rng.normal(size=n) > 0
    w = np.column_stack([x, z, np.ones(n)])
    y = np.tanh(x[:, 0]) + 0.3 * rng.normal(size=n)
    weight = rng.integers(1, 3, size=n) / n
    rows = Batch(
        x=np.column_stack([x, np.ones(n)])[s],
        y=y[s],
        weight=weight[s],
        w=w[s],
        w_unselected=w[~s],
        weight_unselected=weight[~s],
    )
    theta = rng.normal(size=(k, parameter_count(SIZES)))
    return Members(SIZES, theta, np.zeros(k)), rows


def test_members_of_a_set_stand_side_by_side():
    members, rows = drawn(5)
    x = rows.x[:4, :-1]
    activations = members.last_layer(x)
    found = side_by_side(activations, 2)
    assert found.shape == (2, 4, 18)
    np.testing.assert_array_equal(found[0, :, 6:12], activations[2, :, :-1])
    np.testing.assert_array_equal(found[1, :, 6:12], activations[3, :, :-1])
    np.testing.assert_array_equal(found[1, :, 12:], 0)  # it has two members, the other three


def test_every_column_but_the_constant_has_the_ridge():
    members, rows = drawn(4)
    (basis,) = last_layers([members], [rows], [300.0], 2)
    columns = basis.columns(rows.x[:, :-1])
    assert basis.membership.shape == (columns.shape[2], 1)
    np.testing.assert_array_equal(basis.membership[:, 0] == 0, (columns == 1).all(axis=(0, 1)))


def test_axes_are_orthogonal_and_hold_all_information_but_a_negligible_part():
    members, rows = drawn(4)
    (basis,) = last_layers([members], [rows], [300.0], 2)
    for part, one in zip(
        side_by_side(members.last_layer(rows.x[:, :-1]), 2), basis.axes, strict=True
    ):
        used = one[:, one.any(axis=0)]
        np.testing.assert_allclose(used.T @ used, np.eye(used.shape[1]), atol=1e-12)
        lost = part - part @ used @ used.T
        by_axis = np.linalg.eigvalsh(lost.T @ (lost * 300 * rows.weight[:, None]))
        assert by_axis.max() <= LEAST_INFORMATION


@pytest.mark.parametrize("rho", [-0.8, 0.5])
def test_a_ridge_is_invariant_under_rotation(rho):
    """The fit at a fixed rho and ridge, in activations as they are and in the columns."""
    members, rows = drawn(4)
    (basis,) = last_layers([members], [rows], [300.0], 2)
    plain = side_by_side(members.last_layer(rows.x[:, :-1]), 2)
    plain = np.concatenate([plain, np.ones((*plain.shape[:2], 1))], axis=2)
    means = []
    for columns in (plain, basis.columns(rows.x[:, :-1])):
        ridged = np.ones((columns.shape[2], 1))
        ridged[-1] = 0.0
        models = [replace(rows, x=one) for one in columns]
        bases = bases_of(models, [300.0] * 2, ridged, torch.device("cpu"))
        a = torch.full((2,), np.arctanh(rho), dtype=torch.float64)
        v = conditional_optima(bases, a, *start_at(bases), updates=0).v.numpy()
        means.append(np.einsum("kmh,kh->km", columns, v[:, 4:-1]) / v[:, -1:])
    # at a ridge of one the dropped axes move a mean by at most their share of what is known
    np.testing.assert_allclose(means[1], means[0], atol=2e-4)


def test_datasets_have_columns_of_one_width_and_separate_axes():
    pairs = [drawn(4, seed=seed, n=n) for seed, n in ((0, 300), (1, 40))]
    together = last_layers(*zip(*pairs, strict=True), [300.0, 40.0], 2)
    widths = {basis.axes.shape[2] for basis in together}
    assert len(widths) == 1
    for (members, rows), basis, total in zip(pairs, together, (300.0, 40.0), strict=True):
        (alone,) = last_layers([members], [rows], [total], 2)
        h = alone.axes.shape[2]
        np.testing.assert_array_equal(basis.axes[:, :, :h], alone.axes)
        assert not basis.axes[:, :, h:].any()
