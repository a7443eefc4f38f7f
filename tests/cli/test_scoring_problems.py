"""`predict` with a model fitted with --on-problem fix: no row stops the others."""

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from tests.cli.command_line import run

ROLES = ["--outcome", "y", "--instruments", "z", "--method", "ml"]
N = 300


@pytest.fixture(scope="module")
def frame():
    draw = hk.datasets.make_controlled(N, rho=0.5, alpha=1.5, seed=3).frame
    return draw[["x", "z", "y"]].assign(icd=np.resize(["250", "414", "V57"], N))


@pytest.fixture(scope="module", params=["numbers", "classes"])
def fitted(request, frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scoring")
    if request.param == "classes":
        frame = frame.assign(y=np.where(frame["y"].isna(), "", np.where(frame["y"] > 1, "b", "a")))
    frame.to_csv(folder / "t.csv", index=False)
    from heckesel.cli import main

    with pytest.raises(SystemExit) as done:
        main(["fit", str(folder / "t.csv"), *ROLES, "--out", str(folder / "m")])
    assert done.value.code == 0
    return folder / "m"


def test_rows_that_can_be_predicted_are_and_others_have_a_reason(fitted, frame, tmp_path, capsys):
    rows = frame.head(6).drop(columns="y").astype({"x": object})
    rows["icd"] = ["250", "414", "E11", "250", None, None]
    rows.loc[3, "x"] = "lots"
    rows.loc[4, ["x", "z"]] = None
    rows.loc[5, "x"] = None
    rows.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "p.csv"
    shown = run(capsys, "predict", fitted, tmp_path / "new.csv", "--force", "--out", out)
    assert shown.code == 1
    assert "icd: 1 row has a level that did not occur in the fit (E11); treated as" in shown.err
    assert "3 of 6 rows could not be predicted; the column reason says why" in shown.err
    predicted = pd.read_csv(out)
    first = "probability" if "probability" in predicted else "mean"
    assert list(predicted["reason"].fillna("")) == [
        *("", "", ""),
        "x is 'lots', not a finite number",
        *["no column has a value"] * 2,
    ]
    names = list(predicted.columns[-5:-1])
    assert list(predicted[names].isna().all(axis=1)) == [False] * 3 + [True] * 3
    whole = hk.load(fitted)
    X = frame.head(2).assign(icd=["250", "414"])
    expected = whole.predict(X) if first == "mean" else whole.predict_proba(X)[:, 1]
    np.testing.assert_allclose(predicted[first][:2], expected, rtol=1e-12)


def test_a_model_not_to_be_used_predicts_by_force_and_repeats_why(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x, z, u = rng.normal(size=(3, 80))
    y = np.where(x + z + u > 0, 1 + x + 2 * u, np.nan)
    pd.DataFrame({"x": x, "z": z, "y": y}).to_csv(tmp_path / "t.csv", index=False)
    roles = ["--outcome", "y", "--instruments", "z", "--method", "ml"]
    run(capsys, "fit", tmp_path / "t.csv", *roles, "--out", tmp_path / "m")
    typed = ("predict", tmp_path / "m", tmp_path / "t.csv", "--target", "selected")
    shown = run(capsys, *typed)
    assert shown.code == 2
    assert shown.err.startswith(
        "heckesel: contradicted: the estimate of rho is +1, the end of its range"
    )
    assert shown.err.endswith("add --force\n")
    shown = run(capsys, *typed, "--force")
    assert shown.code == 0
    caveat, correlation = shown.err.splitlines()
    assert caveat.startswith("note: contradicted")
    assert correlation.startswith("note: the estimated correlation of the errors lies beyond 0.999")
