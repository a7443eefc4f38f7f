"""Every block of the README runs, in order, and says what its comments say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd

import heckesel as hk

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


def test_the_readme_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a report is written
    found = blocks(README, "python")
    assert len(found) >= 3
    scope: dict = {}
    for block in found:
        exec(compile(block, "README.md", "exec"), scope)
    assert f"{scope['fit'].params['outcome', 'educ']:.5f}" == "0.10835"
    assert scope["model"].identification_.verdict == "identified by an instrument"
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert "Identification: identified by an instrument" in capsys.readouterr().out


def run_commands(path, folder):
    """The `sh` blocks of a page, typed one after the other in an empty folder."""
    functions = 'python() { "$PYTHON" "$@"; }; heckesel() { "$PYTHON" -m heckesel "$@"; }\n'
    source = str(Path(hk.__file__).parent.parent)
    return subprocess.run(
        ["bash", "-e", "-c", functions + "".join(blocks(path, "sh"))],
        cwd=folder,
        env=os.environ | {"PYTHON": sys.executable, "PYTHONPATH": source},
        capture_output=True,
        text=True,
    )


def test_the_commands_of_the_readme_run(tmp_path):
    shown = run_commands(README, tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.count("Identification: identified by an instrument") == 3
    assert {path.name for path in tmp_path.iterdir()} == {
        "wages.csv",
        "wages.heckesel",
        "predicted.csv",
    }
    predicted = pd.read_csv(tmp_path / "predicted.csv")
    assert (predicted["lower"] < predicted["mean"]).all()


def test_the_commands_of_the_page_on_the_shell_run(tmp_path):
    shown = run_commands(ROOT / "docs" / "shell.md", tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == "probability of default = 1\n"
    assert "default has two classes, 0 and 1: what is predicted is the probability" in shown.stdout
    predicted = pd.read_csv(tmp_path / "defaults.csv")
    assert predicted["probability"].between(0, 1).all()
    assert (tmp_path / "wages.html").stat().st_size > 10_000


def test_the_commands_that_have_json_are_those_that_the_page_names():
    from heckesel.cli import cli

    page = (ROOT / "docs" / "shell.md").read_text()
    commands = {
        name
        for name, command in cli.commands.items()
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert "`diagnose`, `fit` and `compare` have `--json`" in page
    assert commands == {"diagnose", "fit", "compare"}


def test_the_page_on_saved_models_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    for block in blocks(ROOT / "docs" / "shell.md", "python"):
        exec(compile(block, "shell.md", "exec"), scope)
