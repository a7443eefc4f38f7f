"""Bad uses: one sentence, the right exit code, nothing left on disk."""

import os
import pty
import re
import signal
import subprocess
import sys
import types
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import heckesel as hk
from tests.cli.command_line import run

N = 300
FIT = "fit {d}/loans.csv --outcome repaid --instruments branch --method ml --out {d}/new"
ROLES = "--outcome repaid --instruments branch"
STRICT = "--on-problem error"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables and models that are good, and tables that are not."""
    place = tmp_path_factory.mktemp("bad_use")
    draw = hk.datasets.make_controlled(N, rho=0.5, alpha=1.5, seed=3)
    good = draw.frame.rename(columns={"x": "income", "z": "branch", "y": "repaid"})
    good = good[["income", "branch", "repaid"]].assign(
        kind=np.where(np.arange(N) % 3 == 0, "new", "old")
    )
    good.to_csv(place / "loans.csv", index=False)
    X, y = good.drop(columns="repaid"), good["repaid"]
    model = hk.HeckmanRegressor(["branch"], method="ml").fit(X, y)
    model.save(place / "loans.heckesel")
    hk.HeckmanRegressor([1], method="ml").fit(good[["income", "branch"]].to_numpy(), y).save(
        place / "array"
    )
    hk.HeckmanRegressor(["branch"], method="ml").fit(X, X["income"]).save(place / "whole")
    (place / "cut").write_bytes((place / "loans.heckesel").read_bytes()[:-50])
    tables = {
        "text.csv": good.assign(income=lambda f: f["income"].astype(str)).replace(
            {"income": {str(good["income"][4]): "lots"}}
        ),
        "text_outcome.csv": good.assign(
            repaid=lambda f: f["repaid"].astype(object).where(f.index != 5, "soon")
        ),
        "gaps.csv": good.assign(income=lambda f: f["income"].where(f.index != 7)),
        "nobody.csv": good.assign(repaid=np.nan),
        "names.csv": good.assign(name=[f"person {j}" for j in range(N)]),
        "separated.csv": good.assign(branch=lambda f: f["repaid"].notna().astype(int)),
        "infinite.csv": good.assign(income=lambda f: f["income"].where(f.index != 2, np.inf)),
        "flags.csv": good.assign(seen=2, weight=-1.0),
        "no_branch.csv": good.drop(columns="branch"),
        "no_income.csv": good.rename(columns={"income": "incomes"}),
        "level.csv": good.assign(kind="newest"),
    }
    for name, frame in tables.items():
        frame.to_csv(place / name, index=False)
    contents = {
        "empty.csv": "",
        "ragged.csv": "income,branch,repaid\n1,2,3\n1,2\n",
        "comma.csv": "income;branch;repaid\n1,5;2,5;3,5\n2,5;1,5;\n",
        "page.html": "<html></html>",
    }
    for name, text in contents.items():
        (place / name).write_text(text)
    (place / "latin.csv").write_bytes("income,branch,repaid\n1,2,é\n".encode("latin-1"))

    return place


# what is typed, what is said, exit code
COMMANDS = [
    ("", "Usage", 2),
    ("nothing", "No such command 'nothing'", 2),
    ("fit {d}/loans.csv", "Missing option '--outcome'", 2),
    (FIT + " --method magic", "'magic' is not one of", 2),
    (FIT + " --rho-prior maybe", "--rho-prior must be a positive number or uniform", 2),
    (FIT + " --method two-step --errors t", "errors", 2),
    (FIT + " --members 5", "--members does not apply to method ml; omit it", 2),
    (
        FIT + " --scale incme",
        "X has no column 'incme', which scale names",
        2,
    ),
    (FIT + " --method deep-two-step --epochs 0", "epochs must be at least 1", 2),
    (FIT + " --delimiter ,,", "--delimiter must be one character", 2),
    (FIT + " --exclude incme", "lacks the excluded column 'incme'; did you mean 'income'", 2),
    (FIT + " --exclude income,kind", "has no column from which to predict 'repaid'", 2),
    (FIT + " --selected kind", "'kind' of .* should hold numbers but row 0 .line 2. has 'new'", 2),
    ("fit {d}/flags.csv " + ROLES + " --selected seen --out {d}/new", "row 0 holds 2", 2),
    ("fit {d}/none.csv " + ROLES + " --out {d}/new", "there is no file", 2),
    ("fit {d}/loans.csv --outcome repayd --out {d}/new", "did you mean 'repaid'", 2),
    ("fit {d}/loans.csv --outcome repaid --instruments brunch --out {d}/new", "'branch'", 2),
    (
        "fit {d}/loans.csv --outcome repaid --instruments branch,branch --out {d}/new",
        "given twice",
        2,
    ),
    ("fit {d}/loans.csv " + ROLES + " --out {d}/no/where", "does not exist; create it first", 2),
    *(
        (f"fit {{d}}/{name} {ROLES} {STRICT} --method ml --out {{d}}/new", said, 2)
        for name, said in [
            ("text.csv", "column 'income' must hold numbers but row 4 holds 'lots'"),
            ("text_outcome.csv", r"column 'repaid' of .* row 5 \(line 7\) has 'soon'"),
            ("nobody.csv", "'repaid' is missing in all 300 rows"),
            ("names.csv", "column 'name' has 300 different strings in 300 rows; drop it"),
            ("infinite.csv", "column 'income' is inf in row 2"),
            ("empty.csv", "is empty"),
            ("ragged.csv", "line 3 of .* has 2 fields, but the header has 3"),
            ("comma.csv --decimal .", "for decimal commas give --decimal ,"),
            ("latin.csv", "is not UTF-8 text; set its --encoding"),
            ("no_branch.csv", "lacks the instrument .*'branch'"),
        ]
    ),
    ("diagnose {d}/separated.csv " + ROLES, "no instrument can be used .branch: omitted, since", 2),
    (f"diagnose {{d}}/separated.csv {ROLES} {STRICT}", "'branch' predicts selection perfectly", 2),
    ("compare {d}/loans.csv " + ROLES + " --methods best", "there is no method 'best'", 2),
    (
        "compare {d}/loans.csv " + ROLES + " --methods ml --splits 1",
        "folds must be at least 2",
        2,
    ),
    ("predict {d}/page.html {d}/loans.csv", "not a model saved by heckesel", 2),
    ("predict {d}/cut {d}/loans.csv", "is truncated", 2),
    ("predict {d}/array {d}/loans.csv", "an array without column names", 2),
    ("predict {d}/loans.heckesel {d}/loans.csv --level 90", "between 0 and 1, got 90", 2),
    ("predict {d}/whole {d}/loans.csv --target unselected", "had no unselected unit", 2),
    (
        "predict {d}/loans.heckesel {d}/no_branch.csv --target unselected",
        "lacks the instrument .*'branch'",
        2,
    ),
    ("predict {d}/loans.heckesel {d}/no_income.csv", "'income'; did you mean 'incomes'", 2),
    (
        "predict {d}/loans.heckesel {d}/level.csv",
        "level 'newest' .row 0., which did not",
        2,
    ),
    ("predict {d}/loans.heckesel {d}/gaps.csv", "'income' is missing .NaN. in 1 row ", 2),
    ("predict {d}/loans.heckesel {d}/loans.csv --out {d}/no/p.csv", "does not exist", 2),
]


@pytest.mark.parametrize(("typed", "said", "code"), COMMANDS, ids=[c[0][:60] for c in COMMANDS])
def test_a_wrong_command_prints_one_sentence_and_writes_nothing(typed, said, code, folder, capsys):
    before = {path.name for path in folder.rglob("*")}
    shown = run(capsys, *typed.format(d=folder).split())
    assert re.search(said, shown.err.replace("\n", " ")), shown.err
    assert shown.code == code
    if typed:  # without a command there is the whole help
        assert shown.err.count("\n") == 1, shown.err
        assert shown.out == ""
    assert {path.name for path in folder.rglob("*")} == before


def test_a_failed_report_leaves_no_model_file(folder, capsys, monkeypatch):
    def broken(model, X, y, path, **options):
        Path(path).write_text("half")
        raise hk.HeckeselError("the report cannot be drawn")

    report = types.ModuleType("heckesel.report")
    report.write_report = broken
    monkeypatch.setitem(sys.modules, "heckesel.report", report)
    before = {path.name for path in folder.iterdir()}
    shown = run(capsys, *(FIT + " --report {d}/r.html").format(d=folder).split())
    assert (shown.code, shown.err) == (1, "heckesel: the report cannot be drawn\n")
    assert {path.name for path in folder.iterdir()} == before
    monkeypatch.setitem(sys.modules, "heckesel.report", None)
    shown = run(capsys, *(FIT + " --report {d}/r.html").format(d=folder).split())
    assert shown.code == 1
    assert "heckesel[report]" in shown.err


def environment():
    return os.environ | {
        "PYTHONPATH": str(Path(hk.__file__).parent.parent),
        "OMP_NUM_THREADS": "1",
    }


def test_a_fit_interrupted_while_it_trains_leaves_no_file(folder, tmp_path):
    """Stopped when a terminal shows the progress bar, which the end of an epoch starts."""
    pytest.importorskip("torch")
    networks = "--method deep-two-step --epochs 10000000"
    typed = f"fit {folder}/loans.csv {ROLES} {networks} --out {tmp_path}/m"
    shown, terminal = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "heckesel", *typed.split()],
        env=environment() | {"TERM": "xterm"},
        stderr=terminal,
    )
    os.close(terminal)
    said = b""
    while b"%" not in said:
        said += os.read(shown, 1024)
    running.send_signal(signal.SIGINT)
    with suppress(OSError):  # how Linux says that no one writes any more
        while more := os.read(shown, 1024):
            said += more
    os.close(shown)
    assert running.wait(timeout=60) == 1
    assert said.strip().endswith(b"heckesel: stopped")
    assert b"Traceback" not in said
    assert not list(tmp_path.iterdir())


def test_a_bad_use_from_a_shell_has_no_traceback(folder, tmp_path):
    for typed, code in ((f"fit {folder}/none.csv --outcome a --out m", 2), ("predict", 2)):
        shown = subprocess.run(
            [sys.executable, "-m", "heckesel", *typed.split()],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
        )
        assert (shown.returncode, shown.stdout) == (code, "")
        assert shown.stderr.startswith("heckesel: ")
        assert shown.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
