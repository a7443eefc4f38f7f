"""Bad calls from Python: one sentence each."""

import numpy as np
import pandas as pd
import pytest

import heckesel as hk

RNG = np.random.default_rng(5)
X = pd.DataFrame(RNG.normal(size=(40, 2)), columns=["a", "b"])
Y = pd.Series(np.where(X["b"] + RNG.normal(size=40) > 0, X["a"], np.nan), name="y")
USES = {
    "an instrument that is no column": lambda: hk.HeckmanRegressor("c", method="ml").fit(X, Y),
    "an instrument beyond the columns": lambda: hk.HeckmanRegressor([7], method="ml").fit(X, Y),
    "instruments alone": lambda: hk.HeckmanRegressor(["a", "b"], method="ml").fit(X, Y),
    "an unknown method": lambda: hk.HeckmanRegressor(method="x").fit(X, Y),
    "an unknown transform": lambda: hk.HeckmanRegressor(target_transform="x", method="ml").fit(
        X, Y
    ),
    "an unknown way with gaps": lambda: hk.HeckmanRegressor(missing="drop", method="ml").fit(X, Y),
    "no y": lambda: hk.HeckmanRegressor(method="ml").fit(X, None),
    "y of another length": lambda: hk.HeckmanRegressor("b", method="ml").fit(X, Y[:10]),
    "y that is nowhere": lambda: hk.HeckmanRegressor("b", method="ml").fit(X, Y * np.nan),
    "selected that is no mask": lambda: hk.HeckmanRegressor("b", method="ml").fit(
        X, Y, selected=Y * 0 + 3
    ),
    "negative weights": lambda: hk.HeckmanRegressor("b", method="ml").fit(
        X, Y, sample_weight=-np.ones(40)
    ),
    "weights of another length": lambda: good().score(X, Y, sample_weight=np.ones(3)),
    "a column too few": lambda: good().predict(X[["b"]]),
    "a level beyond one": lambda: good().predict_interval(X, 1.5),
    "an unknown target": lambda: good().predict_distribution(X, "all"),
    "unselected without the instrument": lambda: good().predict_distribution(
        X[["a"]], "unselected"
    ),
    "text for numbers": lambda: good().predict(X.assign(a="x")),
    "an array too narrow": lambda: good().predict(X.to_numpy()[:, :1]),
    "a model that is not there": lambda: hk.load("/nowhere/model"),
    "a quantile of one": lambda: good().predict_distribution(X).quantile(1.0),
}


def good():
    return hk.HeckmanRegressor("b", method="ml").fit(X, Y)


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_wrong_use_from_python_raises_one_sentence(use):
    with pytest.raises(hk.DataError) as caught:
        use()
    assert "\n" not in str(caught.value).strip()
    assert len(str(caught.value)) > 20
