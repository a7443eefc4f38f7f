"""A model with a plan: saved with it, and refused if the plan was made to deceive."""

import warnings

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.saving.model_file import read_model, write_model

N = 500


def messy(n=N):
    draw = hk.datasets.make_controlled(n, rho=0.5, alpha=1.5, seed=5).frame
    rng = np.random.default_rng(0)
    X = draw[["x", "z"]].assign(
        gap=np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        kind=np.resize(["a", "b", "c"], n),
        agent=[f"agent {j}" for j in rng.integers(0, 90, n)],
        day=pd.date_range("2019-01-01", periods=n),
        again=draw["x"],
    )
    return X, draw["y"]


@pytest.fixture(scope="module")
def model():
    X, y = messy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return hk.HeckmanRegressor(["z"], method="ml", on_problem="fix").fit(X, y)


def test_a_loaded_model_has_the_plan_and_predicts_bit_identically(model, tmp_path):
    model.save(tmp_path / "m")
    loaded = hk.load(tmp_path / "m")
    assert loaded.plan_ == model.plan_
    assert list(loaded.feature_names_in_) == list(messy()[0].columns)
    rows = messy()[0].head(9).assign(kind=["new", *"abcabcab"], gap=np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for target in ("population", "unselected"):
            found = loaded.predict(rows, return_std=True, target=target)
            np.testing.assert_array_equal(found, model.predict(rows, True, target=target))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda plan: plan.pop("steps"), "lacks 'steps'"),
        (lambda plan: plan["steps"].pop(), "for other columns than those of the fit"),
        (lambda plan: plan["entries"].pop(), "entries are not its columns"),
        (lambda plan: plan["names"].append("x"), "a column twice"),
        (lambda plan: plan["steps"][0].update(kind="code"), "holds 'code' for 'kind'"),
        (lambda plan: plan["steps"][0].update(fill=float("nan")), "for 'fill'"),
        (lambda plan: plan["steps"][0].update(source="there"), "that it does not have"),
        (lambda plan: _of(plan, "means")["means"].pop(), "means do not match its levels"),
        (lambda plan: _of(plan, "category").update(other="there"), "the level of unseen ones"),
        (lambda plan: _of(plan, "category")["levels"].append("a"), "a level twice"),
        (lambda plan: _of(plan, "category")["levels"].append("q"), "other levels than those"),
        (lambda plan: _of(plan, "trend").update(origin="soon"), "which is not a date"),
    ],
)
def test_a_plan_made_to_deceive_is_refused(change, said, model, tmp_path):
    model.save(tmp_path / "m")
    content = read_model(tmp_path / "m")
    change(content["plan"])
    write_model(tmp_path / "m", content)
    with pytest.raises(hk.DataError, match=said):
        hk.load(tmp_path / "m")


def _of(plan, kind):
    return next(step for step in plan["steps"] if step["kind"] == kind)
