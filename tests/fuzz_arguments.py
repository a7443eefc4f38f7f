"""Calls with one odd argument each."""

from __future__ import annotations

import decimal
import fractions
import pathlib
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import heckesel as hk

ODD = [
    *(None, True, False, 0, 1, -1, 2, 3, 0.5, -0.5, 1.0, 1e308, 1e-300, 2**70, -(2**70)),
    *(float("nan"), float("inf"), -float("inf"), 1j, decimal.Decimal("0.5")),
    *(fractions.Fraction(1, 2), np.float32(0.9), np.int64(2), np.bool_(True), np.array(0.5)),
    *("", "x", "ü", "z", "ml", "two-step", "robust", "x\ny", "a" * 3000, b"x"),
    *([], [1], ["x"], ["z", "z"], [["x"]], [None], (), ("z",), {}, {"a": 1}, {"z"}, range(3)),
    *(np.array([]), np.zeros(3), np.zeros((2, 2)), np.array(["x"]), np.zeros(200)),
    *(pd.NA, pd.NaT, pd.Series([1.0]), pd.DataFrame({"x": [1.0]}), pd.Timestamp("2020-01-01")),
    *(object(), print, int, ..., pathlib.Path("nothing"), slice(0, 2), lambda y: y),
]


@cache
def data():
    rng = np.random.default_rng(3)
    n = 120
    x, z, u, e = rng.normal(size=(4, n))
    frame = pd.DataFrame(
        {"x": x, "z": z, "g": np.where(x + e > 1, "a", "b"), "k": np.arange(n) % 30}
    )
    y = pd.Series(np.where(x + z + u > 0, 1 + x + 0.6 * u + 0.8 * e, np.nan), name="y")
    return frame, y


@cache
def regressor():
    X, y = data()
    return hk.HeckmanRegressor(["z"], method="ml").fit(X, y)


@cache
def classifier():
    return hk.HeckmanClassifier(["z"], method="ml").fit(_X(), _classes())


def _classes():
    y = data()[1]
    return pd.Series(np.where(y.isna(), None, np.where(y > 1, "up", "down")), dtype=object)


@cache
def fitted():
    X, y = data()
    return hk.heckman("y ~ x", "~ x + z", X.assign(y=y))


NETWORK_SETTINGS = ("batch_size", "dtype", "folds")


def _deep(**options):
    given = {name: options.pop(name) for name in NETWORK_SETTINGS if name in options}
    small = {"epochs": 2, "n_members": 2, "hidden": (3,), "device": "cpu"}
    networks = hk.Networks(**small | given)
    return hk.DeepHeckmanRegressor(**{"instruments": ["z"], "networks": networks} | options)


def _fit_deep(**options):
    X, y = data()
    return _deep(**options).fit(X, y)


def _fit(estimator, of_fit, **options):
    X, y = data()
    given = {"X": X, "y": y if estimator is hk.HeckmanRegressor else _classes()}
    rest = {name: options.pop(name) for name in list(options) if name in of_fit}
    return estimator(**{"instruments": ["z"]} | options).fit(**given | rest)


def _heckman(**options):
    X, y = data()
    given = {"outcome": "y ~ x", "select": "~ x + z", "data": X.assign(y=y)}
    return hk.heckman(**given | options)


def _arrays(**options):
    X, y = data()
    return hk.heckman(**{"y": y, "x": X[["x"]], "w": X[["x", "z"]]} | options)


def _probit(**options):
    X, y = data()
    given = {"formula": "s ~ x + z", "data": X.assign(s=y.notna())}
    return hk.probit(**given | options)


def _identify(**options):
    X, y = data()
    return hk.identify(**{"X": X, "y": y, "instruments": ["z"]} | options)


def _test_instruments(**options):
    X, y = data()
    return hk.test_instruments(**{"X": X, "y": y, "instruments": ["z"]} | options)


def _method(of: Callable, name: str, **given):
    """A call of a fitted thing's method, with X where it takes one."""

    def call(**options):
        return getattr(of(), name)(**{k: v() for k, v in given.items()} | options)

    return call


def _X():
    return data()[0]


def _y():
    return data()[1]


def _distribution():
    return regressor().predict_distribution(_X())


