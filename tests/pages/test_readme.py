"""The code of the README and of the page on the command line runs and prints what they show."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import heckesel as hk

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
NUMBER = re.compile(r"[-+]?\d+\.?\d*")


def blocks(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


def test_the_readme_prints_what_it_shows(capsys):
    for block in blocks(README, "python"):
        exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    (shown,) = blocks(README, "text")
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    found, stated = ([float(n) for n in NUMBER.findall(text)] for text in (printed, shown))
    np.testing.assert_allclose(found, stated, atol=0.1)  # rounded; trees may split elsewhere


def test_the_readme_is_one_screen_and_its_paragraphs_are_short():
    text = re.sub(r"```.*?```", "", README.read_text(), flags=re.DOTALL)
    paragraphs = [part for part in text.split("\n\n") if part[:1] not in ("|", "-")]
    assert max(map(len, paragraphs)) <= 500
    assert len(text.split()) < 700


def test_every_link_of_the_readme_leads_to_a_file():
    links = re.findall(r"\]\((?!https:)([^)#]+)\)", README.read_text())
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


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


def test_the_commands_of_the_page_on_the_shell_run(tmp_path):
    shown = run_commands(ROOT / "docs" / "shell.md", tmp_path)
    assert shown.returncode == 0, shown.stderr
    stages = [line for line in shown.stderr.splitlines() if not line.endswith(" ...")]
    assert stages == ["Predicted: probability that default is 1"]
    assert "default has two classes, 0 and 1; predictions are probabilities" in shown.stdout
    assert shown.stdout.count("Identification: supported by the instrument") == 4
    # of the messy table, where age duplicates another column and kidslt6 alone is left
    assert shown.stdout.count("Identification: mostly prior: kidslt6 determines rho only") == 1
    predicted = pd.read_csv(tmp_path / "predicted.csv")
    assert (predicted["low"] < predicted["mean"]).all()
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
