"""Printing to standard output and standard error, with the progress of long work."""

import io
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import click

from heckesel.errors import IdentificationWarning, printable

SHOW_AFTER = 1.0  # seconds
QUIET = "heckesel.quiet"  # of the context of a command


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


def is_quiet() -> bool:
    """Whether the command was given --quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(QUIET))


@contextmanager
def stage(label: str, *, bar: bool = True) -> Iterator[Callable[[int, int], None]]:
    """Show what takes more than a second: a progress bar on a terminal, elsewhere a line on stderr.

    It yields a function (done, total). bar : False if the work shows a bar itself
    """
    update, stop = lambda done, total: None, lambda: None
    if is_quiet() or (sys.stderr.isatty() and not bar):
        yield update
        return
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        shown = Progress(console=Console(stderr=True), transient=True)
        task = shown.add_task(label, total=None)
        update = lambda done, total: shown.update(task, completed=done, total=total)  # noqa: E731
        start, stop = shown.start, shown.stop
    else:
        start = partial(say, f"{label} ...", err=True)
    timer = threading.Timer(SHOW_AFTER, start)
    timer.daemon = True
    timer.start()
    try:
        yield update
    finally:
        timer.cancel()
        timer.join()
        stop()


def note(text: str) -> None:
    """Print a line on stderr, once per command even if the table is read twice."""
    context = click.get_current_context(silent=True)
    said = set() if context is None else context.meta.setdefault(__name__, set())
    if text not in said and not is_quiet():
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
            note(text)
