"""Masked arrays and values that are no numbers: missing, or refused in one sentence."""

import warnings

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel import metrics
from heckesel.predictive import Predictive

N = 300


@pytest.fixture(scope="module")
def units():
    """X (three columns, an instrument last), every y, and who was selected."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(N, 3))
    u = rng.normal(size=N)
    s = x @ [0.5, 0.0, 1.0] + u > 0
    return x, 1 + x @ [1.0, -1.0, 0.0] + 0.5 * u + rng.normal(size=N), s


def masked_at(values, *rows):
    values = np.ma.array(values, copy=True)
    for row in rows:
        values[row] = np.ma.masked
    return values


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hk.IdentificationWarning)
        yield


def fit_arrays(X, y, **options):
    return hk.heckman(y=y, x=X[:, :2], w=X, **options)


def fit_regressor(X, y, selected=None, weights=None):
    return (
        hk.HeckmanRegressor([2], method="ml")
        .fit(X, y, selected=selected, sample_weight=weights)
        .result_
    )


def fit_networks(X, y, selected=None, weights=None):
    model = hk.DeepHeckmanRegressor([2], networks=hk.Networks(epochs=5, n_members=2, hidden=(4,)))
    return model.fit(X, y, selected=selected, sample_weight=weights)


def fit_identify(X, y, selected=None, weights=None):
    return hk.identify(X, y, instruments=[2], selected=selected, sample_weight=weights)


FITS = [fit_arrays, fit_regressor, fit_networks, fit_identify]


def told(result):
    """Numbers that any change of the rows would change."""
    if hasattr(result, "params"):
        return result.params.to_numpy()
    if hasattr(result, "fitted_"):
        return result.predict(np.zeros((1, 3)))
    return [result.evidence["posterior_rho"]]


@pytest.mark.parametrize("fit", FITS)
def test_a_masked_outcome_is_a_missing_one(fit, units):
    X, y, s = units
    hidden = np.where(s, y, 1e6)  # what the mask hides must not be looked at
    expected = told(fit(X, np.where(s, y, np.nan)))
    np.testing.assert_array_equal(told(fit(X, np.ma.array(hidden, mask=~s))), expected)


@pytest.mark.parametrize("fit", FITS)
def test_a_masked_x_is_refused_as_missing(fit, units):
    X, y, s = units
    with pytest.raises(hk.DataError, match=r"row 7.*x|x0.*row 7"):
        fit(masked_at(X, (7, 0)), np.where(s, y, np.nan))


@pytest.mark.parametrize("fit", FITS)
def test_masked_weights_and_selection_are_refused(fit, units):
    X, y, s = units
    with pytest.raises(hk.DataError, match=r"weights .* row 4"):
        fit(X, np.where(s, y, np.nan), weights=masked_at(np.ones(N), 4))
    with pytest.raises(hk.DataError, match=r"selected .* row 4"):
        fit(X, y, selected=masked_at(s, 4))


def test_masks_in_formulas_clusters_propensities_and_metrics(units):
    X, y, s = units
    columns = {"a": X[:, 0], "z": X[:, 2], "y": np.ma.array(y, mask=~s)}
    fit = hk.heckman("y ~ a", "~ a + z", columns)
    assert fit.n_selected == s.sum()
    with pytest.raises(hk.DataError, match="row 3"):
        hk.probit("s ~ a", columns | {"s": masked_at(s, 3)})
    with pytest.raises(hk.DataError, match="groups have missing"):
        hk.heckman("y ~ a", "~ a + z", columns, groups=masked_at(np.arange(N) % 30, 3))
    predictive = Predictive.normal(np.zeros(N), np.zeros(N), np.ones(N))
    assert np.isnan(predictive.cdf(masked_at(y, 3))[3])
    for metric in (metrics.coverage, metrics.crps, metrics.rmse, metrics.evaluate):
        with pytest.raises(hk.DataError, match="row 3"):
            metric(masked_at(y, 3), predictive)


REFUSED = r"column '[ay]' (holds dates|must hold numbers|holds lists or records)"
ODD = {
    "complex": np.arange(N) + 1j,
    "nanoseconds": np.arange(N).astype("datetime64[ns]"),
    "durations": np.arange(N).astype("timedelta64[ns]"),
    "lists": [[1.0, 2.0]] * N,
    "periods": pd.period_range("2000", periods=N, freq="D"),
    "structured": list(np.zeros(N, dtype=[("a", float), ("b", float)])),
}


@pytest.mark.parametrize("kind", ODD)
def test_values_that_are_no_numbers_are_refused(kind, units):
    X, y, s = units
    y = np.where(s, y, np.nan)
    frame = pd.DataFrame({"a": X[:, 0], "z": X[:, 2], "y": y})
    odd = pd.Series(ODD[kind])
    for changed in (frame.assign(a=odd), frame.assign(y=odd)):
        with pytest.raises(hk.DataError, match=REFUSED):
            hk.heckman("y ~ a", "~ a + z", changed)
        with pytest.raises(hk.DataError, match=REFUSED):
            hk.HeckmanRegressor(["z"], method="ml").fit(changed[["a", "z"]], changed["y"])
        with pytest.raises(hk.DataError, match=REFUSED):
            hk.heckman(y=changed["y"], x=changed[["a"]], w=changed[["a", "z"]])
    with pytest.raises(hk.DataError, match="weights"):
        hk.heckman(y=y, x=X[:, :2], w=X, weights=odd.to_numpy())


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        (np.zeros((3, 2)), np.array(3.0), "one column but has shape"),
        (np.zeros((3, 2)), [[1.0, 2.0], [3.0]], "differ in length"),
        ([[1.0, 2.0], [3.0]], np.zeros(2), "differ in length"),
        (np.array(3.0), np.zeros(2), "table of rows and columns"),
        (np.zeros(3, dtype=[("a", float)]), np.zeros(3), "structured array"),
        (np.zeros((2, 2)), [10**400, 1], "must hold numbers"),
    ],
)
def test_arrays_of_the_wrong_shape_are_refused(X, y, sentence):
    with pytest.raises(hk.DataError, match=sentence):
        hk.HeckmanRegressor(method="ml").fit(X, y)
    with pytest.raises(hk.DataError, match="must be one column"):
        hk.bounds(np.array(3.0), 0, 1)
