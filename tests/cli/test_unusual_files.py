"""Pipes, folders, lists in Parquet files, absurd headers, devices and a torch that is broken."""

import os
import signal
import time

import pytest

from tests.cli.command_line import drawn, run

ROLES = ["--outcome", "y", "--instruments", "z", "--method", "ml"]


@pytest.fixture
def folder(tmp_path):
    drawn().to_csv(tmp_path / "t.csv", index=False)
    for name in ("pipe.csv", "pipe.parquet", "pipe.heckesel"):
        os.mkfifo(tmp_path / name)
    for name in ("folder.csv", "folder.parquet", "folder.heckesel"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.fixture
def alarm():
    """Opening a pipe that nobody writes to would wait for ever."""

    def late(*_):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
@pytest.mark.parametrize(
    "typed",
    [
        "fit {d}/pipe.csv {r} --out {d}/new",
        "fit {d}/folder.parquet {r} --out {d}/new",
        "fit {d}/t.csv {r} --out {d}/pipe.heckesel",
        "fit {d}/t.csv {r} --out {d}/new --report {d}/pipe.csv",
        "predict {d}/folder.heckesel {d}/t.csv",
        "predict {d}/pipe.heckesel {d}/pipe.csv --out {d}/pipe.parquet",
    ],
)
def test_a_pipe_or_a_folder_is_refused_at_once(typed, folder, capsys):
    before = {path.name for path in folder.iterdir()}
    began = time.process_time()
    shown = run(capsys, *typed.format(d=folder, r=" ".join(ROLES)).split())
    assert time.process_time() - began < 2
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.count("\n") == 1
    assert {path.name for path in folder.iterdir()} == before
