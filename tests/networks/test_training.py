"""The batched trainer against a plain loop over networks, and the training loop's own promises."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from heckesel.networks.losses import normal as losses
from heckesel.networks.training.batches import Batch, full_batch, stack_datasets, with_constant
from heckesel.networks.training.loop import mini_batches, train
from heckesel.networks.training.steps import (
    INITIAL_WEIGHTS,
    Schedule,
    adam_step,
    evaluate,
    initial_weights,
    layer_views,
    member_seed,
    parameter_count,
    start_adam,
    step_function,
)

pytestmark = pytest.mark.arithmetic

SIZES = (2, 8, 8, 1)
Q = 3


def _joint_dataset(n=60, m=40, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, 2))
    return Batch(
        x=with_constant(x),
        y=np.sin(x[:, 0]) + rng.normal(0, 0.4, n),
        weight=np.full(n, 1 / (n + m)),
        w=with_constant(rng.normal(0.5, 1.0, (n, Q))),
        w_unselected=with_constant(rng.normal(-0.5, 1.0, (m, Q))),
        weight_unselected=np.full(m, 1 / (n + m)),
    )


def _two_step_dataset(n=60, seed=3):
    dataset = _joint_dataset(n, seed=seed)
    mills = np.random.default_rng(seed + 1).uniform(0.1, 2.0, n)
    return Batch(dataset.x, dataset.y, np.full(n, 1 / n), mills)


def _start(loss, k=3, seed=11):
    seeds = [member_seed(seed, j, INITIAL_WEIGHTS) for j in range(k)]
    parts = [initial_weights(seeds, SIZES), np.zeros((k, len(loss.scalars)))]
    if loss.linear:
        parts.insert(1, initial_weights(seeds, (Q, 1)))
    return torch.tensor(np.hstack(parts))


def _step(loss, sizes=SIZES):
    return partial(step_function, sizes=sizes, loss=loss)


def _stacked(*datasets):
    return stack_datasets(datasets, dtype=torch.float64, device=torch.device("cpu"))


class PlainModel(nn.Module):
    """One network from one row of the block, its head as one more parameter each."""

    def __init__(self, row, head_sizes):
        super().__init__()
        linears = [nn.Linear(a, b).double() for a, b in zip(SIZES, SIZES[1:], strict=False)]
        for linear, matrix in zip(linears, layer_views(row[None], SIZES), strict=True):
            linear.weight.data.copy_(matrix[0, :-1].T)
            linear.bias.data.copy_(matrix[0, -1])
        self.net = nn.Sequential(linears[0], nn.SiLU(), linears[1], nn.SiLU(), linears[2])
        head = row[parameter_count(SIZES) :].split(head_sizes)
        self.head = nn.ParameterList([nn.Parameter(part.clone()) for part in head])

    def flat(self):
        matrices = [torch.vstack([part.weight.T, part.bias]).flatten() for part in self.net[::2]]
        return torch.cat([*matrices, *self.head]).detach()


def _plain_joint(model, dataset, warming_up):
    gamma, log_sigma, atanh_rho = model.head
    # A constant instead of the parameter: no gradient reaches it, so Adam leaves it alone.
    rho = torch.zeros(1) if warming_up else torch.tanh(atanh_rho)
    x, y, w, w_unselected = map(
        torch.tensor, (dataset.x, dataset.y, dataset.w, dataset.w_unselected)
    )
    e = (y - model.net(x[:, :-1])[:, 0]) / log_sigma.exp()
    argument = (w @ gamma + rho * e) / torch.sqrt(1 - rho**2)
    log_density = torch.distributions.Normal(0.0, 1.0).log_prob(e) - log_sigma
    selected = log_density + torch.special.log_ndtr(argument)
    return -torch.cat([selected, torch.special.log_ndtr(-w_unselected @ gamma)]).mean()


def _plain_two_step(model, dataset, warming_up):
    c, log_sigma = model.head
    x, y, mills = map(torch.tensor, (dataset.x, dataset.y, dataset.mills))
    mean = model.net(x[:, :-1])[:, 0] + c * mills
    return -torch.distributions.Normal(mean, log_sigma.exp()).log_prob(y).mean()


def _train_plainly(model, plain_loss, dataset, epochs, warm_up):
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=epochs)
    for epoch in range(epochs):
        optimiser.zero_grad()
        loss = plain_loss(model, dataset, epoch < warm_up)
        loss.backward()
        optimiser.step()
        schedule.step()
    return model.flat(), loss.detach()


@pytest.mark.parametrize(
    ("loss", "plain_loss", "dataset", "head_sizes"),
    [
        (losses.TWO_STEP, _plain_two_step, _two_step_dataset(), (1, 1)),
        (losses.JOINT, _plain_joint, _joint_dataset(), (Q + 1, 1, 1)),
    ],
    ids=["two_step", "joint"],
)
def test_batched_training_equals_a_plain_loop_over_networks(loss, plain_loss, dataset, head_sizes):
    epochs, warm_up = 300, 100
    start = _start(loss)
    schedule = Schedule(epochs, 1e-2, warm_up=warm_up, frozen=int(loss.frozen))
    ours = train(start, _step(loss), full_batch(_stacked(dataset), 3), schedule)
    for j, row in enumerate(start):
        model = PlainModel(row, head_sizes)
        parameters, value = _train_plainly(model, plain_loss, dataset, epochs, warm_up)
        # The same formulas in float64: what remains is rounding, magnified by 300 steps.
        np.testing.assert_allclose(ours.parameters[j], parameters, rtol=0, atol=1e-8)
        np.testing.assert_allclose(ours.loss[j], value, rtol=0, atol=1e-8)


def test_adam_on_the_block_equals_torch_adam_with_a_late_column():
    rng = np.random.default_rng(0)
    schedule = Schedule(epochs=20, learning_rate=0.05, weight_decay=0.1, warm_up=5, frozen=2)
    parameters = torch.tensor(rng.normal(size=(3, 7)))
    free, late = (nn.Parameter(part.clone()) for part in (parameters[:, :5], parameters[:, 5:]))
    optimiser = torch.optim.Adam([free, late], lr=0.05, weight_decay=0.1)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=20)
    state = start_adam(parameters, schedule, steps=2)
    for epoch in range(20):
        for gradient in torch.tensor(rng.normal(size=(2, 3, 7))):
            adam_step(parameters, gradient + 0.1 * parameters, state)
            free.grad, late.grad = gradient[:, :5], gradient[:, 5:] if epoch >= 5 else None
            optimiser.step()
        cosine.step()
    np.testing.assert_allclose(parameters[:, :5], free.detach(), rtol=1e-12)
    np.testing.assert_allclose(parameters[:, 5:], late.detach(), rtol=1e-12)


def test_a_network_is_the_same_alone_and_beside_longer_datasets():
    datasets = [_joint_dataset(50, 20, seed=1), _joint_dataset(90, 70, seed=2)]
    schedule = Schedule(60, 1e-2, warm_up=10, frozen=1)
    start = torch.vstack([_start(losses.JOINT, 2, seed=1), _start(losses.JOINT, 2, seed=2)])
    both = train(start, _step(losses.JOINT), full_batch(_stacked(*datasets), 2), schedule)
    alone = train(start[:2], _step(losses.JOINT), full_batch(_stacked(datasets[0]), 2), schedule)
    # Padding changes the order of sums and nothing else.
    np.testing.assert_allclose(both.parameters[:2], alone.parameters, rtol=0, atol=1e-9)


def test_the_warm_up_keeps_rho_at_its_start():
    start = _start(losses.JOINT)
    start[:, -1] = torch.tensor([-0.5, 0.0, 0.7])
    schedule = Schedule(15, 1e-2, warm_up=15, frozen=1)
    trained = train(start, _step(losses.JOINT), full_batch(_stacked(_joint_dataset()), 3), schedule)
    np.testing.assert_array_equal(trained.parameters[:, -1], start[:, -1])
    assert (trained.parameters[:, :-1] != start[:, :-1]).all()


def test_mini_batches_visit_every_row_once_and_add_up_to_the_full_loss():
    datasets = [_joint_dataset(50, 20, seed=1), _joint_dataset(31, 44, seed=2)]
    stacked, start = _stacked(*datasets), _start(losses.JOINT, k=4)
    full = evaluate(start, SIZES, losses.JOINT, full_batch(stacked, 2).batches(0)[0])
    source = mini_batches(datasets, stacked, [5, 6], 2, steps=7)
    batches = list(source.batches(3))
    assert len(batches) == source.steps == 7
    assert len({tuple(values.shape for values in b.present().values()) for b in batches}) == 1
    parts = torch.stack([evaluate(start, SIZES, losses.JOINT, rows) for rows in batches])
    np.testing.assert_allclose(parts.mean(dim=0), full, rtol=1e-12)
    seen = np.sort(np.concatenate([b.y[2][b.weight[2] > 0] for b in batches]))
    np.testing.assert_array_equal(seen, np.sort(datasets[1].y))


def test_mini_batches_depend_on_seed_member_and_epoch_only():
    datasets = [_two_step_dataset(40, seed=1), _two_step_dataset(40, seed=2)]
    both = mini_batches(datasets, _stacked(*datasets), [5, 6], 2, steps=4)
    alone = mini_batches(datasets[1:], _stacked(datasets[1]), [6], 2, steps=4)
    for rows, own in zip(both.batches(1), alone.batches(1), strict=True):
        np.testing.assert_array_equal(rows.y[2:], own.y)
    first, second = (next(iter(alone.batches(epoch))).y for epoch in (0, 1))
    assert not torch.equal(first, second)
    assert not torch.equal(first[0], first[1])


def test_early_stopping_keeps_each_networks_best_reading():
    source = full_batch(_stacked(_two_step_dataset()), 3)
    readings = []

    def validation(parameters):
        # Network 0 improves always, 1 worsens from the third reading, 2 worsens and recovers
        # long after its patience has run out.
        turn = len(readings) + 1
        readings.append(parameters.clone())
        script = [-turn, abs(turn - 3.0), {1: 0.0, 9: -1.0}.get(turn, 1.0)]
        return torch.tensor(script, dtype=torch.float64)

    schedule = Schedule(20, 1e-2)
    trained = train(
        _start(losses.TWO_STEP),
        _step(losses.TWO_STEP),
        source,
        schedule,
        validation=validation,
        every=2,
        patience=8,
    )
    np.testing.assert_array_equal(trained.best_epoch, [20, 6, 2])
    np.testing.assert_array_equal(trained.validation, [-10.0, 0.0, 0.0])
    for j, reading in enumerate([9, 2, 0]):
        np.testing.assert_array_equal(trained.parameters[j], readings[reading][j])


def test_the_last_network_in_training_ends_as_if_all_had_gone_on():
    """In float32, as networks are trained, and on rows that fill whole vectors."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(4096, 3)), rng.normal(size=4096)
    dataset = Batch(x=np.column_stack([x, np.ones(4096)]), y=y, weight=np.full(4096, 1 / 4096))
    source = full_batch(
        stack_datasets([dataset], dtype=torch.float32, device=torch.device("cpu")), 5
    )
    sizes, loss = (3, 32, 32, 2), losses.GAUSSIAN
    weights = initial_weights([member_seed(1, j, INITIAL_WEIGHTS) for j in range(5)], sizes)
    start = torch.as_tensor(weights, dtype=torch.float32)

    def fall_but_for_the_last(parameters):
        readings.append(0)
        return torch.tensor([0.0, 0, 0, 0, -len(readings)])

    readings: list = []
    short = train(
        start,
        _step(loss, sizes),
        source,
        Schedule(30, 1e-2),
        validation=fall_but_for_the_last,
        every=2,
        patience=4,
    )
    whole = train(start, _step(loss, sizes), source, Schedule(30, 1e-2))
    assert short.best_epoch[-1] == 30
    assert (short.best_epoch[:-1] == 2).all()
    np.testing.assert_array_equal(short.parameters[-1], whole.parameters[-1])


def test_training_ends_when_every_network_is_done_and_reports_progress():
    calls = []
    source = full_batch(_stacked(_two_step_dataset()), 2)
    train(
        _start(losses.TWO_STEP, k=2),
        _step(losses.TWO_STEP),
        source,
        Schedule(100, 1e-2),
        validation=lambda parameters: torch.ones(2, dtype=torch.float64),
        every=5,
        patience=10,
        progress=lambda epoch, epochs: calls.append((epoch, epochs)),
    )
    assert calls == [(epoch, 100) for epoch in range(1, 16)]
