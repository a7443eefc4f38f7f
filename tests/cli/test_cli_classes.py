"""The commands for an outcome with two classes."""

import io
import json

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from heckesel.tables.files import TableFile
from tests.cli.command_line import run

ROLES = ["--outcome", "repaid", "--instruments", "branch"]
RULE = "repaid has two classes, 0 and 1; predictions are probabilities of 1"


def loans(zero=0, one=1, n=1500):
    draw = hk.datasets.make_loans(n, rho=-0.5, seed=3)
    frame = draw.frame.rename(columns={"leniency": "branch"}).round(6)
    repaid = [None if np.isnan(y) else (one, zero)[int(y)] for y in frame.pop("default")]
    return frame.assign(repaid=pd.Series(repaid, dtype=object))


def test_fit_names_the_two_classes_and_predict_writes_probabilities(data, model, tmp_path, capsys):
    shown = run(capsys, "fit", data, *ROLES, "--method", "ml", "--out", model)
    assert shown.out.splitlines()[0].startswith(RULE)
    assert "Identification: supported by the instrument" in shown.out
    out = tmp_path / "predicted.csv"
    shown = run(capsys, "predict", model, data, "--target", "unselected", "--out", out)
    assert (shown.code, shown.err) == (0, "Predicted: probability that repaid is 1\n")
    predicted, given = pd.read_csv(out), loans()
    added = ["probability", "low", "high", "class"]
    assert list(predicted.columns) == [*given.columns, *added]
    fitted = hk.HeckmanClassifier(["branch"], method="ml").fit(
        given.drop(columns="repaid"), given["repaid"]
    )
    expected = fitted.predict_proba(given, "unselected")[:, 1]
    np.testing.assert_allclose(predicted["probability"], expected, rtol=1e-9)
    interval = fitted.predict_proba_interval(given, 0.9, "unselected")
    np.testing.assert_allclose(predicted[["low", "high"]], interval, rtol=1e-7)
    np.testing.assert_array_equal(predicted["class"], expected > 0.5)


def test_the_default_for_two_classes_needs_no_networks(data, tmp_path, capsys):
    out = tmp_path / "m.heckesel"
    shown = run(capsys, "fit", data, *ROLES, "--out", out, "--json")
    assert shown.code == 0
    said = json.loads(shown.out)
    assert (said["method"], said["kind"], said["classes"]) == ("auto", "classification", [0, 1])
    assert (said["rows"], said["selected"]) == (1500, int(loans()["repaid"].notna().sum()))
    assert said["sigma"] is None
    assert said["rho"] == pytest.approx(np.mean(hk.load(out).rho_))
    shown = run(capsys, "predict", out, data)
    predicted = pd.read_csv(io.StringIO(shown.out))
    assert predicted["probability"].between(0, 1).all()
    assert (predicted["low"] <= predicted["high"]).all()


@pytest.mark.parametrize(("zero", "one"), [("no", "yes"), (False, True), ("late", "paid")])
def test_strings_and_booleans_are_classes_in_csv_and_parquet(zero, one, tmp_path, capsys):
    frame = loans(zero, one)
    for name in ("t.csv", "t.parquet"):
        path, out = tmp_path / name, tmp_path / f"{name}.heckesel"
        frame.to_csv(path, index=False) if name.endswith("csv") else frame.to_parquet(path)
        shown = run(capsys, "fit", path, *ROLES, "--method", "ml", "--out", out)
        assert shown.code == 0
        assert f"repaid has two classes, {zero} and {one}" in shown.out
        written = tmp_path / f"p_{name}"
        assert run(capsys, "predict", out, path, "--out", written).code == 0
        read = pd.read_csv if name.endswith("csv") else pd.read_parquet
        assert set(read(written)["class"].astype(str)) <= {str(zero), str(one)}


def test_kind_overrides_the_detected_kind_both_ways(data, tmp_path, capsys):
    out = tmp_path / "m"
    options = ["--method", "two-step", "--out", out]
    assert run(capsys, "fit", data, *ROLES, "--kind", "regression", *options).code == 0
    assert isinstance(hk.load(out), hk.HeckmanRegressor)
    other = tmp_path / "other.csv"
    loans(1, 2).to_csv(other, index=False)  # 1 and 2 are numbers unless someone says otherwise
    assert "two classes" not in run(capsys, "fit", other, *ROLES, *options).out
    shown = run(
        capsys, "fit", other, *ROLES, "--kind", "classification", "--method", "ml", "--out", out
    )
    assert "two classes, 1 and 2" in shown.out
    booleans = tmp_path / "booleans.csv"
    loans(False, True).to_csv(booleans, index=False)
    shown = run(capsys, "fit", booleans, *ROLES, "--kind", "regression", *options)
    assert (shown.code, isinstance(hk.load(out), hk.HeckmanRegressor)) == (0, True)


def outcome(values, kind="auto", selected=None):
    table = TableFile(pd.DataFrame({"y": values}), "t.csv")
    return table.outcome("y", kind, selected)[1]


def test_diagnose_uses_the_default_and_compare_both_classifiers(data, capsys):
    shown = run(capsys, "diagnose", data, *ROLES)
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0].startswith(RULE)
    frame = loans()
    fitted = hk.HeckmanClassifier(["branch"]).fit(frame.drop(columns="repaid"), frame["repaid"])
    verdict = str(fitted.identification_).replace("hk.test_instruments", "heckesel diagnose")
    assert f"Identification: {verdict}" in lines
    shown = run(capsys, "diagnose", data, *ROLES, "--json")
    printed = json.loads(shown.out)
    found = printed["identification"]["evidence"]["posterior_rho"]
    assert found == pytest.approx(fitted.rho_, abs=1e-6)
    assert [test["name"] for test in printed["tests"]["tests"]] == ["inequalities"]
    shown = run(capsys, "compare", data, *ROLES, "--splits", 2, "--json")
    rows = {row["method"]: row for row in json.loads(shown.out)["methods"]}
    assert set(rows) == {"ml", "auto"}
    assert 0.5 < rows["ml"]["accuracy_given_selection"] <= 1
    shown = run(capsys, "compare", data, *ROLES, "--methods", "ml", "--splits", 2)
    assert "accuracy | selected" in shown.out
    assert shown.out.startswith(RULE)


@pytest.mark.parametrize(
    ("command", "options", "sentence"),
    [
        (
            "fit",
            ["--method", "deep-two-step"],
            "two-step needs a numeric outcome, but repaid has two classes",
        ),
        ("fit", ["--transform", "log"], "--transform needs a numeric outcome"),
        ("fit", ["--errors", "t"], "--errors needs a numeric outcome"),
        (
            "compare",
            ["--methods", "deep-joint"],
            "joint needs a numeric outcome, but repaid has two classes",
        ),
    ],
)
def test_options_for_numbers_are_refused_for_two_classes(command, options, sentence, data, capsys):
    loans("no", "yes").to_csv(data, index=False)
    out = ["--out", data.parent / "m"] if command == "fit" else []
    shown = run(capsys, command, data, *ROLES, *options, *out)
    assert shown.code == 2
    assert sentence in shown.err
    assert shown.err.count("\n") == 1
    assert [path.name for path in data.parent.iterdir()] == ["loans.csv"]