OF_FIT = ("X", "y", "selected", "sample_weight")
OF_TABLE = (*OF_FIT, "instruments", "missing", "unobserved")
OF_HECKMAN = ("method", "errors", "covariance", "groups", "weights", "weight_kind")
CALLS: dict[str, tuple[Callable, tuple[str, ...]]] = {
    "HeckmanRegressor.fit": (
        partial(_fit, hk.HeckmanRegressor, OF_FIT),
        (*OF_TABLE, "method", "target_transform"),
    ),
    "HeckmanClassifier.fit": (
        partial(_fit, hk.HeckmanClassifier, OF_FIT),
        (*OF_TABLE, "method", "covariance"),
    ),
    # not hidden, n_members, device, learning_rate and weight_decay, and no epochs by the million
    "DeepHeckmanRegressor.fit": (
        _fit_deep,
        (
            *("instruments", "method", "warm_up", "random_state", "missing", "target_transform"),
            *("unobserved", "noise", "tails", *NETWORK_SETTINGS),
        ),
    ),
    "heckman": (_heckman, ("outcome", "select", "data", "selected", "instruments", *OF_HECKMAN)),
    "heckman of arrays": (_arrays, ("y", "x", "w", "selected", "instruments", *OF_HECKMAN)),
    "probit": (_probit, ("formula", "data", "covariance", "groups", "weights", "weight_kind")),
    "identify": (
        _identify,
        (*OF_FIT, "instruments", "missing", "target_transform", "unobserved"),
    ),
    "test_instruments": (
        _test_instruments,
        (*OF_FIT, "instruments", "missing", "level", "seed"),
    ),
    "sensitivity": (
        lambda **o: hk.sensitivity(**{"model": regressor(), "X": _X(), "y": _y()} | o),
        ("model", "X", "y", "rho", "selected", "level"),
    ),
    "bounds": (
        lambda **o: hk.bounds(**{"y": _y(), "low": -5.0, "high": 5.0} | o),
        (
            *("y", "low", "high", "selected", "sample_weight", "treatment", "instrument"),
            *("covariates", "follow_up", "model", "quantile", "groups", "level", "interval"),
        ),
    ),
    "load": (lambda **o: hk.load(**o), ("path",)),
    "predict": (_method(regressor, "predict", X=_X), ("X", "target", "return_std")),
    "predict_interval": (_method(regressor, "predict_interval", X=_X), ("X", "level", "target")),
    "predict_proba": (_method(classifier, "predict_proba", X=_X), ("X", "target")),
    "predict_proba_interval": (
        _method(classifier, "predict_proba_interval", X=_X),
        ("X", "level", "target"),
    ),
    "log_likelihood": (_method(regressor, "log_likelihood", X=_X, y=_y), OF_FIT),
    "score": (_method(regressor, "score", X=_X, y=_y), OF_FIT),
    "save": (_method(regressor, "save"), ("path",)),
    "interval of a fit": (
        _method(fitted, "interval", parameter=lambda: "rho"),
        ("parameter", "level", "method"),
    ),
    "summary": (_method(fitted, "summary"), ("level",)),
    "to_dict": (_method(fitted, "to_dict"), ("level",)),
    "margins": (_method(fitted, "margins"), ("target", "level", "at", "by", "kind")),
    "average": (_method(fitted, "average"), ("target", "level", "by")),
    "margins of a model": (
        _method(regressor, "margins", X=_X),
        ("X", "target", "level", "at", "by", "kind"),
    ),
    "average of a model": (
        _method(regressor, "average", X=_X),
        ("X", "target", "level", "by"),
    ),
    "to_frame": (_method(fitted, "to_frame"), ("level", "method")),
    "predict of a fit": (_method(fitted, "predict", data=_X), ("data", "target")),
    "tidy": (_method(fitted, "tidy"), ("level",)),
    "conf_int": (_method(fitted, "conf_int"), ("level",)),
    "augment": (_method(fitted, "augment"), ("data",)),
    "compare_fits": (
        lambda **o: str(hk.compare_fits(**{"fits": [fitted(), fitted()]} | o)),
        ("fits", "names"),
    ),
    "wald_test": (_method(fitted, "wald_test"), ("terms",)),
    "test_rho_zero": (_method(fitted, "test_rho_zero"), ("kind",)),
    "functional_form": (_method(fitted, "functional_form"), ("terms", "rows", "seed")),
    "bootstrap": (_method(fitted, "bootstrap", replicates=lambda: 3), ("replicates", "seed")),
    "quantile": (_method(_distribution, "quantile"), ("p",)),
    "cdf": (_method(_distribution, "cdf"), ("y",)),
    "log_density": (_method(_distribution, "log_density"), ("y",)),
    "interval": (_method(_distribution, "interval"), ("level",)),
    "frame of a distribution": (_method(_distribution, "to_frame"), ("level",)),
    "sample": (_method(_distribution, "sample", size=lambda: 2), ("size", "seed")),
    "take": (_method(_distribution, "take"), ("rows",)),
}
# what would be written, or would take as long as was asked for
SKIPPED = {("save", "path"), ("bootstrap", "replicates")}
PAIRS = [
    (call, name)
    for call, (_, names) in CALLS.items()
    for name in names
    if (call, name) not in SKIPPED
]


@st.composite
def argument_cases(draw):
    call, name = draw(st.sampled_from(PAIRS))
    value = draw(st.sampled_from(ODD))
    return f"{call}({name}={value!r:.200})", partial(CALLS[call][0], **{name: value})


ARGUMENTS = argument_cases()
