"""Printing to standard output and standard error."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

import click

from heckesel.errors import printable


def prepare_streams() -> None:
    """Escape characters that the terminal cannot show, and notice incomplete writes.

    Without a buffer (`python -u`, PYTHONUNBUFFERED) Python ignores it if a full disk takes only
    part of a write, so the end of a table could be lost with exit code 0.
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
    """Drop what could not be written, so that Python does not try again at exit."""
    with suppress(OSError, ValueError):  # the stream has no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str, *, err: bool = False) -> None:
    """Print text, with control characters escaped."""
    click.echo(printable(text), err=err)


def print_table(text: str) -> None:
    """Print a table on standard output; control characters are escaped on a terminal only."""
    shown = printable(text) if sys.stdout.isatty() else text
    click.echo(shown, nl=False, color=True)  # otherwise click removes escapes from the data
