"""`DeepHeckmanRegressor`: the whole path from a table with missing outcomes to intervals."""

import json

import numpy as np
import pytest
from sklearn.base import clone

import heckesel as hk

FAST = hk.Networks(epochs=60, n_members=2)


@pytest.fixture(scope="module")
def draw():
    return hk.datasets.make_controlled(800, rho=0.9, alpha=1.0, seed=0)


@pytest.fixture(scope="module", params=["two-step", "joint"])
def fitted(request, draw):
    model = hk.DeepHeckmanRegressor(instruments=["z"], method=request.param, networks=FAST)
    return model.fit(draw.frame[["x", "z"]], draw.frame["y"])


def test_a_fit_has_the_verdict_of_identify(fitted, draw):
    assert fitted.identification_.verdict == "supported by the instrument"
    with pytest.warns(hk.IdentificationWarning, match="mostly prior"):
        blind = hk.DeepHeckmanRegressor(networks=FAST).fit(draw.frame[["x"]], draw.frame["y"])
    assert blind.identification_.verdict == "mostly prior"


def test_the_same_seed_gives_the_same_answer_and_another_does_not(draw):
    table, y = draw.frame[["x", "z"]], draw.frame["y"]
    one = hk.DeepHeckmanRegressor(["z"], random_state=3, networks=FAST).fit(table, y)
    two = clone(one).fit(table, y)
    other = clone(one).set_params(random_state=4).fit(table, y)
    np.testing.assert_array_equal(one.predict(table), two.predict(table))
    assert np.abs(one.predict(table) - other.predict(table)).max() > 1e-4


GOOD = hk.datasets.make_controlled(200, rho=0.5, alpha=1.0, seed=1).frame
TABLE = GOOD[["x", "z"]]
# Options of a two-step with the instrument z (and X or y in place of those of GOOD), and a part of
# the sentence that refuses them.
CASES = {
    "unknown method": ({"method": "three-step"}, "method must be one of two-step, joint"),
    "no member": ({"networks": hk.Networks(n_members=0)}, "n_members must be at least 1"),
    "unknown dtype": ({"networks": hk.Networks(dtype="half")}, "dtype must be one of"),
    "varying noise in the joint likelihood": (
        {"method": "joint", "noise": "varying", "networks": hk.Networks(folds=2, epochs=2)},
        'noise="varying" needs method="two-step"',
    ),
    "folds that are no number": (
        {"networks": hk.Networks(folds="five")},
        "folds must be a whole number, 'auto' or None",
    ),
    "networks that are a dict": ({"networks": {"epochs": 5}}, "networks must be hk.Networks(...)"),
    "unknown tails": ({"tails": "long"}, "tails must be one of normal, auto"),
    "a generator that is none": ({"random_state": "x"}, "random_state must be a whole number"),
}


def test_the_training_summary_can_be_written_as_json(fitted):
    back = json.loads(json.dumps(fitted.info_))
    assert back == fitted.info_


@pytest.mark.parametrize("name", CASES)
def test_bad_options_raise_one_sentence(name):
    options, fragment = CASES[name]
    options = {"X": TABLE, "y": GOOD.y, "instruments": ["z"], "networks": FAST} | options
    X, y = options.pop("X"), options.pop("y")
    with pytest.raises(hk.DataError) as caught:
        hk.DeepHeckmanRegressor(**options).fit(X, y)
    assert fragment in str(caught.value)
    assert "\n" not in str(caught.value)
