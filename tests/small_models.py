"""Small fitted models of every kind, each fitted when first asked for."""

from functools import cache

import numpy as np
from sklearn.base import clone

import heckesel as hk

N = 240
SIZES = {"epochs": 12, "n_members": 2, "hidden": (6, 5)}
SMALL = {"instruments": ["z"], "missing": "indicator", "networks": hk.Networks(**SIZES)}
FOLDED = SMALL | {"networks": hk.Networks(folds=2, **SIZES)}


def table():
    draw = hk.datasets.make_controlled(N, rho=0.9, alpha=1.0, seed=0)
    X, row = draw.frame[["x", "z"]].copy(), np.arange(N)
    X["größe"] = np.where(row % 3 == 0, "a", np.where(row % 2 == 0, "b", "ü"))
    X["flag"] = row % 7 < 3
    X["gaps"] = np.where(row % 11 == 0, np.nan, np.sin(row))
    return X, draw.frame["y"]


X, Y = table()
MODELS = {
    "linear": hk.HeckmanRegressor(["z"], method="ml", missing="indicator"),
    "linear shape": hk.HeckmanRegressor(["z"], method="ml", errors="shape", missing="indicator"),
    "linear auto": hk.HeckmanRegressor(["z"], missing="indicator", method="ml"),
    "linear two-step": hk.HeckmanRegressor("z", method="two-step", missing="indicator"),
    "two-step": hk.DeepHeckmanRegressor(method="two-step", **SMALL),
    "two-step on folds": hk.DeepHeckmanRegressor(noise="varying", **FOLDED),
    "joint": hk.DeepHeckmanRegressor(method="joint", **SMALL),
    "joint on folds": hk.DeepHeckmanRegressor(method="joint", **FOLDED),
    "ensemble": hk.DeepEnsembleRegressor(**SMALL),
    "ensemble on folds": hk.DeepEnsembleRegressor(**FOLDED),
    "linear log": hk.HeckmanRegressor(
        ["z"], method="ml", missing="indicator", target_transform="log"
    ),
    "joint log": hk.DeepHeckmanRegressor(method="joint", target_transform="log", **SMALL),
}


@cache
def fitted(name):
    """The model and the y it was fitted to, with X."""
    model = clone(MODELS[name])
    y = np.exp(Y / 4) if model.target_transform == "log" else Y
    return model.fit(X, y), y
