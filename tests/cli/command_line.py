"""Run the command line in this process."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import heckesel as hk
from heckesel.cli import main


def drawn():
    return hk.datasets.make_controlled(300, rho=0.5, alpha=1.5, seed=3).frame[["x", "z", "y"]]


@dataclass(frozen=True)
class Shown:
    code: int
    out: str
    err: str


def run(capsys, *arguments, program=main) -> Shown:
    """Exit code and what was printed; an exception other than SystemExit is the test's own."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        program([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return Shown(int(stop.value.code or 0), printed.out, printed.err)
