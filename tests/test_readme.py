"""Every block of the README runs, in order, and says what its comments say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd

import heckesel as hk

ROOT = Path(__file__).parent.parent
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


def test_the_commands_of_the_readme_run(tmp_path):
    (script,) = blocks(README, "sh")
    functions = 'python() { "$PYTHON" "$@"; }; heckesel() { "$PYTHON" -m heckesel "$@"; }\n'
    source = str(Path(hk.__file__).parent.parent)
    shown = subprocess.run(
        ["bash", "-e", "-c", functions + script],
        cwd=tmp_path,
        env=os.environ | {"PYTHON": sys.executable, "PYTHONPATH": source},
        capture_output=True,
        text=True,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.count("Identification: identified by an instrument") == 3
    assert {path.name for path in tmp_path.iterdir()} == {
        "wages.csv",
        "wages.heckesel",
        "predicted.csv",
    }
    predicted = pd.read_csv(tmp_path / "predicted.csv")
    assert (predicted["lower"] < predicted["mean"]).all()


def test_the_page_on_saved_models_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    for block in blocks(ROOT / "docs" / "shell.md", "python"):
        exec(compile(block, "shell.md", "exec"), scope)
