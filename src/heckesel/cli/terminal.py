"""Printing to standard output and standard error, with a spinner during long work."""

import io
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from heckesel.errors import IdentificationWarning, printable

SHOW_AFTER = 1.0  # seconds


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
    """Drop unwritten output, so that Python does not try again at exit."""
    with suppress(OSError, ValueError):  # the stream has no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str, *, err: bool = False) -> None:
    """Print text, with control characters escaped."""
    click.echo(printable(text), err=err)


def print_table(text: str) -> None:
    """Print a table on standard output; control characters are escaped on a terminal only."""
    shown = printable(text) if sys.stdout.isatty() else text
    click.echo(shown, nl=False, color=True)  # otherwise click removes escapes from the data


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """Show a spinner on a terminal if the work takes more than a second."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(label)
    timer = threading.Timer(SHOW_AFTER, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def note(text: str) -> None:
    """Print a line on stderr, once per command even if the table is read twice."""
    context = click.get_current_context(silent=True)
    said = set() if context is None else context.meta.setdefault(__name__, set())
    if text not in said:
        said.add(text)
        say(f"note: {text}", err=True)


@contextmanager
def notes(*, said: tuple[str, ...] = ()) -> Iterator[None]:
    """Print warnings as one-line notes on stderr, except those that start with text in `said`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", IdentificationWarning)
        warnings.filterwarnings("always", message=".*target_transform.*")
        warnings.filterwarnings("always", message=".*raise epochs.*")
        yield
    shown = dict.fromkeys(" ".join(str(each.message).split()) for each in caught)
    for text in shown:
        if not text.startswith(said):
            say(f"note: {text}", err=True)
