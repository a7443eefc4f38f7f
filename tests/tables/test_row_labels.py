"""Rows are paired by place; labels that say otherwise are refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import heckesel as hk

DRAW = hk.datasets.make_controlled(300, rho=0.6, alpha=1.0, seed=0)
X, Y = DRAW.frame[["x", "z"]], DRAW.frame["y"]
ONES, CHOSEN = pd.Series(1.0, X.index), Y.notna()
MODEL = hk.HeckmanRegressor(["z"], method="ml").fit(X, Y)
BINARY = (Y > 0).astype(float).where(Y.notna())
NETWORKS = hk.Networks(n_members=1, hidden=(4,), epochs=2, device="cpu")


def mixed(column):
    return column.sample(frac=1.0, random_state=1)


CALLS = {
    "y": lambda: hk.HeckmanRegressor(["z"], method="ml").fit(X, mixed(Y)),
    "y of networks": lambda: hk.DeepHeckmanRegressor(["z"], networks=NETWORKS).fit(X, mixed(Y)),
    "selected": lambda: hk.HeckmanRegressor(["z"], method="ml").fit(X, Y, selected=mixed(CHOSEN)),
    "sample_weight": lambda: hk.HeckmanRegressor(["z"], method="ml").fit(
        X, Y, sample_weight=mixed(ONES)
    ),
    "y of a score": lambda: MODEL.score(X, mixed(Y)),
    "y of a verdict": lambda: hk.identify(X, mixed(Y), instruments=["z"]),
    "y of classes": lambda: hk.HeckmanClassifier(["z"], method="ml").fit(X, mixed(BINARY)),
    "weights": lambda: hk.heckman("y ~ x", "~ x + z", DRAW.frame, weights=mixed(ONES)),
    "w": lambda: hk.heckman(y=Y, x=X[["x"]], w=mixed(X)),
}


@pytest.mark.parametrize("case", CALLS)
def test_the_same_labels_in_another_order_are_refused(case):
    name = case.partition(" ")[0]
    said = rf" and {name} have the same labels in another order .*{name}\.reindex\((X|x|data)\.ind"
    with pytest.raises(hk.DataError, match=said):
        CALLS[case]()


def test_both_ways_out_lead_out():
    expected = MODEL.coef_
    found = hk.HeckmanRegressor(["z"], method="ml").fit(X, mixed(Y).reindex(X.index)).coef_
    np.testing.assert_array_equal(found, expected)
    y = mixed(Y)
    relabelled = X.loc[y.index].reset_index(drop=True)  # each x beside its y, under another label
    with pytest.raises(hk.DataError, match=r"or y\.to_numpy\(\) if rows correspond by position"):
        hk.HeckmanRegressor(["z"], method="ml").fit(relabelled, y)
    found = hk.HeckmanRegressor(["z"], method="ml").fit(relabelled, y.to_numpy()).coef_
    np.testing.assert_allclose(found, expected, rtol=1e-8)  # sums in another order


@pytest.mark.parametrize(
    ("table", "y"),
    [
        (X, Y),
        (X, Y.to_numpy()),
        (X.to_numpy(), mixed(Y).sort_index()),
        (X, Y.set_axis(range(1000, 1300))),
        (X.set_axis(np.arange(300) // 2), Y.set_axis(np.arange(300) // 3)),
        (pl.from_pandas(X), Y),
    ],
    ids=["equal", "array", "array X", "other labels", "repeated labels", "polars"],
)
def test_row_labels_that_identify_no_rows_are_ignored(table, y):
    model = hk.HeckmanRegressor([1], method="ml").fit(table, y)
    np.testing.assert_allclose(model.coef_, MODEL.coef_, rtol=1e-8)
