"""From members to predictions: moments, targets, scaling, and the training of several datasets."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import ndtr
from scipy.stats import norm

from heckesel.data import selection_data
from heckesel.errors import DataError, IdentificationWarning
from heckesel.methods.heckman_two_step import corrected_sigma
from heckesel.methods.weighted_ensemble import inverse_propensity_weights
from heckesel.networks.ensembles.selection_ensemble import ensemble_moments, predict_two_outputs
from heckesel.networks.losses.normal import GAUSSIAN, JOINT, TWO_STEP
from heckesel.networks.training import ensemble_training
from heckesel.networks.training.batches import Batch, data_scale_of, joint_rows, outcome_rows
from heckesel.networks.training.config import NetworkConfig, torch_device
from heckesel.networks.training.dropout import dropout_masks, dropout_seeds
from heckesel.networks.training.ensemble_training import train_datasets
from heckesel.predictive import possible_covariance, predict_given_selection

SMALL = NetworkConfig(
    hidden=(6, 5), n_members=2, epochs=40, warm_up=5, dtype="float64", device="cpu"
)


def _data(n=80, seed=0, weight=None):
    rng = np.random.default_rng(seed)
    x, z, u = rng.normal(3.0, 2.0, (n, 2)), rng.normal(size=n), rng.normal(size=n)
    y = 50 + 7 * np.sin(x[:, 0]) + 2 * u + rng.normal(size=n)
    return selection_data(x, np.column_stack([x, z]), np.where(z + u > 0, y, np.nan), weight=weight)


def test_moments_are_those_of_a_mixture_of_normals():
    rng = np.random.default_rng(0)
    mean, sigma = rng.normal(size=(4, 3)), rng.uniform(0.5, 2.0, 4)
    combined, epistemic, aleatoric = ensemble_moments(mean, sigma**2)
    assert combined.shape == epistemic.shape == aleatoric.shape == (3,)
    draws = mean[:, None] + sigma[:, None, None] * np.random.default_rng(1).normal(
        size=(4, 200_000, 3)
    )
    pooled = draws.reshape(-1, 3)
    # 800 000 draws with an sd below 3: means err by .003, variances by .02; four sds.
    np.testing.assert_allclose(combined, pooled.mean(axis=0), atol=0.012)
    np.testing.assert_allclose(epistemic + aleatoric, pooled.var(axis=0), atol=0.06)


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["selected", "unselected"])
def test_prediction_given_selection_agrees_with_simulated_units(sign):
    f, tau, sigma, rho, index = 1.5, 0.6, 0.8, 0.7, -0.4
    predictive = predict_given_selection(
        np.array([f]), np.array([tau**2]), sigma, sign * rho * sigma, sign * np.array([index])
    )
    rng = np.random.default_rng(0)
    u, noise, error_of_f = rng.normal(size=(3, 2_000_000))
    y = f + tau * error_of_f + sigma * (rho * u + np.sqrt(1 - rho**2) * noise)
    y = y[sign * (index + u) > 0]
    # At least 600 000 units with an sd of about 1: four standard errors.
    np.testing.assert_allclose(predictive.mean, y.mean(), atol=0.005)
    np.testing.assert_allclose(predictive.std, y.std(), atol=0.004)
    np.testing.assert_allclose(predictive.cdf([y.mean()]), (y < y.mean()).mean(), atol=0.0026)
    assert predictive.epistemic == tau**2


def test_an_impossible_correlation_is_reported_and_brought_inside():
    with pytest.warns(IdentificationWarning, match=r"lies beyond -0\.999"):
        assert possible_covariance(-2.5, 2.0) == pytest.approx(-1.998)
    assert possible_covariance(1.9, 2.0) == 1.9


def test_two_outputs_are_mapped_back_to_the_units_of_y():
    scaling = replace(data_scale_of(_data(), True), y_centre=10.0, y_scale=3.0)
    outputs = np.array([[[0.0, 0.0]], [[2.0, np.log(3.0)]]])  # (k, m, 2)
    predictive = predict_two_outputs(outputs, scaling)
    np.testing.assert_allclose(predictive.mean, [13.0])
    np.testing.assert_allclose(predictive.epistemic, [9.0])
    np.testing.assert_allclose(predictive.aleatoric, [9.0 * 2.0])


def test_scaling_is_over_all_units_for_x_and_over_the_selected_for_y():
    data = _data()
    scaling = data_scale_of(data, True)
    np.testing.assert_allclose(scaling.x(data.x).mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(scaling.w(data.w).std(axis=0), 1.0)
    y = scaling.y(data.y[data.s])
    np.testing.assert_allclose([y.mean(), y.std()], [0.0, 1.0], atol=1e-12)
    untouched = data_scale_of(data, False)
    np.testing.assert_array_equal(untouched.x(data.x), data.x)
    np.testing.assert_array_equal(untouched.y(data.y[data.s]), data.y[data.s])


def test_a_column_that_does_not_vary_keeps_its_scale():
    data = _data()
    data = replace(data, x=np.column_stack([data.x[:, 0], np.full(data.n, 0.1)]))
    scaled = data_scale_of(data, True).x(data.x)
    np.testing.assert_allclose(scaled[:, 1], 0.0, atol=1e-12)


def test_gamma_for_scaled_columns_gives_the_same_index_on_raw_ones():
    data = _data()
    scaling = data_scale_of(data, True)
    gamma = np.array([[0.3, -0.7, 1.1, 0.2], [0.1, 0.4, -0.2, -0.5]])
    raw = scaling.unscale_gamma(gamma)
    np.testing.assert_allclose(
        data.w @ raw[:, :-1].T + raw[:, -1], scaling.w(data.w) @ gamma[:, :-1].T + gamma[:, -1]
    )


def test_weights_of_rows_add_up_to_one():
    weight = np.random.default_rng(5).uniform(0.5, 2.0, 80)
    data = _data(weight=weight)
    scaling = data_scale_of(data, True)
    outcome, both = outcome_rows(data, scaling), joint_rows(data, scaling)
    np.testing.assert_allclose(outcome.weight.sum(), 1.0)
    np.testing.assert_allclose(
        outcome.weight / outcome.weight[0], weight[data.s] / weight[data.s][0]
    )
    np.testing.assert_allclose(both.weight.sum() + both.weight_unselected.sum(), 1.0)
    np.testing.assert_allclose(both.weight.sum(), weight[data.s].sum() / weight.sum())
    assert both.w_unselected.shape == ((~data.s).sum(), 4)


def test_a_weight_of_two_is_a_repeated_row():
    data = _data(60)
    twice = np.r_[np.arange(60), np.arange(0, 60, 2)]
    parts = {name: getattr(data, name)[twice] for name in ("x", "w", "s", "y")}
    repeated = replace(data, **parts, weight=np.ones(90))
    weighted = replace(data, weight=np.where(np.arange(60) % 2 == 0, 2.0, 1.0))
    scaling = data_scale_of(data, True)
    trained = [
        train_datasets([joint_rows(each, scaling)], loss=JOINT, seeds=[1], config=SMALL, units=60)[
            0
        ]
        for each in (repeated, weighted)
    ]
    np.testing.assert_allclose(trained[0].parameters, trained[1].parameters, atol=1e-9)


def test_sigma_includes_the_variance_removed_by_selection():
    rng = np.random.default_rng(0)
    n, c, sigma = 400_000, 0.7, 1.0
    index = rng.normal(size=n)
    u, noise = rng.normal(size=(2, n))
    seen = index + u > 0
    y = (c * u + np.sqrt(sigma**2 - c**2) * noise)[seen]
    index = index[seen]
    mills = norm.pdf(index) / ndtr(index)
    weight = np.full(len(y), 1 / len(y))
    dataset = Batch(np.zeros((len(y), 1)), y, weight, mills, mills * (mills + index))
    found = corrected_sigma(np.zeros((1, len(y))), np.array([c]), dataset)
    # The variance of 200 000 units is known to .3 %; four standard errors of sigma.
    np.testing.assert_allclose(found, [sigma], atol=0.007)


def test_inverse_propensities_are_bounded_and_average_to_one_over_the_selected():
    propensity, s = np.array([0.5, 0.25, 0.0, 0.9]), np.array([True, True, True, False])
    weight = inverse_propensity_weights(propensity, s)
    np.testing.assert_allclose(weight[s].mean(), 1.0)
    np.testing.assert_allclose(weight[:3] / weight[0], [1.0, 2.0, 500.0])


def test_chunks_of_datasets_give_the_same_networks_and_one_count_of_progress(monkeypatch):
    datas = [_data(80, seed) for seed in range(3)]
    datasets = [outcome_rows(data, data_scale_of(data, True)) for data in datas]
    options = {"loss": GAUSSIAN, "seeds": [1, 2, 3], "config": SMALL, "units": 80}
    together = train_datasets(datasets, **options)
    calls = []
    monkeypatch.setattr(ensemble_training, "LAYER_BYTES", {"cpu": 1, "gpu": 1})
    apart = train_datasets(
        datasets, **options, progress=lambda done, total: calls.append((done, total))
    )
    for one, other in zip(together, apart, strict=True):
        np.testing.assert_allclose(one.parameters, other.parameters, atol=1e-9)
        np.testing.assert_allclose(one.loss, other.loss, atol=1e-9)
    assert calls == [(done, 120) for done in range(1, 121)]


def test_each_member_keeps_the_parameters_with_the_lowest_held_out_loss():
    data = _data(120, seed=4)
    dataset = outcome_rows(data, data_scale_of(data, True))
    fold = np.arange(len(dataset.y)) % 2
    config = replace(SMALL, hidden=(32, 32), epochs=400, folds=2, patience=50)
    options = {"loss": GAUSSIAN, "seeds": [1], "config": config, "units": 120}
    (stopped,) = train_datasets([replace(dataset, fold=fold)], **options)
    assert (stopped.best_epoch < 400).all()
    for j in range(2):
        seen, unseen = (
            Batch(dataset.x[keep], dataset.y[keep], np.full(keep.sum(), 1 / keep.sum()))
            for keep in (fold != j, fold == j)
        )
        (to_the_end,) = train_datasets([seen], **options)
        best, last = (
            -norm.logpdf(unseen.y, mean, np.exp(0.5 * log_variance)).mean()
            for mean, log_variance in (
                members.outputs(unseen.x[:, :-1])[j].T for members in (stopped, to_the_end)
            )
        )
        np.testing.assert_allclose(best, stopped.validation[j], rtol=1e-10)
        assert last > best


def test_starts_are_kept_by_a_warm_up_that_never_ends():
    data = _data()
    config = replace(SMALL, warm_up=40)
    dataset = joint_rows(data, data_scale_of(data, True))
    members = train_datasets(
        [dataset],
        loss=JOINT,
        seeds=[1],
        config=config,
        units=80,
        starts={"atanh_rho": [-0.5, 0.8]},
    )[0]
    np.testing.assert_array_equal(members.head[:, -1], [-0.5, 0.8])


def test_mini_batches_train_the_two_step_loss():
    data = _data(200, seed=2)
    dataset = replace(outcome_rows(data, data_scale_of(data, True)), mills=np.ones(data.s.sum()))
    config = replace(SMALL, batch_size=40, epochs=60)
    (members,) = train_datasets([dataset], loss=TWO_STEP, seeds=[1], config=config, units=200)
    untrained = 0.5 * np.log(2 * np.pi) + 0.5  # of a standardised y under N(0, 1)
    assert (members.loss < untrained - 0.1).all()


def _masks(datasets, rows, hidden=(40, 30), members=2):
    return dropout_masks(dropout_seeds(datasets, members), rows, hidden, 0.1, like=torch.ones(1))


def test_dropout_masks_keep_the_mean():
    first, second = _masks([1], 500)()
    assert first.shape == (2, 500, 40)
    assert second.shape == (2, 500, 30)
    np.testing.assert_allclose(first[first > 0], 1 / 0.9, rtol=1e-6)
    # 70 000 factors with an sd of 1/3: four standard errors.
    factors = torch.cat([first.flatten(), second.flatten()])
    assert abs(factors.mean().item() - 1) < 4 * (1 / 3) / np.sqrt(len(factors))


def test_dropout_masks_differ_between_steps_networks_layers_and_neighbours():
    masks = _masks([1], 2000, hidden=(40, 40))
    first, second = (mask.clone() for mask in masks())
    later = masks()[0].clone()
    zero = first == 0
    others = {
        "step": later == 0,
        "network": zero.flip(0),
        "layer": second == 0,
        "next row": zero.roll(1, 1),
        "next column": zero.roll(1, 2),
    }
    for name, other in others.items():
        # independent zeros meet with probability .01; four standard errors of 160 000 pairs
        meet = (zero & other).float().mean().item()
        assert abs(meet - 0.01) < 4 * np.sqrt(0.01 / 160_000), name


def test_dropout_masks_do_not_depend_on_the_batch():
    together = _masks([1, 7], 500)()
    alone = _masks([7], 300)()
    for wide, narrow in zip(together, alone, strict=True):
        np.testing.assert_array_equal(wide[2:, :300], narrow)


def test_the_mixing_is_splitmix64():
    """Against the reference algorithm in whole numbers: the first outputs for seed 1234567."""
    from heckesel.networks.training.dropout import GOLDEN, _mix

    counter = torch.tensor([1234567]) + torch.arange(1, 4) * GOLDEN
    mixed = [int(word) % 2**64 for word in _mix(counter.clone())]
    assert mixed == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_wrong_options_are_refused_with_their_value():
    with pytest.raises(DataError, match="n_members must be at least 1, got 0"):
        NetworkConfig(n_members=0)
    with pytest.raises(DataError, match="float32, float64, got 'half'"):
        NetworkConfig(dtype="half")
    with pytest.raises(DataError, match="batch_size must be at least 1 or None, got 0"):
        NetworkConfig(batch_size=0)
    assert torch_device("cpu").type == "cpu"
