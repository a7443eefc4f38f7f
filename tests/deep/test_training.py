"""The training loop against one network after another in plain torch, and the losses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import log_ndtr
from scipy.stats import norm
from torch import nn

from heckesel.data import DataScale, selection_data
from heckesel.deep import losses
from heckesel.deep.training import (
    NetworkConfig,
    Rows,
    assign_folds,
    initial_weights,
    joint_rows,
    member_seed,
    outcome_rows,
    train_members,
    with_folds,
)
from heckesel.errors import DataError

pytestmark = pytest.mark.arithmetic

CONFIG = NetworkConfig(
    hidden=(8, 8), n_members=3, epochs=120, warm_up=40, dtype="float64", device="cpu"
)


def _draw(n=100, seed=0, groups=None):
    rng = np.random.default_rng(seed)
    x, z, u = rng.uniform(-2, 2, (n, 2)), rng.normal(size=n), rng.normal(size=n)
    y = np.sin(x[:, 0]) + 0.5 * x[:, 1] + 0.4 * (0.7 * u + 0.7 * rng.normal(size=n))
    seen = np.where(0.3 - 0.5 * x[:, 0] + z + u > 0, y, np.nan)
    data = selection_data(x, np.column_stack([x, z]), seen, weight=rng.uniform(1, 2, n))
    return data if groups is None else replace(data, groups=groups)


def _rows(data, kind=joint_rows, config=CONFIG, seed=5):
    rows = kind(data, DataScale.of(data))
    if kind is outcome_rows:
        rows = replace(rows, mills=np.abs(rows.y) + 0.1, delta=np.full(len(rows.y), 0.4))
    return with_folds(rows, data, config.folds, seed)


def _plain_loss(loss, net, head, rows, warming_up):
    """The loss from the definition of the model, with torch's own distributions."""
    x, y, weight = (torch.tensor(each) for each in (rows.x, rows.y, rows.weight))
    output = net(x)
    if loss is losses.GAUSSIAN:
        mean, sd = output[:, 0], (0.5 * output[:, 1]).exp()
        return -(weight * torch.distributions.Normal(mean, sd).log_prob(y)).sum()
    if loss is losses.TWO_STEP:
        c, log_sigma = head
        mean = output[:, 0] + c * torch.tensor(rows.mills)
        return -(weight * torch.distributions.Normal(mean, log_sigma.exp()).log_prob(y)).sum()
    gamma, log_sigma, atanh_rho = head[:-2], head[-2], head[-1]
    rho = torch.zeros(()) if warming_up else torch.tanh(atanh_rho)
    e = (y - output[:, 0]) / log_sigma.exp()
    argument = (torch.tensor(rows.w) @ gamma + rho * e) / torch.sqrt(1 - rho**2)
    density = torch.distributions.Normal(0.0, 1.0).log_prob(e) - log_sigma
    out = torch.special.log_ndtr(-torch.tensor(rows.w_unselected) @ gamma)
    inside = weight * (density + torch.special.log_ndtr(argument))
    return -inside.sum() - (torch.tensor(rows.weight_unselected) * out).sum()


