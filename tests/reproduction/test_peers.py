"""Other packages on the truth table; those that are not installed are skipped."""

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from reproduction import x6_peers
from reproduction.truth.sources import OUTCOMES


def test_every_peer_has_a_cell_for_every_outcome():
    assert len(set(x6_peers.cells())) == len(OUTCOMES) * len(x6_peers.METHODS)


@pytest.mark.parametrize("method", x6_peers.METHODS)
def test_peers_agree_with_least_squares_where_nothing_is_selected_on(method, monkeypatch):
    """Selection by a coin and an instrument: the mean of the hidden is that of the others."""
    package = {"StatsPAI ML": "statspai", "DoubleML MAR": "doubleml", "MAPIE conformal": "mapie"}
    pytest.importorskip(package.get(method, "statsmodels"))
    monkeypatch.setattr(x6_peers, "REPLICATIONS", 20)
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(1500, 2)), columns=["a", "z"])
    x["c"] = rng.choice(["u", "v"], size=len(x))
    y = x["a"] + (x["c"] == "v") + rng.normal(size=len(x))
    hidden = rng.normal(size=len(x)) + x["z"] > 0
    found = x6_peers.METHODS[method](x, y.mask(hidden), ["z"], None)
    assert found[0] == pytest.approx(y[hidden].mean(), abs=0.35)
    if method != "MAPIE conformal":
        assert found[1] < y[hidden].mean() < found[2]
    else:
        low, high = found[3].T
        assert 0.85 < ((low < y[hidden]) & (y[hidden] < high)).mean() < 0.97


def test_the_estimate_of_statspai_is_that_of_heckesel():
    """The same likelihood and the same mean of the unselected, with a strong instrument."""
    pytest.importorskip("statspai")
    frame = hk.datasets.make_controlled(2000, rho=0.6, alpha=1.0, seed=0).frame
    x, y = frame[["x", "z"]], frame["y"]
    model = hk.HeckmanRegressor(["z"], method="ml").fit(x, y)
    row = model.average(x[y.isna()], "unselected", level=0.9)[["mean", "low", "high"]].iloc[0]
    assert x6_peers.statspai_ml(x, y, ["z"], None) == pytest.approx(tuple(row), abs=0.01)
