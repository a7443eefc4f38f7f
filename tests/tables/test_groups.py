"""`groups=`: rows that belong together, in every estimator, in folds, in files and in the shell."""

import json

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.tables.problems import repeated_units as repeated_units_question
from tests.cli.command_line import run
from tests.repeated_units import all_outcomes, repeated_units

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = hk.Networks(n_members=5, hidden=(4,), epochs=5)
ESTIMATORS = {
    "linear": hk.HeckmanRegressor(["z"], method="ml"),
    "two-step": hk.DeepHeckmanRegressor(["z"], networks=SMALL),
    "ensemble": hk.DeepEnsembleRegressor(["z"], networks=SMALL),
    "classes": hk.HeckmanClassifier(["z"], method="ml"),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_name_is_the_same_as_its_values_and_is_no_regressor(name, tmp_path):
    X, y = repeated_units(0, units=60, rows=4)
    y = y if name != "classes" else (y > 0).astype(float).where(y.notna())
    ESTIMATORS[name].fit(X, y, groups="id").save(tmp_path / "m")
    by_name, others = hk.load(tmp_path / "m"), X.drop(columns="id")
    by_value = ESTIMATORS[name].fit(others, y, groups=[f"unit {each}" for each in X["id"]])
    assert list(by_name.feature_names_in_) == list(others)
    assert (by_name.groups_name_, by_value.groups_name_) == ("id", None)
    np.testing.assert_array_equal(by_name.predict(X), by_value.predict(others))
    if "classes" in name or "linear" in name:  # the file has the t(G - 1) of the intervals
        pd.testing.assert_frame_equal(by_name.result_.to_frame(), by_value.result_.to_frame())
        assert by_name.result_.freedom == 59


@pytest.mark.parametrize("name", ["linear", "classes", "heckman"])
def test_repeating_each_row_in_its_group_changes_no_standard_error(name):
    """A group of two equal rows has the score of one row twice, so the sandwich is the same."""
    X, y = repeated_units(2, units=200, rows=1)
    y = y if name != "classes" else (y > 0).astype(float).where(y.notna())
    found = []
    for rows, groups in ((X, np.arange(200)), (pd.concat([X, X]), np.tile(np.arange(200), 2))):
        frame, outcome = rows.drop(columns="id"), y.loc[rows.index].to_numpy()
        if name == "heckman":
            both = frame.assign(y=outcome)
            found.append(hk.heckman("y ~ g0 + x", "~ g0 + x + z", both, groups=groups).se)
        else:
            found.append(ESTIMATORS[name].fit(frame, outcome, groups=groups).result_.se)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)


@pytest.mark.slow
def test_intervals_keep_their_level_for_units_that_were_not_in_the_fit():
    new, y_new, _ = all_outcomes(99, units=2000, rows=1)
    covered = []
    for seed in range(3):
        X, y = repeated_units(seed, units=150, rows=8)
        networks = hk.Networks(n_members=10, hidden=(32, 32), epochs=600)
        model = hk.DeepHeckmanRegressor(["z"], networks=networks)
        covered.append([])
        for given in ({}, {"groups": X["id"]}):
            low, high = model.fit(X.drop(columns="id"), y, **given).predict_interval(new).T
            covered[-1].append(np.mean((low <= y_new) & (y_new <= high)))
    without, kept = np.mean(covered, axis=0)
    # With 150 units the coverage of one fit has a standard deviation of .02, and of three .013.
    assert abs(kept - 0.9) < 4 * 0.013
    assert without < kept - 4 * 0.013


def test_a_column_that_names_units_raises_the_question():
    X, y = repeated_units(5, units=60, rows=3)
    asked = "'id' repeats 60 values; if rows with the same id belong to one unit, pass groups='id'"
    with pytest.warns(UserWarning, match=asked):
        hk.HeckmanRegressor(["z"], method="ml").fit(X, y)
    assert asked in str(hk.column_report(X, y, instruments=["z"]))
    assert hk.column_report(X, y, instruments=["z"], groups="id").question == ""
    plain = X[["x", "z", "id"]].rename(columns={"id": "grid"})
    assert hk.column_report(plain, y).question == ""
    once = X.groupby("id", as_index=False).first()
    assert hk.column_report(once, y[::3], instruments=["z"]).question == ""


UNITS = 60


