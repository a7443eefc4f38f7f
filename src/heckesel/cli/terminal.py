"""What goes to standard output and standard error, whatever is in it and wherever it goes."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

import click

from heckesel.errors import printable


def prepare_streams() -> None:
    """Characters that a terminal does not have become escapes, and no write is cut short.

    Without a buffer (`python -u`, PYTHONUNBUFFERED) Python ignores how much of a text a full disk
    has taken, so the end of a table could be lost and the exit code be 0.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        sys.stdout = open(  # noqa: SIM115
            sys.stdout.fileno(),
            "w",
            buffering=1,
            encoding=sys.stdout.encoding,
            errors="backslashreplace",
            closefd=False,
        )


def discard_output() -> None:
    """What standard output could not take, so that Python does not try again when it ends."""
    with suppress(OSError, ValueError):  # a stream without a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str, *, err: bool = False) -> None:
    """Print text, with what could command the terminal as escapes."""
    click.echo(printable(text), err=err)


def print_table(text: str) -> None:
    """A table on standard output: as it is for programs, as `say` prints for people."""
    shown = printable(text) if sys.stdout.isatty() else text
    click.echo(shown, nl=False, color=True)  # or click would remove escapes from the data