def _train_plainly(loss, seed, member, rows, held, config):
    """One network in plain torch: its parameters, and the epoch and loss it was stopped at."""
    sizes = (rows.x.shape[1], *config.hidden, loss.outputs)
    row = torch.tensor(initial_weights(member_seed(seed, member, 0), sizes))
    linears, at = [], 0
    for low, high in zip(sizes, sizes[1:], strict=False):
        matrix = row[at : (at := at + (low + 1) * high)].view(low + 1, high)
        linears.append(nn.Linear(low, high).double())
        linears[-1].weight.data.copy_(matrix[:-1].T)
        linears[-1].bias.data.copy_(matrix[-1])
    modules = [part for linear in linears for part in (linear, nn.SiLU())][:-1]
    net, head = nn.Sequential(*modules), np.zeros(len(loss.scalars))
    if loss.linear:
        gamma = initial_weights(member_seed(seed, member, 1), (rows.w.shape[1] - 1, 1))
        head = np.append(gamma, head)
    free = [nn.Parameter(torch.tensor(value)) for value in head]
    adam = torch.optim.Adam([*net.parameters(), *free], lr=loss.learning_rate, weight_decay=1e-5)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adam, T_max=config.epochs)

    def flat():
        matrices = [torch.vstack([each.weight.T, each.bias]).flatten() for each in linears]
        return torch.cat([*matrices, *(each[None] for each in free)]).detach()

    best = (np.inf, 0, flat())
    for epoch in range(config.epochs):
        adam.zero_grad()
        stack = torch.stack(free) if free else None
        value = _plain_loss(loss, net, stack, rows, loss.frozen and epoch < config.warm_up)
        value.backward()
        if loss.frozen and epoch < config.warm_up:
            free[-1].grad = None
        adam.step()
        cosine.step()
        if held is not None and ((epoch + 1) % 2 == 0 or epoch + 1 == config.epochs):
            with torch.no_grad():
                stack = torch.stack(free) if free else None
                reading = float(_plain_loss(loss, net, stack, held, False))
            best = min(best, (reading, epoch + 1, flat()), key=lambda each: each[0])
            if epoch + 1 - best[1] >= config.patience:
                break
    return (flat(), None, None) if held is None else (best[2], best[1], best[0])


@pytest.mark.parametrize("folds", [None, 3])
@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        (losses.JOINT, joint_rows),
        (losses.TWO_STEP, outcome_rows),
        (losses.GAUSSIAN, outcome_rows),
    ],
    ids=["joint", "two-step", "gaussian"],
)
def test_networks_side_by_side_are_those_trained_one_after_another(loss, kind, folds):
    config = replace(CONFIG, folds=folds, patience=30, warm_up=CONFIG.warm_up if not folds else 0)
    datas = [_draw(100, seed=1), _draw(130, seed=2)]
    tables = [_rows(data, kind, config, seed) for data, seed in zip(datas, (5, 6), strict=True)]
    found = train_members(tables, loss, (5, 6), config, units=130)
    for members, rows, seed in zip(found, tables, (5, 6), strict=True):
        for j in range(3):
            kept, held = rows, None
            if folds:
                kept, held = rows.taken(j, inside=False), rows.taken(j, inside=True)
            parameters, epoch, value = _train_plainly(loss, seed, j, kept, held, config)
            # the same formulas in float64: rounding, magnified by 120 steps
            np.testing.assert_allclose(members.parameters[j], parameters, rtol=0, atol=1e-8)
            if folds:
                assert members.best_epoch[j] == epoch
                np.testing.assert_allclose(members.validation[j], value, rtol=1e-8)


@pytest.mark.parametrize("options", [{}, {"folds": 3}, {"batch_size": 40}, {"folds": 4}], ids=str)
def test_workers_train_the_same_networks_bit_by_bit(options):
    config = replace(CONFIG, n_members=7, epochs=20, dtype="float32", **options)
    rows = _rows(_draw(), config=config)
    one, two = (
        train_members([rows], losses.JOINT, [5], replace(config, n_jobs=jobs), units=100)[0]
        for jobs in (None, 2)
    )
    np.testing.assert_array_equal(one.parameters, two.parameters)
    np.testing.assert_array_equal(one.loss, two.loss)


def test_rho_keeps_its_start_as_long_as_the_warm_up():
    rows, start = _rows(_draw()), np.array([-0.5, 0.0, 0.7])
    options = {"units": 100, "last_of_head": start}
    (held,) = train_members([rows], losses.JOINT, [5], replace(CONFIG, warm_up=120), **options)
    np.testing.assert_array_equal(held.head[:, -1], start)
    (freed,) = train_members([rows], losses.JOINT, [5], replace(CONFIG, warm_up=119), **options)
    assert (freed.head[:, -1] != start).all()


