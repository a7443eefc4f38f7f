"""The command line: exit codes, one-sentence errors and help."""

import re
import subprocess
import sys

import pytest


def heckesel(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "heckesel", *arguments], capture_output=True, text=True, cwd=cwd
    )


def test_the_demo_shows_both_fits_and_their_verdicts_and_leaves_a_report(tmp_path):
    pytest.importorskip("torch")
    shown = heckesel("demo", "--out", "shown.html", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    against = re.search(r"selected against(.*)", shown.stdout)[1]
    naive, corrected = (float(share) for share in re.findall(r"([\d.]+)%", against))
    # 670 test units: a share of 90 % has a standard error of 1.2 points
    assert naive < 80
    assert 86 < corrected < 94
    assert "supported by the instrument" in shown.stdout
    assert "-10170.1105" in shown.stdout
    assert "contradicted" in shown.stdout  # of normal errors for medical expenses
    page = (tmp_path / "shown.html").read_text(encoding="utf-8")
    assert (tmp_path / "shown.html").as_uri() in shown.stdout
    assert "picture-1-title" in page
    assert "<span>Supported by the instrument</span>" in page


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["reproduce", "e99"], "there is no experiment 'e99'"),
        (["nonsense"], "No such command"),
        (["reproduce", "e0", "--bogus"], "No such option"),
        (["reproduce", "e0", "--workers", "0"], "--workers must be at least 1"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(arguments, fragment, tmp_path):
    shown = heckesel(*arguments, cwd=tmp_path)
    assert shown.returncode == 2
    assert fragment in shown.stderr
    assert "Traceback" not in shown.stderr
    assert not list(tmp_path.iterdir())


def test_missing_panels_are_an_error_only_if_requested(tmp_path, monkeypatch):
    monkeypatch.delenv("HECKESEL_DATA", raising=False)
    shown = heckesel("reproduce", "e4", "--out", str(tmp_path))
    assert shown.returncode == 2
    assert "HECKESEL_DATA" in shown.stderr
    assert "\n" not in shown.stderr.strip()


def test_the_gate_prints_where_it_wrote_its_rows(tmp_path):
    shown = heckesel("reproduce", "e0", "--out", str(tmp_path))
    assert shown.stdout.splitlines()[-1] == f"e0: 10 of 10 cells done, in {tmp_path}/e0_gate.json"
    assert (tmp_path / "e0_gate.json").exists()
