"""The four commands on tables of every kind, and the tables themselves."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import heckesel as hk
from tests.cli.command_line import run

ROLES = ["--outcome", "repaid", "--instruments", "branch"]


def loans(n=300):
    draw = hk.datasets.make_controlled(n, rho=0.5, alpha=1.5, seed=3)
    frame = draw.frame.rename(columns={"x": "income", "z": "branch", "y": "repaid"})
    frame = frame[["income", "branch", "repaid"]].round(6)
    return frame.assign(kind=np.where(np.arange(n) % 3 == 0, "néw", "old"))


def test_the_four_commands_from_a_table_to_predictions(data, model, tmp_path, capsys):
    shown = run(capsys, "diagnose", data, *ROLES)
    assert shown.code == 0
    first, *entries = shown.out.partition("\nIdentification: ")[0].splitlines()
    assert first.split() == ["column", "kind", "values", "missing", "action"]
    assert [entry.split()[0] for entry in entries] == ["income", "branch", "kind"]
    assert "\nIdentification: supported by the instrument: branch determines" in shown.out
    out = tmp_path / "predicted.csv"
    shown = run(capsys, "predict", model, data, "--target", "unselected", "--out", out)
    assert (shown.code, shown.err) == (0, "")
    predicted = pd.read_csv(out)
    given = loans()
    assert list(predicted.columns) == [*given.columns, "mean", "std", "low", "high"]
    fitted = hk.HeckmanRegressor(["branch"], method="ml").fit(
        given.drop(columns="repaid"), given["repaid"]
    )
    expected = fitted.predict_distribution(given, "unselected")
    # the columns went through text with 17 digits, which loses nothing
    np.testing.assert_allclose(predicted["mean"], expected.mean, rtol=1e-12)
    np.testing.assert_allclose(predicted[["low", "high"]], expected.interval(0.9), rtol=1e-9)
    assert not list(tmp_path.glob(".*"))


def test_diagnose_prints_one_verdict_and_the_tests_of_the_instruments(data, capsys):
    X, y = loans().drop(columns="repaid"), loans()["repaid"]
    verdict = hk.identify(X, y, instruments=["branch"])
    found = hk.test_instruments(X, y, instruments=["branch"], level=0.001)
    shown = run(capsys, "diagnose", data, *ROLES)
    lines = [line.strip() for line in shown.out.splitlines()]
    in_the_shell = str(verdict).replace("hk.test_instruments", "heckesel diagnose")
    assert f"Identification: {in_the_shell}" in lines
    said = f"Tests of a direct effect of the instruments: {found.sentence}"
    assert lines[lines.index(said) + 1 :] == [line.strip() for line in found.details()]
    printed = json.loads(run(capsys, "diagnose", data, *ROLES, "--json").out)
    assert printed["identification"] == verdict.to_dict()
    expected = found.to_dict()
    assert printed["tests"].pop("conclusion") == expected.pop("verdict")
    assert printed["tests"] == expected
    shown = run(capsys, "diagnose", data, "--outcome", "repaid", "--json")
    assert set(json.loads(shown.out)) == {"identification", "columns"}
    assert shown.out.count('"verdict"') == 1


def test_input_columns_come_back_as_they_were_written(model, tmp_path, capsys):
    text = 'id,income,branch,kind,note\n007,1.50,0.2,old,"a, b"\n008,2e0,NA,néw,\n'
    path = tmp_path / "applicants.csv"
    path.write_text(text)
    shown = run(capsys, "predict", model, path)  # the population needs no instrument
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0] == "id,income,branch,kind,note,mean,std,low,high"
    assert lines[1].startswith('007,1.50,0.2,old,"a, b",')
    assert lines[2].startswith("008,2e0,NA,néw,,")


@pytest.mark.parametrize("method", ["deep-two-step", "deep-joint"])
def test_networks_are_fitted_saved_and_predict(method, data, tmp_path, capsys):
    pytest.importorskip("torch")
    out = tmp_path / "m.heckesel"
    options = ["--method", method, "--epochs", 5, "--members", 2, "--seed", 4]
    shown = run(capsys, "fit", data, *ROLES, *options, "--out", out, "--json")
    assert shown.code == 0
    said = json.loads(shown.out)
    assert said["method"] == method
    assert said["rows"] == 300
    assert said["identification"]["verdict"] == "supported by the instrument"
    loaded = hk.load(out)
    assert (loaded.method, loaded.random_state) == (method.removeprefix("deep-"), 4)
    assert (loaded.networks.epochs, loaded.networks.n_members) == (5, 2)
    shown = run(capsys, "predict", out, data)
    assert np.isfinite(pd.read_csv(io.StringIO(shown.out))["mean"]).all()


def test_compare_ranks_methods_by_held_out_likelihood_and_prints_the_caveat(data, capsys):
    pytest.importorskip("torch")
    options = ["--methods", "ml,two-step,deep-ensemble", "--epochs", 3, "--members", 1]
    shown = run(capsys, "compare", data, *ROLES, *options, "--splits", 2, "--json")
    assert (shown.code, shown.err) == (0, "")
    said = json.loads(shown.out)
    rows = {row["method"]: row for row in said["methods"]}
    assert set(rows) == {"ml", "two-step", "deep-ensemble"}
    assert said["methods"][0]["behind"] == 0
    assert rows["deep-ensemble"]["behind"] > 0  # three epochs teach a network nothing
    assert "do not show how well" in said["caveat"]
    shown = run(capsys, "compare", data, *ROLES, "--methods", "ml", "--splits", 2)
    assert "ml" in shown.out
    assert "Identification: supported" in shown.out


def test_compare_agrees_with_manual_cross_validation(data, capsys):
    from sklearn.model_selection import StratifiedKFold

    shown = run(capsys, "compare", data, *ROLES, "--methods", "ml", "--splits", 3, "--json")
    frame = loans()
    X, y = frame.drop(columns="repaid"), frame["repaid"]
    cuts = StratifiedKFold(3, shuffle=True, random_state=0).split(X, y.notna())
    total = 0.0
    for kept, held in cuts:
        fitted = hk.HeckmanRegressor(["branch"], method="ml").fit(X.iloc[kept], y.iloc[kept])
        total += len(held) * fitted.log_likelihood(X.iloc[held], y.iloc[held])
    found = json.loads(shown.out)["methods"][0]["log_likelihood"]
    np.testing.assert_allclose(found, total / len(frame), rtol=1e-10)


def test_selected_weights_exclude_and_missing_reach_the_fit(tmp_path, capsys):
    frame = loans().assign(seen=lambda f: np.where(f["repaid"].notna(), "yes", "no"), count=2)
    frame["name"] = [f"person {j}" for j in range(len(frame))]
    frame["repaid"] = frame["repaid"].fillna(0.0)
    frame.loc[::9, "income"] = np.nan
    path, out = tmp_path / "loans.csv", tmp_path / "m.heckesel"
    frame.to_csv(path, index=False)
    roles = [*ROLES, "--selected", "seen", "--weights", "count", "--exclude", "name"]
    roles += ["--on-problem", "error"]
    shown = run(
        capsys, "fit", path, *roles, "--missing", "indicator", "--method", "ml", "--out", out
    )
    assert shown.code == 0
    loaded = hk.load(out)
    assert set(loaded.columns_.names) == {"income", "branch", "kind"}
    assert loaded.result_.n == 2 * len(frame)
    assert loaded.result_.n_selected == 2 * int(loans()["repaid"].notna().sum())


# Tables


# The shell


def environment(**more):
    source = str(Path(hk.__file__).parent.parent)
    return os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"} | more


def completion(instruction, **words):
    return subprocess.run(
        [sys.executable, "-m", "heckesel"],
        env=environment(_HECKESEL_COMPLETE=instruction, **words),
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("heckesel di", "plain,diagnose"),
        ("heckesel fit --report", "plain,--report"),
        ("heckesel fit loans.csv --method deep-j", "plain,deep-joint"),
        ("heckesel predict --target uns", "plain,unselected"),
        ("heckesel fit loa", "file,loa"),
    ],
)
def test_the_shell_can_complete_commands_options_and_values(line, found):
    place = str(len(line.split()) - 1)
    assert completion("bash_complete", COMP_WORDS=line, COMP_CWORD=place).split() == [found]


def test_a_closed_pipe_prints_no_traceback(data, model):
    line = f"{sys.executable} -m heckesel predict {model} {data} | head -1"
    shown = subprocess.run(
        line, shell=True, env=environment(), capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("income,")
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("ml", {"errors": "shape", "scale": ["educ", "exper"]}),
        ("ml", {"errors": "t"}),
        ("two-step", {}),
    ],
)
def test_a_fit_has_the_numbers_of_the_estimator(method, options, tmp_path, capsys):
    women = hk.datasets.load_mroz()[["lwage", "educ", "exper", "age", "kidslt6"]]
    data, out = tmp_path / "wages.csv", tmp_path / "m"
    women.to_csv(data, index=False)
    typed = ["--outcome", "lwage", "--instruments", "age,kidslt6", "--method", method]
    for name, value in options.items():
        typed += [f"--{name}", value if isinstance(value, str) else ",".join(value)]
    assert run(capsys, "fit", data, *typed, "--out", out).code == 0
    model = hk.HeckmanRegressor(["age", "kidslt6"], method=method, **options)
    model.fit(women.drop(columns="lwage"), women["lwage"])
    np.testing.assert_allclose(hk.load(out).result_.params, model.result_.params, rtol=1e-7)


def test_slow_stages_are_lines_off_a_terminal_and_quiet_shows_none(
    data, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("heckesel.cli.terminal.SHOW_AFTER", 0.0)
    typed = ["fit", data, *ROLES, "--out", tmp_path / "m"]
    shown = run(capsys, *typed, "--report", tmp_path / "r.html")
    stages = [line for line in shown.err.splitlines() if line.endswith(" ...")]
    assert any(line.startswith("fitting") for line in stages)
    assert any(line.startswith("writing the report: ") for line in stages)
    assert run(capsys, *typed, "--quiet").err == ""
