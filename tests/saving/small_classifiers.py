"""Small fitted classifiers of every kind, each fitted when first asked for."""

from functools import cache

import numpy as np
import pandas as pd
from sklearn.base import clone

import heckesel as hk
from tests.small_models import N, X

FEW, RARE = X[["x", "z"]], np.arange(N) % 12 == 0


def labels(zero="bad", one="good", *, seen=True, apart=False):
    """y of X, missing where it was not seen unless all are."""
    rng = np.random.default_rng(5)
    u, e = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], N).T
    s = 0.3 + X["x"] / 3 + X["z"] + u > 0
    second = X["x"] > 0 if apart else X["x"] / 2 + e > 0
    y = pd.Series(np.where(second, one, zero), dtype=object, name="paid")
    return y.where(s, None) if seen else y


CLASSIFIERS = {
    "linear": (hk.HeckmanClassifier(["z"], missing="indicator", method="ml"), X, labels()),
    "truths": (hk.HeckmanClassifier(["z"], method="ml"), FEW, labels(False, True)),
    "nothing to correct": (hk.HeckmanClassifier(["z"], method="ml"), FEW, labels(0, 1, seen=False)),
    "separated": (hk.HeckmanClassifier(["z"], method="ml"), FEW, labels(0, 1, apart=True)),
    "separated in part": (
        hk.HeckmanClassifier(["z"], method="ml"),
        FEW.assign(rare=RARE),
        labels(0, 1).mask(RARE & labels(0, 1).notna(), 1),
    ),
}


@cache
def fitted(name):
    """The model, its X and its y."""
    model, columns, y = CLASSIFIERS[name]
    return clone(model).fit(columns, y), columns, y
