"""Out-of-fold fits: the right rows, the same digits with any workers, and little memory."""

import os
import subprocess
import sys
from dataclasses import replace

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import heckesel as hk
from heckesel.learners.crossfit import fit_outcome
from heckesel.learners.splines import PENALTIES, FoldedRows

PEAK_PER_ROW = 2_500  # bytes at ten columns, so that a million rows take 2.5 GB
PEAK = """
import sys, numpy as np, heckesel as hk
from benchmarks.default_fits import draw
from benchmarks.memory import peak_bytes
few, many = map(int, sys.argv[1:])
X, y = draw(many, 10)
model = hk.HeckmanRegressor(instruments=[9])
model.fit(X[:few], y[:few])
before = peak_bytes()
model.fit(X, y)
print((peak_bytes() - before) / (many - few))
"""


def rows(n=600, p=3, folds=4, seed=0):
    rng = np.random.default_rng(seed)
    x, weight = rng.standard_normal((n, p)), rng.uniform(0.5, 2.0, n)
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.3 * rng.standard_normal(n)
    return FoldedRows(x, weight, rng.permutation(n) % folds), y


@pytest.mark.parametrize("curved", [True, False])
def test_gram_matrices_by_fold_give_the_fits_without_each_fold(curved):
    """By least squares on stacked rows, with the penalty that predicts held-out rows best."""
    data, y = rows()
    held_out, members = data.fit_ridge(y, curved=curved)
    b, n = members.basis(data.x), data.weight.sum()
    free = np.where(np.arange(b.shape[1]) == 0, 0.0, 1e-6)
    losses = {}
    for penalty in PENALTIES:
        ridge = np.sqrt(n * np.where(members.basis.bent, penalty, free))
        found = np.empty(len(y))
        for k in range(4):
            inside = data.folds != k
            root = np.sqrt(data.weight[inside])
            stacked = np.vstack([root[:, None] * b[inside], np.diag(ridge)])
            target = np.concatenate([root * y[inside], np.zeros(len(ridge))])
            coef = np.linalg.lstsq(stacked, target, rcond=None)[0]
            found[~inside] = b[~inside] @ coef
        losses[data.weight @ (y - found) ** 2] = found
    assert_allclose(held_out, losses[min(losses)], atol=1e-7)  # the solver adds 1e-10 of a diagonal


@pytest.mark.filterwarnings("ignore:training did not converge")
@pytest.mark.parametrize("learner", ["linear", "splines", "networks"])
def test_a_held_out_outcome_moves_the_predictions_of_other_folds_alone(learner):
    """Outcomes change places within one fold, so that means and penalties stay the same."""
    data, y = rows()
    data = replace(data, weight=np.ones(len(y)))
    moved = y.copy()
    moved[data.folds == 2] = y[data.folds == 2][::-1]
    if learner == "networks":
        pytest.importorskip("torch")
        learner = hk.Networks(epochs=1, n_members=4, device="cpu")
    before, after = (fit_outcome(learner, data, each, seed=0)[1] for each in (y, moved))
    change = np.abs(after - before)
    assert change[data.folds == 2].max() < 1e-6 * change[data.folds != 2].max()


def draw(n=900):
    frame = hk.datasets.make_controlled(n, rho=0.6, alpha=1.0, seed=3).frame
    return frame[["x", "z"]], frame["y"]


def fitted(learner="boosting", **options):
    X, y = draw()
    return hk.HeckmanRegressor(["z"], learner=learner, **options).fit(X, y), X


def test_two_processes_give_the_digits_of_one():
    (alone, X), (pair, _) = fitted(), fitted(n_jobs=2)
    assert_array_equal(alone.predict_interval(X), pair.predict_interval(X))


def test_two_workers_of_dask_give_the_digits_of_one_process(client):
    assert len(client.scheduler_info()["workers"]) == 2
    with joblib.parallel_config(backend="dask"):
        there, X = fitted(n_jobs=2)
    assert_array_equal(fitted()[0].predict_interval(X), there.predict_interval(X))


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="VmHWM is Linux's")
def test_the_peak_of_memory_per_row_is_bounded():
    command = [sys.executable, "-W", "ignore", "-c", PEAK, "5000", "65000"]
    printed = subprocess.run(command, capture_output=True, check=True).stdout
    assert float(printed) < PEAK_PER_ROW


@pytest.mark.filterwarnings("ignore:training did not converge")
def test_networks_hold_out_the_folds_of_the_estimator(tmp_path):
    pytest.importorskip("torch")
    model, X = fitted(hk.Networks(hidden=(16,), epochs=150, device="cpu"), cv=3)
    assert model.losses_["Networks"] < 0.8
    members = model.fitted_.outcome.predict_members(X.to_numpy()[:, :1])
    assert members.shape == (3, len(X))
    model.save(tmp_path / "model.heckesel")
    loaded = hk.load(tmp_path / "model.heckesel")
    assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))
