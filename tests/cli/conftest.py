"""A table and a model of it, for modules with a function `loans` and a list ROLES."""

import pytest

from tests.cli.command_line import run


@pytest.fixture
def data(tmp_path, request):
    path = tmp_path / "loans.csv"
    request.module.loans().to_csv(path, index=False)
    return path


@pytest.fixture
def model(tmp_path, data, capsys, request):
    out = tmp_path / "loans.heckesel"
    typed = ("fit", data, *request.module.ROLES, "--method", "ml", "--out", out)
    assert run(capsys, *typed).code == 0
    return out


@pytest.fixture(autouse=True)
def fast_enough(monkeypatch):
    """However slow the machine is, no stage shows its progress."""
    monkeypatch.setattr("heckesel.cli.terminal.SHOW_AFTER", 600.0)
