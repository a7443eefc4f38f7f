"""The Gaussian-process baseline against scikit-learn's, finite differences and its torch twin."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from heckesel.data import selection_data
from heckesel.errors import DataError
from heckesel.math import marginal_likelihood as numpy_twin
from heckesel.methods import fit_one, gp

pytestmark = pytest.mark.arithmetic

POINTS = np.linspace(-2.5, 2.5, 40)


def draw(n, p, seed=0, noise=0.4):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, p))
    y = np.sin(2 * x[:, 0]) + 0.5 * x[:, -1] ** 2 + noise * rng.normal(size=n)
    return x, y


def all_selected(x, y, **options):
    return selection_data(x, np.ones((len(y), 1)), y, **options)


def points(p):
    return np.column_stack([POINTS * (-1) ** d for d in range(p)])


def sklearn_gp(theta, **options):
    c, *lengths, noise = np.exp(theta)
    kernel = ConstantKernel(c) * RBF(lengths) + WhiteKernel(noise)
    return GaussianProcessRegressor(kernel, **options)


def sklearn_optimum(x, y, seed):
    start = np.log([1.0, *np.ones(x.shape[1]), 0.1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # an optimum on a bound
        peer = sklearn_gp(start, normalize_y=True, n_restarts_optimizer=2, random_state=seed)
        return peer.fit(x, y)


def arbitrary_theta(p, seed=1):
    rng = np.random.default_rng(seed)
    return np.concatenate([[0.4], rng.uniform(-0.3, 0.9, p), [-1.1]])


@pytest.mark.parametrize("p", [1, 3])
def test_log_marginal_likelihood_and_its_gradient_equal_those_of_sklearn(p):
    x, y = draw(250, p)
    theta = arbitrary_theta(p)
    assert p > 1 or numpy_twin.low_rank_factor(theta, x) is not None
    peer = sklearn_gp(theta, optimizer=None).fit(x, y)
    expected, expected_gradient = peer.log_marginal_likelihood(theta, eval_gradient=True)
    for way in (numpy_twin.dense_likelihood, numpy_twin.log_marginal_likelihood):
        value, gradient = way(theta, x, y)
        assert value == pytest.approx(expected, rel=1e-9)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_the_gradient_is_the_slope_of_the_log_marginal_likelihood(p):
    x, y = draw(250, p, seed=2)
    theta, step = arbitrary_theta(p, seed=3), 1e-5
    slope = [
        (
            numpy_twin.log_marginal_likelihood(theta + change, x, y)[0]
            - numpy_twin.log_marginal_likelihood(theta - change, x, y)[0]
        )
        / (2 * step)
        for change in step * np.eye(p + 2)
    ]
    gradient = numpy_twin.log_marginal_likelihood(theta, x, y)[1]
    np.testing.assert_allclose(gradient, slope, rtol=1e-6)  # differences at this step err by 1e-8


@pytest.mark.parametrize("p", [1, 2])
def test_a_kernel_of_low_rank_gives_what_the_dense_one_gives(p):
    x, y = draw(500, p, seed=4)
    theta = np.concatenate([[0.3], np.full(p, 1.3), [-2.0]])
    g, pivots = numpy_twin.low_rank_factor(theta, x)
    assert g.shape == (len(pivots), 500)
    np.testing.assert_allclose(g.T @ g, numpy_twin.kernel(theta, x, x), atol=1e-13)
    value, gradient = numpy_twin.low_rank_likelihood(theta, x, y, g)
    expected, expected_gradient = numpy_twin.dense_likelihood(theta, x, y)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-8)


def test_a_kernel_of_high_rank_is_left_to_the_dense_way():
    x, _ = draw(200, 1)
    assert numpy_twin.low_rank_factor(np.log([1.0, 0.01, 0.1]), x) is None


def test_a_singular_covariance_has_likelihood_zero():
    x, y = np.zeros((50, 3)), np.ones(50)
    value, gradient = numpy_twin.dense_likelihood(np.array([25.0, 0.0, 0.0, 0.0, -60.0]), x, y)
    assert value == -np.inf
    np.testing.assert_array_equal(gradient, np.zeros(5))


@pytest.mark.parametrize("p", [1, 3])
def test_the_optimum_is_at_least_that_of_sklearn(p):
    x, y = draw(150, p, seed=5)
    own = fit_one(gp, all_selected(x, y), seed=0).info.log_marginal_likelihood
    assert own > sklearn_optimum(x, y, seed=0).log_marginal_likelihood_value_ - 1e-6


@pytest.mark.parametrize(("p", "low_rank"), [(1, True), (3, False)])
def test_predictions_equal_those_of_sklearn_with_the_same_hyper_parameters(p, low_rank):
    x, y = draw(250, p, seed=6)
    fit = fit_one(gp, all_selected(x, y), seed=0)
    assert (len(fit.points) < 250) == (fit.inner is not None) == low_rank
    info = fit.info
    theta = np.log([info.constant, *info.length_scales, info.noise])
    peer = sklearn_gp(theta, normalize_y=True, optimizer=None).fit(x, y)
    assert info.log_marginal_likelihood == pytest.approx(
        peer.log_marginal_likelihood_value_, rel=1e-9
    )
    mean, std = peer.predict(points(p), return_std=True)
    predictive = fit.predict(points(p))
    # the smallest pivot of a low-rank factor is 1e-7, so nine digits are left of sixteen
    np.testing.assert_allclose(predictive.mean, mean, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(predictive.std, std, rtol=1e-7)
    np.testing.assert_allclose(predictive.aleatoric, info.noise * y.var(), rtol=1e-12)
    assert predictive.mean.shape == predictive.epistemic.shape == (40,)


def test_far_from_the_data_the_prediction_is_the_prior():
    x, y = draw(100, 3, seed=7)
    fit = fit_one(gp, all_selected(x, y), seed=0)
    far = fit.predict(np.full((1, 3), 1e8))
    np.testing.assert_allclose(far.mean, y.mean())
    np.testing.assert_allclose(far.epistemic, fit.info.constant * y.var())


def fits_without_and_with_restarts():
    x, y = draw(60, 3, seed=3, noise=1.2)
    # 20 outcomes stand twice: memorising them beats every smooth function
    data = all_selected(np.vstack([x, x[:20]]), np.concatenate([y, y[:20]]))
    without = fit_one(gp, data, seed=3, config=gp.GPConfig(restarts=0)).info
    return without, fit_one(gp, data, seed=3).info


def test_restarts_find_a_better_optimum_than_the_first_start():
    first, best = fits_without_and_with_restarts()
    assert best.log_marginal_likelihood > first.log_marginal_likelihood + 1
    assert first.noise > 0.1
    # On its bound, where K is so close to singular that rounding ends the climb: in some orders of
    # summation before the search sees the bound, so the status is "boundary" or "stalled".
    assert best.noise == pytest.approx(1e-5)


def test_restarts_on_a_part_of_the_rows_are_refined_on_all(monkeypatch):
    _, best = fits_without_and_with_restarts()
    monkeypatch.setattr(gp, "RESTART_ALL", 79)
    monkeypatch.setattr(gp, "RESTART_PART", 40)
    _, by_part = fits_without_and_with_restarts()
    # both ended by rounding, at a noise of 1e-5, rather than at a gradient of 0
    assert by_part.log_marginal_likelihood == pytest.approx(best.log_marginal_likelihood, abs=1e-3)


def test_rescaling_the_outcome_or_a_column_rescales_the_answer():
    x, y = draw(120, 3, seed=8)
    scale = np.array([1e6, 1.0, 1e-3])
    fit = fit_one(gp, all_selected(x, y), seed=0)
    other = fit_one(gp, all_selected(x * scale + 5, 1e4 * y - 3), seed=0)
    own, scaled = fit.predict(points(3)), other.predict(points(3) * scale + 5)
    # scaling rounds x and y, and the climb ends within 1e-10 of the optimum's value
    np.testing.assert_allclose(scaled.mean, 1e4 * own.mean - 3, rtol=1e-4)
    np.testing.assert_allclose(scaled.std, 1e4 * own.std, rtol=1e-4)
    np.testing.assert_allclose(other.info.length_scales, fit.info.length_scales * scale, rtol=1e-3)


def test_the_order_of_the_rows_changes_no_digit():
    x, y = draw(100, 3, seed=9)
    y[::4] = np.nan
    order = np.random.default_rng(1).permutation(100)
    one = fit_one(gp, all_selected(x, y), seed=0)
    other = fit_one(gp, all_selected(x[order], y[order]), seed=0)
    assert one.info == other.info
    np.testing.assert_array_equal(one.predict(points(3)).std, other.predict(points(3)).std)


def test_unselected_rows_are_not_used_even_where_x_is_missing():
    x, y = draw(100, 3, seed=10)
    alone = fit_one(gp, all_selected(x[:60], y[:60]), seed=0)
    x[60:], y[60:] = np.nan, np.nan
    assert fit_one(gp, all_selected(x, y), seed=0).info == alone.info


def test_a_large_sample_is_cut_to_the_rows_the_seed_draws():
    x, y = draw(90, 3, seed=11)
    y[:20] = np.nan
    rows = 20 + np.random.default_rng(7).choice(70, 50, replace=False)
    drawn = np.full(90, np.nan)
    drawn[rows] = y[rows]
    cut = fit_one(gp, all_selected(x, y), seed=7, config=gp.GPConfig(max_rows=50))
    assert cut.info.n_rows == 50
    assert cut.info == fit_one(gp, all_selected(x, drawn), seed=7).info


def test_a_constant_column_and_a_constant_outcome_are_fitted():
    x, y = draw(50, 3, seed=12)
    x[:, 1] = 4.0
    assert np.isfinite(fit_one(gp, all_selected(x, y), seed=0).predict(x).std).all()
    flat = fit_one(gp, all_selected(x, np.full(50, 2.5)), seed=0).predict(x)
    np.testing.assert_allclose(flat.mean, 2.5)


def three_cells():
    cells = [draw(n, 3, seed=n) for n in (90, 60, 75)]
    return [all_selected(x, y) for x, y in cells], cells


def test_the_torch_twin_gives_the_values_and_gradients_of_numpy():
    pytest.importorskip("torch")
    from heckesel.math import marginal_likelihood_torch as torch_twin

    _, cells = three_cells()
    theta = np.stack([arbitrary_theta(3, seed=k) for k in range(3)])
    padded = torch_twin.pad_datasets(cells, "cpu")
    which = [2, 0]
    values, gradients = torch_twin.likelihoods(padded, which, theta[which])
    for k, value, gradient in zip(which, values, gradients, strict=True):
        expected, expected_gradient = numpy_twin.dense_likelihood(theta[k], *cells[k])
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-10)
    singular = np.array([[25.0, 0.0, 0.0, 0.0, -60.0]])
    beside = torch_twin.pad_datasets([(np.zeros((50, 3)), np.ones(50)), cells[0]], "cpu")
    values, gradients = torch_twin.likelihoods(beside, [0, 1], np.vstack([singular, theta[:1]]))
    assert values[0] == -np.inf
    np.testing.assert_array_equal(gradients[0], np.zeros(5))
    expected, expected_gradient = numpy_twin.dense_likelihood(theta[0], *cells[0])
    assert values[1] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradients[1], expected_gradient, rtol=1e-10)


def test_the_torch_twin_works_through_more_cells_than_fit_at_once(monkeypatch):
    pytest.importorskip("torch")
    from heckesel.math import marginal_likelihood_torch as torch_twin

    _, cells = three_cells()
    theta = np.stack([arbitrary_theta(3, seed=k) for k in range(3)])
    padded = torch_twin.pad_datasets(cells, "cpu")
    together = torch_twin.likelihoods(padded, range(3), theta)
    monkeypatch.setattr(torch_twin, "DOUBLES_AT_ONCE", 1)
    for one, other in zip(together, torch_twin.likelihoods(padded, range(3), theta), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_cells_fitted_together_in_torch_equal_those_fitted_alone(monkeypatch):
    pytest.importorskip("torch")
    datas, _ = three_cells()
    alone = [fit_one(gp, data, seed=k) for k, data in enumerate(datas)]
    monkeypatch.setattr(gp, "_torch_device", lambda device: "cpu")
    together = gp.fit_many(datas, seeds=range(3))
    for one, other in zip(alone, together, strict=True):
        assert one.info.log_marginal_likelihood == pytest.approx(
            other.info.log_marginal_likelihood, abs=1e-8
        )
        np.testing.assert_allclose(
            one.predict(points(3)).mean, other.predict(points(3)).mean, atol=1e-4
        )


def test_an_error_on_the_device_reaches_the_caller(monkeypatch):
    pytest.importorskip("torch")
    from heckesel.math import marginal_likelihood_torch as torch_twin

    def out_of_memory(*_):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(torch_twin, "batched_likelihood", out_of_memory)
    monkeypatch.setattr(gp, "_torch_device", lambda device: "cpu")
    with pytest.raises(RuntimeError, match="out of memory"):
        gp.fit_many(three_cells()[0], seeds=range(3))


def test_what_cannot_be_fitted_is_refused_in_a_sentence():
    x, y = draw(30, 3)
    with pytest.raises(DataError, match="cannot weight rows"):
        fit_one(gp, all_selected(x, y, weight=np.arange(1.0, 31.0)), seed=0)
    with pytest.raises(DataError, match='"cpu" or "cuda" but is \'tpu\''):
        fit_one(gp, all_selected(x, y), seed=0, config=gp.GPConfig(device="tpu"))
    with pytest.raises(DataError, match="population, selected, unselected, got 'all'"):
        fit_one(gp, all_selected(x, y), seed=0).predict(x, target="all")
    with pytest.raises(DataError, match="the same number of columns"):
        gp.fit_many([all_selected(x, y), all_selected(x[:, :2], y)], seeds=[0, 1])
