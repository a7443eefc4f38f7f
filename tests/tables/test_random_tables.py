"""Tables no one would think of: a fit is a `DataError` or predicts finite numbers, and the same
ones once it was saved and loaded."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import heckesel as hk

QUIET = settings(
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
FEW = settings(QUIET, max_examples=12)
NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)
KINDS = {
    "numbers": NUMBERS,
    "gaps": st.one_of(st.none(), NUMBERS),
    "whole": st.integers(-3, 3),
    "huge": st.floats(allow_nan=True, allow_infinity=True),
    "levels": st.sampled_from(["a", "b", "ü", ""]),
    "text with gaps": st.one_of(st.none(), st.sampled_from(["x", "y"])),
    "truths": st.booleans(),
    "constant": st.just(1.5),
}


@st.composite
def tables(draw):
    """X, y and the names of the instruments."""
    n = draw(st.integers(3, 60))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), max_size=2))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    columns = {f"{kind} {j}": draw(_column(KINDS[kind], n)) for j, kind in enumerate(kinds)}
    # noise that is random indeed, so that some tables are good ones
    columns |= {"noise": rng.normal(size=n), "z": rng.normal(size=n)}
    x, z, u = columns["noise"], columns["z"], rng.normal(size=n)
    chosen = x + z + u > 0
    seen = draw(st.sampled_from([chosen, chosen, chosen, ~chosen, u > -10, u > 10, z > 0]))
    scale = draw(st.sampled_from([1.0, 1e-8, 1e8]))
    y = np.where(seen, scale * (x + u + rng.normal(size=n)), np.nan)
    instruments = draw(st.sampled_from([["z"], [], ["z", "noise"]]))
    return pd.DataFrame(columns), pd.Series(y, name="y"), instruments


def _column(values, n):
    return st.lists(values, min_size=n, max_size=n)


def check(model, X, y):
    """Fit, predict, save, load, predict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hk.IdentificationWarning)
        try:
            model.fit(X, y)
        except hk.DataError:
            return
        mean, std = model.predict(X, return_std=True)
        assert np.isfinite(mean).all()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m"
            model.save(path)
            again = hk.load(path)
        np.testing.assert_array_equal(again.predict(X, return_std=True), (mean, std))
        if model.identification_.verdict != "nothing to correct":
            np.testing.assert_array_equal(
                again.predict_interval(X, target="unselected"),
                model.predict_interval(X, target="unselected"),
            )
            assert again.log_likelihood(X, y) == model.log_likelihood(X, y)


@QUIET
@given(tables(), st.sampled_from(["ml", "two-step"]), st.sampled_from(["error", "indicator"]))
def test_a_linear_model_of_any_table(table, method, missing):
    X, y, instruments = table
    check(hk.HeckmanRegressor(instruments, method=method, missing=missing), X, y)


@FEW
@given(tables(), st.sampled_from(["two-step", "joint"]), st.sampled_from(["error", "indicator"]))
def test_networks_for_any_table(table, method, missing):
    X, y, instruments = table
    model = hk.DeepHeckmanRegressor(
        instruments,
        method=method,
        missing=missing,
        epochs=3,
        n_members=2,
        hidden=(3,),
        progress=False,
    )
    check(model, X, y)


def check_classes(model, X, y):
    """Fit, predict, save, load, predict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y)
        except hk.DataError:
            return
        probability = model.predict_proba(X)
        assert np.isfinite(probability).all()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m"
            model.save(path)
            again = hk.load(path)
        np.testing.assert_array_equal(again.predict_proba(X), probability)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(
            again.predict_proba_interval(X), model.predict_proba_interval(X)
        )
        if model.identification_.verdict != "nothing to correct":
            others = model.predict_proba(X, "unselected")
            assert np.isfinite(others).all()
            np.testing.assert_array_equal(again.predict_proba(X, "unselected"), others)
            assert again.log_likelihood(X, y) == model.log_likelihood(X, y)


LABELS = st.sampled_from([(0, 1), (False, True), ("no", "ü"), (1.5, 2.5)])


def two_classes(y, labels):
    middle = y.median()
    return pd.Series(
        [None if np.isnan(each) else labels[int(each > middle)] for each in y], dtype=object
    )


@QUIET
@given(tables(), LABELS, st.sampled_from(["error", "indicator"]))
def test_a_linear_classifier_of_any_table(table, labels, missing):
    X, y, instruments = table
    check_classes(hk.HeckmanClassifier(instruments, missing=missing), X, two_classes(y, labels))


@FEW
@given(tables(), LABELS, st.sampled_from(["error", "indicator"]))
def test_networks_for_the_classes_of_any_table(table, labels, missing):
    X, y, instruments = table
    model = hk.HeckmanClassifier(
        instruments,
        outcome="network",
        missing=missing,
        epochs=3,
        n_members=2,
        folds=2,
        hidden=(3,),
        progress=False,
    )
    check_classes(model, X, two_classes(y, labels))
