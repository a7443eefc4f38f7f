"""Options that no training can have, trainings that diverge and trainings that are cut short."""

import time
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import heckesel as hk
import heckesel.networks.training.config  # imports torch, which takes seconds; refusing does not

N = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
U = RNG.normal(size=N)
S = X @ [0.5, 0.0, 1.0] + U > 0
Y = np.where(S, 1 + X @ [1.0, -1.0, 0.0] + 0.5 * U + RNG.normal(size=N), np.nan)
SMALL = {"epochs": 40, "n_members": 3, "hidden": (8,), "progress": False}


def fit(kind=partial(hk.DeepHeckmanRegressor, method="two-step"), y=Y, **options):
    return kind([2], **(SMALL | options)).fit(X, y)


def fit_classifier(**options):
    options = {"outcome": "network", "folds": 3} | SMALL | options
    return hk.HeckmanClassifier([2], **options).fit(X, np.where(S, Y > 1, np.nan))


BAD = [
    ("learning_rate", [np.nan, np.inf, -1, 0, "fast", True]),
    ("weight_decay", [np.nan, np.inf, -1, "much"]),
    ("hidden", [(), 16, (0,), (-3,), (2.5,), "ab", None, (8, 0)]),
    ("n_members", [0, -1, 2.5, "many", 10**9]),
    ("epochs", [0, 2.5, "many", 10**12]),
    ("batch_size", [0, -5, 2.5]),
    ("folds", [1, 2.5, "some"]),
    ("warm_up", [-1, 2.5]),
    ("random_state", [-1, 2.5, "today"]),
]


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD for v in values])
def test_an_option_out_of_range_is_refused_at_once(name, value):
    started = time.perf_counter()
    with pytest.raises(hk.DataError, match=name) as caught:
        fit(**{name: value})
    assert time.perf_counter() - started < 2
    assert "\n" not in str(caught.value)


def test_a_classifier_refuses_them_too():
    for options in ({"hidden": 16}, {"n_members": 10**9}, {"learning_rate": np.nan}):
        with pytest.raises(hk.DataError, match=next(iter(options))):
            fit_classifier(**options)


def test_memory_counts_rows_and_layers():
    # 12 TB of activations, though the parameters alone would fit
    with pytest.raises(hk.DataError, match="GB of memory"):
        fit(hidden=(60_000, 8), n_members=20_000, epochs=1)


@pytest.mark.parametrize("folds", [None, 3])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (hk.DeepHeckmanRegressor, {"method": "two-step"}),
        (hk.DeepHeckmanRegressor, {"method": "joint"}),
        (hk.DeepEnsembleRegressor, {}),
        (hk.WeightedEnsembleRegressor, {}),
    ],
)
@pytest.mark.parametrize("rate", [1e3, 1e30])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_training_that_diverged_is_an_error(kind, options, folds, rate):
    with pytest.raises(hk.HeckeselError, match=r"training diverged.*lower learning_rate"):
        fit(kind, folds=folds, learning_rate=rate, **options)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_diverging_weight_decay_and_classifiers_are_errors():
    with pytest.raises(hk.HeckeselError, match="training diverged"):
        fit(weight_decay=1e30)
    for options in ({"weight_decay": 1e30}, {"learning_rate": 1e30}):
        with pytest.raises(hk.HeckeselError, match="training diverged"):
            fit_classifier(**options)


@pytest.mark.parametrize("method", ["two-step", "joint", "averaged", "profile"])
def test_an_outcome_that_does_not_vary_is_refused(method):
    with pytest.raises(hk.DataError, match=r"is 5 in all .* selected rows"):
        fit(method=method, y=np.where(S, 5.0, np.nan))


def test_a_training_cut_short_warns_once():
    for options in ({"epochs": 20}, {"epochs": 300, "learning_rate": 1e-300}):
        with pytest.warns(ConvergenceWarning, match="hardly change the weights") as caught:
            fit(**options)
        assert len(caught) == 1
    # 60 epochs can reach any weights, but a step needs more of them
    y = np.where(S, 3 * np.sign(X[:, 0]) + 0.1 * U, np.nan)
    with pytest.warns(ConvergenceWarning, match="still falling after 60 epochs"):
        fit(y=y, epochs=60, hidden=(32, 32))


@pytest.mark.parametrize("folds", [None, "auto"])
@pytest.mark.parametrize(
    "kind", [partial(hk.DeepHeckmanRegressor, method="two-step"), hk.DeepEnsembleRegressor]
)
def test_an_ordinary_training_does_not_warn(kind, folds):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        kind([2], progress=False, folds=folds, n_members=5, hidden=(32, 32)).fit(X, Y)


@pytest.mark.parametrize("factor", [1e-200, 1e-160, 1e200])
def test_outcomes_and_columns_whose_squares_are_lost_are_refused(factor):
    for call in (
        lambda: hk.heckman(y=Y * factor, x=X[:, :2], w=X),
        lambda: hk.heckman(y=Y, x=X[:, :2] * factor, w=X),
        lambda: hk.heckman(y=Y, x=X[:, :2], w=X * factor),
        lambda: hk.identify(X, Y * factor, instruments=[2]),
        lambda: fit(y=Y * factor),
    ):
        with pytest.raises(hk.DataError, match="rescale"):
            call()


@pytest.mark.parametrize("kind", ["frequency", "probability"])
@pytest.mark.parametrize("value", [1e308, 1e-310])
def test_weights_whose_sum_is_lost_are_refused(kind, value):
    weights = np.full(N, value)
    columns = {"s": S, "a": X[:, 0]}
    for call in (
        lambda: hk.heckman(y=Y, x=X[:, :2], w=X, weights=weights, weight_kind=kind),
        lambda: hk.probit("s ~ a", columns, weights=weights, weight_kind=kind),
        lambda: hk.bounds(Y, -9, 9, sample_weight=weights),
        lambda: hk.DeepHeckmanRegressor([2], **{"method": "two-step"} | SMALL).fit(
            X, Y, sample_weight=weights
        ),
    ):
        with pytest.raises(hk.DataError, match=r"row 0 has 1e.*divide all of them"):
            call()


def test_scales_within_reach_give_the_same_fit():
    expected = hk.heckman(y=Y, x=X[:, :2], w=X)
    found = hk.heckman(y=Y * 1e-90, x=X[:, :2] * 1e90, w=X)
    np.testing.assert_allclose(found.rho, expected.rho, rtol=1e-6)
    np.testing.assert_allclose(
        found.params["outcome"].to_numpy()[1:] * 1e180,
        expected.params["outcome"].to_numpy()[1:],
        rtol=1e-6,
    )


def test_a_cluster_without_workers_is_refused_within_two_seconds():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None, processes=False) as cluster,
        distributed.Client(cluster) as client,
    ):
        started = time.perf_counter()
        with pytest.raises(hk.DataError, match="no workers"):
            hk.DeepHeckmanRegressor([2], **{"method": "two-step"} | SMALL).fit(X, Y, client=client)
        assert time.perf_counter() - started < 2
