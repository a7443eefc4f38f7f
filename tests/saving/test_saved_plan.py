"""A model with a plan: saved with it, and refused if the plan was made to deceive."""

import warnings

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from tests.saving.test_hostile_files import refused_if, set_at

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
    assert loaded.columns_ == model.columns_
    assert list(loaded.feature_names_in_) == list(messy()[0].columns)
    rows = messy()[0].head(9).assign(kind=["new", *"abcabcab"], gap=np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for target in ("population", "unselected"):
            found = loaded.predict(rows, return_std=True, target=target)
            np.testing.assert_array_equal(found, model.predict(rows, True, target=target))


PLAN = ("fitted", "columns_")


def of(rule, **changes):
    """A change of the first rule of this kind."""

    def change(content, tensors):
        plan = content["fitted"]["columns_"]["fields"]
        steps = (step["fields"] for step in plan["steps"]["$tuple"])
        next(step for step in steps if step["kind"] == rule).update(changes)

    return change


def less(pair):
    return {"$tuple": pair["$tuple"][:-1]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (set_at(*PLAN, "steps", value=5), "for 'steps'"),
        (set_at(*PLAN, "steps", value=lambda old: {"$tuple": []}), "none for the outcome"),
        (set_at(*PLAN, "entries", value=less), "entries that are not its columns"),
        (
            set_at(*PLAN, "given_names", value=lambda old: {"$tuple": [*old["$tuple"], "x"]}),
            "twice",
        ),
        (of("number", kind="code"), "contradicts itself"),
        (of("number", fill={"$float": "nan"}), "contradicts itself"),
        (of("number", source="there"), "contradicts itself"),
        (of("category", shares={"$tuple": [1.0]}), "contradicts itself"),
        (of("category", levels={"$tuple": ["a", "a"]}), "contradicts itself"),
        (of("category", levels={"$tuple": []}), "contradicts itself"),
        (of("trend", origin="soon"), "do not form a Columns"),
    ],
)
def test_a_plan_made_to_deceive_is_refused(change, said, model, tmp_path):
    model.save(tmp_path / "m")
    assert said in refused_if(tmp_path / "m", change)
