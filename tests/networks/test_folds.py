"""Members on folds: which rows each sees, when it stops, and how the noise is estimated."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from heckesel.data import selection_data
from heckesel.errors import DataError
from heckesel.estimators.deep_ensemble_regressor import DeepEnsembleRegressor
from heckesel.estimators.deep_heckman_regressor import DeepHeckmanRegressor
from heckesel.math.special import mills_delta
from heckesel.methods import fit_one, load_method
from heckesel.networks.ensembles.noise_calibration import (
    Pairs,
    calibrated_level,
    joint_loss,
    normal_loss,
    own_variance,
    pairs_of,
    two_step_loss,
)
from heckesel.networks.losses.normal import GAUSSIAN, JOINT, joint
from heckesel.networks.training.batches import (
    Batch,
    assign_folds,
    data_scale_of,
    full_batch,
    held_out,
    hold_out_own_fold,
    joint_rows,
    outcome_rows,
    stack_datasets,
    with_folds,
)
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import schedule_of, start_of, train_datasets
from heckesel.networks.training.loop import mini_batches, train
from heckesel.networks.training.steps import evaluate, step_function

NETWORK = NetworkConfig(
    hidden=(16,), n_members=4, epochs=150, dtype="float64", device="cpu", folds=4, patience=40
)
ON_FOLDS = ["heckman_two_step", "heckman_joint", "blind_two_head", "deep_ensemble"]
NEW = np.random.default_rng(9).uniform(-2, 2, (7, 2))


def _draw(n=200, seed=0, rho=0.7, sigma=lambda x: 0.4):
    rng = np.random.default_rng(seed)
    x, z, u = rng.uniform(-2, 2, (n, 2)), rng.normal(size=n), rng.normal(size=n)
    noise = rho * u + np.sqrt(1 - rho**2) * rng.normal(size=n)
    y = np.sin(x[:, 0]) + 0.5 * x[:, 1] + sigma(x) * noise
    seen = np.where(0.3 - 0.5 * x[:, 0] + z + u > 0, y, np.nan)
    return selection_data(x, np.column_stack([x, z]), seen)


def _dataset(data, rows=joint_rows, folds=4, seed=5):
    return with_folds(rows(data, data_scale_of(data, True)), data, folds, seed)


def test_selected_and_unselected_units_are_split_evenly_and_by_seed_alone():
    data = _draw()
    fold = assign_folds(data, 4, seed=5)
    for part in (data.s, ~data.s):
        counts = np.bincount(fold[part], minlength=4)
        assert np.ptp(counts) <= 1
    np.testing.assert_array_equal(fold, assign_folds(data, 4, seed=5))
    assert (fold != assign_folds(data, 4, seed=6)).any()


def test_more_folds_than_the_selected_units_fill_are_refused():
    data = _draw(20)
    with pytest.raises(DataError, match=r"selected units cannot be split into 9 folds"):
        assign_folds(data, 9, seed=0)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_network_never_sees_its_own_fold_and_is_evaluated_on_nothing_else(steps):
    data = _draw()
    dataset, members, folds = _dataset(data), 6, 4
    stacked = stack_datasets([dataset], dtype=torch.float64, device=torch.device("cpu"))
    source = full_batch(stacked, members)
    if steps > 1:
        source = mini_batches([dataset], stacked, [5], members, steps)
    training, own = hold_out_own_fold(source, stacked, members, folds)
    batches = list(training.batches(0))
    for j in range(members):
        seen = [y for b in batches for y in b.y[j][b.weight[j] > 0].tolist()]
        assert sorted(seen) == sorted(dataset.y[dataset.fold != j % folds])
        assert sorted(own.y[j][own.weight[j] > 0].tolist()) == sorted(
            dataset.y[dataset.fold == j % folds]
        )
    for rows, count in ((batches, steps), ([own], 1)):
        total = sum(b.weight.sum(dim=1) + b.weight_unselected.sum(dim=1) for b in rows) / count
        np.testing.assert_allclose(total, 1.0, rtol=1e-12)


def _trained_apart(seen, unseen, loss):
    """All members on the rows of one dataset, each stopped by those of another."""
    sizes = (seen.x.shape[1] - 1, *NETWORK.hidden, loss.outputs)
    start = start_of(seen, sizes, loss, [5], range(4), {}, None)
    source, others = (
        full_batch(stack_datasets([dataset], dtype=torch.float64, device=torch.device("cpu")), 4)
        for dataset in (seen, unseen)
    )
    (rows,) = others.batches(0)
    return train(
        torch.as_tensor(start),
        partial(step_function, sizes=sizes, loss=loss),
        source,
        schedule_of(NETWORK, loss),
        validation=lambda parameters: evaluate(parameters, sizes, loss, rows),
        every=2,
        patience=NETWORK.patience,
    )


@pytest.mark.parametrize(("loss", "rows"), [(GAUSSIAN, outcome_rows), (JOINT, joint_rows)])
def test_members_on_folds_are_those_trained_without_and_stopped_by_that_fold(loss, rows):
    data = _draw()
    (together,) = train_datasets(
        [_dataset(data, rows)], loss=loss, seeds=[5], config=NETWORK, units=data.n
    )
    scaling, fold = data_scale_of(data, True), assign_folds(data, 4, seed=5)
    for j in range(4):
        parts = []
        for keep in (fold != j, fold == j):
            part = replace(
                data, **{n: getattr(data, n)[keep] for n in ("x", "w", "s", "y", "weight")}
            )
            parts.append(rows(part, scaling))
        alone = _trained_apart(*parts, loss)
        assert together.best_epoch[j] == alone.best_epoch[j]
        # Rows that weigh nothing change the order of sums; 150 steps magnify rounding.
        np.testing.assert_allclose(together.parameters[j], alone.parameters[j], rtol=0, atol=1e-8)
        np.testing.assert_allclose(together.validation[j], alone.validation[j], rtol=1e-8)


def _simulated(k, seed, sigma=0.7, tau=0.3, n=4000, fit=0.0):
    """Outcomes, members that err on their own, and who did without which row; members that saw
    a row are moved towards its noise and towards one another by `fit`."""
    rng = np.random.default_rng(seed)
    truth, noise = rng.normal(size=n), rng.normal(0, sigma, n)
    out = held_out(rng.integers(0, 5, n), k, 5)
    own = rng.normal(0, tau, (k, n))
    mean = truth + np.where(out, own, (1 - fit) * own + fit * noise)
    return truth + noise, mean, out


@pytest.mark.parametrize("k", [5, 10])
def test_the_held_out_variance_and_that_between_members_add_up_to_the_ensembles_error(k):
    y, mean, out = _simulated(k, seed=1)
    pairs = pairs_of(mean, np.ones_like(mean), np.full(len(y), 1 / len(y)), out)
    residual = y[pairs.row] - pairs.mean
    level, value = calibrated_level(
        lambda s: normal_loss(residual, s**2 + pairs.doubt), pairs.weight
    )
    predicted = level**2 + mean.var(axis=0).mean()
    # Squares of 4000 residuals: three sds of their mean are 3 sqrt(2/4000) .58 = .04.
    assert abs(predicted - np.mean((y - mean.mean(axis=0)) ** 2)) < 0.05
    plain = np.mean(residual**2) + mean.var(axis=0).mean()
    assert plain > predicted + 0.1  # counts the members' own error twice
    assert value < float(pairs.weight @ normal_loss(residual, (level + 0.05) ** 2 + pairs.doubt))


def test_members_that_held_out_a_row_give_the_variance_between_members():
    _, mean, out = _simulated(10, seed=2, tau=0.5, fit=0.5)
    weight = np.full(mean.shape[1], 1 / mean.shape[1])
    own = own_variance(mean, out, weight)
    # 4000 variances with one degree of freedom: three sds of the mean are .25 * 3 sqrt(2/4000).
    assert abs(own.mean() - 0.25) < 0.02
    assert mean.var(axis=0, ddof=1).mean() < 0.2  # those that saw the row stand closer


def test_two_step_loss_uses_the_variance_that_selection_leaves():
    index = np.array([-1.2, 0.1, 0.9])
    spread, doubt = np.array([0.5, 1.0, 2.0]), np.array([0.0, 0.1, 0.2])
    at = np.arange(3)
    pairs = Pairs(np.zeros(3), spread, doubt, np.full(3, 1 / 3), at, at)
    c, level = 0.6, 0.8
    found = two_step_loss(np.zeros(3), level, c, mills_delta(index), pairs)
    variance = (level * spread) ** 2 - (c * spread) ** 2 * mills_delta(index) + doubt
    np.testing.assert_allclose(found, 0.5 * np.log(2 * np.pi * variance), rtol=1e-12)


def test_joint_loss_without_epistemic_variance_is_the_one_that_networks_minimise():
    rng = np.random.default_rng(2)
    y, f, index, g = rng.normal(size=(4, 5))
    level, rho = 0.7, -0.4
    at = np.arange(5)
    pairs = Pairs(f, np.exp(g), np.zeros(5), np.full(5, 0.2), at, at)
    found = joint_loss(y, level, rho, index, pairs)
    for i in range(5):
        one = torch.ones(1, 1, dtype=torch.float64)
        rows = Batch(
            x=one[..., None],
            y=one * y[i],
            weight=one,
            w=one[..., None],
            w_unselected=one[:, :0, None],
            weight_unselected=one[:, :0],
        )
        head = torch.tensor([[index[i], np.log(level) + g[i], np.arctanh(rho)]])
        expected = joint(one[..., None] * f[i], head, rows)[0]
        np.testing.assert_allclose(found[i], expected[0], rtol=1e-12)


@pytest.mark.parametrize("name", ON_FOLDS)
def test_methods_on_folds_answer_in_one_batch_as_alone(name):
    datas = [_draw(200, seed=0), _draw(150, seed=1)]
    method, network = load_method(name), replace(NETWORK, n_members=3)  # fewer than folds
    together = method.fit_many(datas, seeds=[5, 6], config=network)
    for fitted, data, seed in zip(together, datas, [5, 6], strict=True):
        alone = fit_one(method, data, seed=seed, config=network)
        assert fitted.info.best_epoch == alone.info.best_epoch
        for part in ("mean", "epistemic", "aleatoric"):
            one, other = (getattr(f.predict(NEW), part) for f in (fitted, alone))
            # Padding to the longer dataset changes the order of sums; 150 steps magnify rounding.
            np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("name", ["heckman_two_step", "heckman_joint"])
def test_varying_noise_is_chosen_only_if_noise_varies(name):
    network = replace(NETWORK, noise="auto", n_members=5, folds=5, epochs=300)
    steep = _draw(1500, sigma=lambda x: 0.4 * np.exp(0.4 * x[:, 1]))
    flat = _draw(1500, sigma=lambda x: 0.4)
    varying, constant = load_method(name).fit_many([steep, flat], seeds=[1, 2], config=network)
    assert varying.info.noise == "varying"
    losses = varying.info.held_out_losses
    assert losses["varying"] < losses["constant"] - 0.05
    ends = np.array([[0.0, -1.5], [0.0, 1.5]])
    sigma = np.sqrt(varying.predict(ends).aleatoric)
    truth = 0.4 * np.exp(0.4 * ends[:, 1])
    # About 100 rows stand behind each end, and the factor is shrunk towards one.
    np.testing.assert_allclose(sigma, truth, rtol=0.45)
    assert sigma[1] > 2 * sigma[0]
    assert abs(np.mean(varying.info.rho) - 0.7) < 0.25
    over_units = varying.predict(steep.x).aleatoric.mean()
    assert np.mean(np.square(varying.info.sigma)) == pytest.approx(over_units)
    assert np.mean(np.square(varying.sigma)) != pytest.approx(over_units, rel=1e-3)
    sigma = np.sqrt(constant.predict(ends).aleatoric)
    np.testing.assert_allclose(sigma, 0.4, rtol=0.2)


def test_a_rescaled_outcome_rescales_the_answer_on_folds():
    data, unit = _draw(), 1000.0
    for noise in ("constant", "varying"):
        network = replace(NETWORK, noise=noise)
        small, large = (
            fit_one("heckman_two_step", replace(data, y=factor * data.y), seed=3, config=network)
            for factor in (1.0, unit)
        )
        np.testing.assert_allclose(
            large.predict(NEW).std / unit, small.predict(NEW).std, rtol=1e-6
        )  # standardised outcomes agree to rounding, which 150 steps magnify
        w = np.column_stack([NEW, np.linspace(-1, 1, 7)])
        for target in ("selected", "unselected"):
            assert np.isfinite(small.predict(NEW, w, target).interval()).all()


def test_noise_chosen_on_held_out_rows_needs_folds():
    with pytest.raises(DataError, match="needs held-out folds"):
        NetworkConfig(noise="varying")
    with pytest.raises(DataError, match="noise must be one of constant, varying, auto"):
        NetworkConfig(noise="loud", folds=5)
    with pytest.raises(DataError, match="folds must be at least 2"):
        NetworkConfig(folds=1)


def test_the_regressor_passes_its_choices_on_and_predicts_row_by_row():
    data = _draw(300)
    table = np.column_stack([data.w])
    model = DeepHeckmanRegressor(
        instruments=[2],
        folds=3,
        noise="auto",
        n_members=3,
        hidden=(8,),
        epochs=60,
        progress=False,
        method="two-step",
    ).fit(table, data.y)
    assert set(model.info_["held_out_losses"]) == {"constant", "varying"}
    assert len(model.info_["best_epoch"]) == 3
    whole = model.predict_interval(table)
    one = model.predict_interval(table[:1])
    # Float64 weights: the same to rounding, whatever else is predicted beside it.
    np.testing.assert_allclose(one, whole[:1], rtol=1e-12)
    baseline = DeepEnsembleRegressor(
        instruments=[2], folds=3, n_members=3, hidden=(8,), epochs=60, progress=False
    ).fit(table, data.y)
    assert baseline.info_["sigma_level"] > 0