def test_folds_split_selected_and_unselected_units_evenly_and_keep_groups_together():
    data = _draw(200)
    fold = assign_folds(data, 4, seed=5)
    for part in (data.s, ~data.s):
        assert np.ptp(np.bincount(fold[part], minlength=4)) <= 1
    assert (fold != assign_folds(data, 4, seed=6)).any()
    groups = np.arange(200) // 5
    of_groups = assign_folds(replace(data, groups=groups), 4, seed=5)
    assert all(len(set(of_groups[groups == one])) == 1 for one in range(40))
    assert np.ptp(np.bincount(of_groups[data.s])) <= 5
    with pytest.raises(DataError, match="selected units cannot be split into 99 folds"):
        assign_folds(data, 99, seed=0)
    with pytest.raises(DataError, match="groups with selected units cannot be split into 41"):
        assign_folds(replace(data, groups=groups), 41, seed=0)


def _one_row(y, index=None):
    one = torch.ones_like(y)
    none = one[:, :0]
    return Rows(
        x=y[..., None],
        y=y,
        weight=one,
        w=one[..., None],
        w_unselected=none[..., None],
        weight_unselected=none,
    )


def test_the_joint_density_integrates_to_the_selection_probability():
    y = torch.linspace(-12, 12, 81, dtype=torch.float64)[:, None]  # one network, one row each
    index, sigma, atanh_rho = -0.4, 1.3, 0.9
    head = torch.tensor([[index, np.log(sigma), atanh_rho]]).expand(81, -1)
    output = torch.zeros_like(y)[..., None]
    density = np.exp(-losses.joint(output, head, _one_row(y)).numpy())
    # The trapezoid rule is exact to rounding for a smooth density that has died out at both ends.
    np.testing.assert_allclose(np.trapezoid(density, dx=0.3), norm.cdf(index), rtol=1e-9)


def test_the_joint_loss_and_its_slopes_stay_finite_at_rho_one_in_float32():
    y = torch.tensor([[0.3, -4.0, 25.0]])
    for atanh_rho in (-500.0, 19.0, 500.0):
        head = torch.tensor([[0.2, 0.1, atanh_rho]], requires_grad=True)
        value = losses.joint(torch.zeros(1, 3, 1), head, _one_row(y)).sum()
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(head.grad).all()


@pytest.mark.parametrize("on_gpu", [False, True], ids=["erfcx of torch", "erfcx of erfc"])
def test_log_ndtr_and_its_slope_are_right_in_both_tails(on_gpu, monkeypatch):
    if on_gpu:  # the series for GPUs, computed here
        monkeypatch.setattr(torch.Tensor, "device", torch.device("cuda"), raising=False)
    t = torch.tensor([-300.0, -40.0, -5.0, -0.3, 0.0, 2.0, 9.0], dtype=torch.float64)
    t.requires_grad_()
    value = losses.log_ndtr(t)
    (slope,) = torch.autograd.grad(value.sum(), t)
    monkeypatch.undo()
    at = t.detach().numpy()
    np.testing.assert_allclose(value.detach(), log_ndtr(at), rtol=1e-13)
    mills = np.exp(-0.5 * at**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(at))
    np.testing.assert_allclose(slope, mills, rtol=1e-9)  # at t = -300 the logarithms have 1e-11


def test_a_variance_outside_its_range_has_no_slope():
    output = torch.tensor([[[0.0, 6.5], [0.0, -10.5], [0.0, 0.3]]], requires_grad=True)
    losses.gaussian(output, None, _one_row(torch.tensor([[1.0, 2.0, 3.0]]))).sum().backward()
    assert (output.grad[0, :2, 1] == 0).all()
    assert output.grad[0, 2, 1] != 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": ()}, "hidden must list the widths"),
        ({"epochs": 1.5}, "epochs must be a whole number"),
        ({"folds": 1}, "folds must be at least 2"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"learning_rate": -1}, "learning_rate must be a positive number"),
        ({"noise": "varying"}, "needs held-out folds"),
        ({"tails": "auto"}, "needs held-out folds"),
        ({"device": "tpu"}, "device must be"),
        ({"device": "cuda:99"}, "torch finds"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        NetworkConfig(**options)