def plain_rows(**columns):
    """The column `name` with each of its values, and three rows of each of UNITS values."""
    rng, own = np.random.default_rng(11), np.repeat(np.arange(UNITS), 3)
    rng.shuffle(own)
    made = {name: make(own, rng) for name, make in columns.items()}
    return pd.DataFrame({"x": rng.normal(size=len(own)), **made})


NAMES_UNITS = {
    "codes": {"plane": lambda own, rng: [f"N{14000 + 7 * j}A" for j in own]},
    "one row on each date": {
        "shop": lambda own, rng: [f"shop {j}" for j in own],
        "day": lambda own, rng: [
            f"2020-01-0{1 + j}" for j in pd.Series(own).groupby(own).cumcount()
        ],
    },
    "constant attributes": {
        "who": lambda own, rng: own,
        "born": lambda own, rng: 1950 + 7 * own % 11,
        "female": lambda own, rng: own % 2 == 1,
    },
}
NAMES_NONE = {
    "amounts": {"pay": lambda own, rng: 20_000 + 500 * own},
    "categories that repeat": {
        "town": lambda own, rng: [f"town {j}" for j in own],
        "year": lambda own, rng: rng.integers(2001, 2004, len(own)),
    },
    "other names": {
        "place": lambda own, rng: own,
        "place_name": lambda own, rng: [f"place {7 * j % 61}" for j in own],
        "place_code": lambda own, rng: 11 * own % 61,
    },
}


@pytest.mark.parametrize("kind", NAMES_UNITS)
def test_values_that_name_units_raise_the_question(kind):
    X = plain_rows(**NAMES_UNITS[kind])
    asked = repeated_units_question(X)
    assert asked.startswith(f"column {X.columns[1]!r} repeats {UNITS} values")


@pytest.mark.parametrize("kind", NAMES_NONE)
def test_other_repeated_values_raise_no_question(kind):
    assert repeated_units_question(plain_rows(**NAMES_NONE[kind])) == ""


def test_the_shell_takes_groups(tmp_path, capsys):
    X, y = repeated_units(6, units=60, rows=4)
    path, model, page = tmp_path / "t.csv", tmp_path / "m", tmp_path / "r.html"
    X.assign(y=y).to_csv(path, index=False)
    roles = [path, "--outcome", "y", "--instruments", "z", "--groups", "id"]
    linear = ["--method", "ml", "--json"]
    shown = run(capsys, "fit", *roles, *linear, "--out", model, "--report", page)
    assert shown.code == 0, shown.err
    assert "id" not in json.loads(shown.out)["columns"]
    assert "60 clusters" in hk.load(model).result_.summary()
    X.drop(columns="id").to_csv(tmp_path / "new.csv", index=False)
    assert run(capsys, "predict", model, tmp_path / "new.csv").code == 0
    shown = run(capsys, "diagnose", *roles)
    assert (shown.code, "Question" in shown.out) == (0, False)
    assert "pass groups='id'" in run(capsys, "diagnose", *roles[:-2]).out
    assert run(capsys, "compare", *roles, "--methods", "ml", "--splits", "2").code == 0
    both = run(capsys, "fit", *roles, "--exclude", "id", "--out", model)
    assert "both as excluded column and as groups column" in both.err


def _fit(groups, instruments=("z",), X=None):
    frame, y = repeated_units(9, units=30, rows=3)
    return hk.HeckmanRegressor(list(instruments), method="ml").fit(
        frame if X is None else X, y, groups=groups
    )


WRONG = {
    "a name that X lacks": (lambda: _fit("ids"), "no column 'ids', given as groups; did you me"),
    "an instrument": (lambda: _fit("z"), "'z' is given both as instruments and as groups"),
    "positions": (lambda: _fit("id", [4]), "give names in instruments instead of positions"),
    "a name for an array": (lambda: _fit("id", [4], np.zeros((90, 6))), "is a name but X has none"),
    "a missing one": (lambda: _fit([None, *range(89)]), "groups have missing values"),
    "too few groups": (
        lambda: hk.DeepHeckmanRegressor(["z"], networks=SMALL).fit(
            *repeated_units(9, units=4, rows=60), groups="id"
        ),
        "4 groups with selected units cannot be split into 5 folds",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_groups_that_cannot_be_used_are_named(name):
    call, said = WRONG[name]
    with pytest.raises(hk.DataError, match=said):
        call()
