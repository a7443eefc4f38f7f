"""The command line as a user meets it: exit codes, one-sentence errors, help."""

import subprocess
import sys

import pytest


def heckesel(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "heckesel", *arguments], capture_output=True, text=True, cwd=cwd
    )


def test_help_names_the_commands():
    shown = heckesel("--help")
    assert shown.returncode == 0
    assert "demo" in shown.stdout
    assert "reproduce" in shown.stdout


def test_the_demo_prints_the_table_and_the_verdict(tmp_path):
    shown = heckesel("demo", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "-10170.1105" in shown.stdout
    assert "functional form only" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["reproduce", "e99"], "there is no experiment 'e99'"),
        (["nonsense"], "No such command"),
        (["reproduce", "e0", "--bogus"], "No such option"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(arguments, fragment, tmp_path):
    shown = heckesel(*arguments, cwd=tmp_path)
    assert shown.returncode == 2
    assert fragment in shown.stderr
    assert "Traceback" not in shown.stderr
    assert not list(tmp_path.iterdir())


def test_panels_that_are_not_there_are_an_error_only_when_asked_for(tmp_path, monkeypatch):
    monkeypatch.delenv("HECKESEL_DATA", raising=False)
    shown = heckesel("reproduce", "e4", "--out", str(tmp_path))
    assert shown.returncode == 2
    assert "HECKESEL_DATA" in shown.stderr
    assert "\n" not in shown.stderr.strip()
