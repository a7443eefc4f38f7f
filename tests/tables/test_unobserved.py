"""Values of the outcome that stand for a missing one."""

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.tables.fit_input import disguised
from tests.cli.command_line import run

ROLES = ["--outcome", "salary", "--instruments", "z"]


def placement(code=0.0):
    """Salaries, and `code` for those who were not placed."""
    frame = hk.datasets.make_controlled(400, rho=0.5, alpha=1.5, seed=3).frame
    frame = frame[["x", "z"]].assign(salary=10 + frame["y"].round(3))
    return frame.fillna({"salary": code})


@pytest.mark.parametrize("code", [0.0, -1.0, -9.0, 99.0, 999.0])
def test_a_spike_at_a_usual_code_is_found(code):
    assert disguised(placement(code)["salary"].to_numpy()) == code


@pytest.mark.parametrize(
    "model",
    [
        hk.HeckmanRegressor(["z"], method="ml"),
        hk.DeepHeckmanRegressor(["z"], networks=hk.Networks(n_members=1, epochs=2)),
        hk.DeepEnsembleRegressor(["z"], networks=hk.Networks(n_members=1, epochs=2)),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_unobserved_is_the_same_as_missing(model):
    zeros, missing = placement(), placement(np.nan)
    X = zeros[["x", "z"]]
    said = "'salary' is 0 in .* of 400 rows; if this value stands for a missing outcome, pass"
    with pytest.warns(hk.IdentificationWarning, match=said):
        model.fit(X, zeros["salary"])
    expected = model.set_params(unobserved=None).fit(X, missing["salary"])
    mean = np.asarray(expected.predict(X))
    scores = [f(X, missing["salary"]) for f in (expected.score, expected.log_likelihood)]
    found = model.set_params(unobserved=0).fit(X, zeros["salary"])
    np.testing.assert_array_equal(found.predict(X), mean)
    assert scores == [f(X, zeros["salary"]) for f in (found.score, found.log_likelihood)]


def test_identify_warns_of_a_spike_and_accepts_unobserved():
    zeros = placement()
    X = zeros[["x", "z"]]
    asked = hk.identify(X, zeros["salary"], instruments=["z"])
    assert asked.verdict == "nothing to correct"
    assert "if this value stands for a missing outcome, pass unobserved=0 (--unobserved 0" in str(
        asked
    )
    found = hk.identify(X, zeros["salary"], instruments=["z"], unobserved=[0, 999])
    expected = hk.identify(X, placement(np.nan)["salary"], instruments=["z"])
    assert (found.verdict, found.evidence) == (expected.verdict, expected.evidence)
    fit = hk.heckman("salary ~ x", select="~ x + z", data=zeros)
    assert "if this value stands for a missing outcome" in str(fit.identification)


def test_strings_and_labels_can_stand_for_a_missing_outcome():
    missing = placement(np.nan)
    X, y = missing[["x", "z"]], missing["salary"]
    strings = y.astype(object).where(y.notna(), "")
    linear = hk.HeckmanRegressor(["z"], method="ml").fit(X, y)
    found = hk.HeckmanRegressor(["z"], method="ml", unobserved="").fit(X, strings)
    assert found.rho_ == linear.rho_
    labels = np.where(y > 10, "high", "low").astype(object)
    classes = pd.Series(labels).where(y.notna(), None)
    expected = hk.HeckmanClassifier(["z"], method="ml").fit(X, classes)
    model = hk.HeckmanClassifier(["z"], unobserved="unknown", method="ml")
    found = model.fit(X, classes.fillna("unknown"))
    assert (found.rho_, list(found.classes_)) == (expected.rho_, ["high", "low"])
    assert found.score(X, classes.fillna("unknown")) == expected.score(X, classes)
    with pytest.raises(
        hk.DataError, match="pass as unobserved= the one that stands for a missing outcome"
    ):
        hk.HeckmanClassifier(["z"], method="ml").fit(X, classes.fillna("unknown"))


@pytest.mark.parametrize("given", [pd.NA, pd.DataFrame({"a": [1]}), object(), [[0]], {"a": 1}])
def test_an_unusable_value_is_refused(given):
    frame = placement()
    with pytest.raises(hk.DataError, match="unobserved must be a value of the outcome or a list"):
        hk.HeckmanRegressor(["z"], unobserved=given, method="ml").fit(
            frame[["x", "z"]], frame["salary"]
        )


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_the_shell_warns_of_a_spike_and_accepts_unobserved(name, tmp_path, capsys):
    path, out = tmp_path / name, tmp_path / "m"
    frame = placement()
    frame.to_csv(path, index=False) if name == "t.csv" else frame.to_parquet(path)
    shown = run(capsys, "diagnose", path, *ROLES)
    assert "nothing to correct" in shown.out
    assert "--unobserved 0 in the shell" in shown.out
    shown = run(capsys, "diagnose", path, *ROLES, "--unobserved", "0")
    assert "\nIdentification: supported by the instrument" in shown.out
    shown = run(capsys, "fit", path, *ROLES, "--unobserved", "0", "--method", "ml", "--out", out)
    expected = hk.HeckmanRegressor(["z"], method="ml", unobserved=0).fit(
        frame[["x", "z"]], frame["salary"]
    )
    assert hk.load(out).rho_ == pytest.approx(expected.rho_, rel=1e-9)  # text keeps 17 digits
    shown = run(capsys, "diagnose", path, *ROLES, "--unobserved", "0,-1")
    assert (shown.code, shown.out) == (2, "")
    assert f"--unobserved -1: column 'salary' has this value in no row of {path}" in shown.err
