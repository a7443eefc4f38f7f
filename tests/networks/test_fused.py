"""The fused kernels of a training step against the layered one, and in double precision."""

import numpy as np
import pytest
import torch

from heckesel.networks.losses.normal import GAUSSIAN, JOINT, TWO_STEP
from heckesel.networks.training import steps
from heckesel.networks.training.batches import Batch, Source, with_constant
from heckesel.networks.training.dropout import dropout_masks
from heckesel.networks.training.steps import (
    Schedule,
    evaluate,
    initial_weights,
    is_fused,
    layered_step,
    start_adam,
    step_function,
)

K, N, P, STEPS = 5, 333, 3, 4
SCHEDULE = Schedule(40, 1e-2, weight_decay=1e-3, warm_up=2, frozen=1)
on_a_card = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.version.hip is not None, reason="there is no CUDA card"
)


def _rows(loss) -> Batch:
    rng = np.random.default_rng(0)
    joint = {name: with_constant(rng.normal(size=(N, P))) for name in ("w", "w_unselected")}
    rows = Batch(
        x=with_constant(rng.normal(size=(N, P))),
        y=rng.normal(size=N),
        weight=np.full(N, 0.5 / N),
        mills=np.abs(rng.normal(size=N)),
        **(joint | {"weight_unselected": np.full(N, 0.5 / N)} if loss.linear else {}),
    )
    return rows.map(lambda values: torch.as_tensor(np.repeat(values[None], K, axis=0)))


def _start(loss, sizes):
    seeds = [np.random.SeedSequence(j) for j in range(K)]
    head = (P + 1 if loss.linear else 0) + len(loss.scalars)
    heads = np.random.default_rng(1).normal(scale=0.1, size=(K, head))
    return torch.as_tensor(np.hstack([initial_weights(seeds, sizes), heads]))


def _trained(make, loss, sizes, dtype, masks=None, k=K):
    """Loss before each step and the parameters after the last one."""
    rows = _rows(loss).map(lambda values: values[:k].to("cuda", dtype))
    parameters = _start(loss, sizes)[:k].to("cuda", dtype)
    state = start_adam(parameters, SCHEDULE, 1)
    if masks is not None:
        masks = dropout_masks(np.arange(k), N, sizes[1:3], 0.1, like=parameters)
    step = make(parameters, rows, state, sizes=sizes, loss=loss, decay=1e-3, masks=masks)
    values = [step(rows).double() for _ in range(STEPS)]
    return torch.stack(values).cpu().numpy(), parameters.double().cpu().numpy()


def _fused(*arguments, **options):
    from heckesel.networks.training.fused import fused_step

    return fused_step(*arguments, **options)


@on_a_card
@pytest.mark.parametrize("hidden", [(64, 64), (16, 32)])
@pytest.mark.parametrize("loss", [TWO_STEP, GAUSSIAN, JOINT], ids=["two-step", "gaussian", "joint"])
def test_a_fused_step_is_as_precise_as_float32(loss, hidden):
    sizes = (P, *hidden, loss.outputs)
    exact, there = _trained(layered_step, loss, sizes, torch.float64)
    values, parameters = _trained(_fused, loss, sizes, torch.float32)
    np.testing.assert_allclose(values, exact, rtol=1e-5, atol=1e-6)
    # Adam divides by the size of the gradient, so a gradient close to zero moves its parameter by
    # up to the learning rate in either direction.
    assert np.median(np.abs(parameters - there)) < 1e-6
    assert np.abs(parameters - there).max() < STEPS * SCHEDULE.learning_rate


@on_a_card
def test_fused_steps_drop_the_units_that_layered_steps_drop():
    sizes = (P, 64, 64, 1)
    exact, _ = _trained(layered_step, TWO_STEP, sizes, torch.float64, masks=True)
    values, _ = _trained(_fused, TWO_STEP, sizes, torch.float32, masks=True)
    np.testing.assert_allclose(values, exact, rtol=1e-5)
    without, _ = _trained(layered_step, TWO_STEP, sizes, torch.float64)
    assert np.abs(without - exact).max() > 1e-3


@on_a_card
def test_a_network_does_not_depend_on_its_neighbours_on_a_card():
    sizes = (P, 64, 64, 1)
    (_, alone), (_, together) = (
        _trained(_fused, TWO_STEP, sizes, torch.float32, k=k) for k in (2, K)
    )
    np.testing.assert_array_equal(alone, together[:2])


@on_a_card
def test_training_and_validation_take_the_fused_kernels(monkeypatch):
    sizes, rows = (P, 64, 64, 1), _rows(TWO_STEP).map(lambda values: values.float().cuda())
    parameters = _start(TWO_STEP, sizes).float().cuda()
    assert not is_fused(parameters, sizes, rows)
    monkeypatch.setattr(steps, "FUSED_ROWS", K * N)
    assert is_fused(parameters, sizes, rows)
    assert not is_fused(parameters, (P, 65, 64, 1), rows)
    there = evaluate(parameters.double(), sizes, TWO_STEP, rows.map(torch.Tensor.double))
    found = evaluate(parameters, sizes, TWO_STEP, rows)
    np.testing.assert_allclose(found.cpu(), there.cpu(), rtol=1e-5)
    state = start_adam(parameters, SCHEDULE, 1)
    source = Source(1, lambda epoch: (rows,))
    step = step_function(parameters, source, SCHEDULE, state, sizes=sizes, loss=TWO_STEP)
    np.testing.assert_allclose(step(rows).cpu(), there.cpu(), rtol=1e-5)
