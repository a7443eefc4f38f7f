"""Printing to standard output and standard error, with the progress of long work."""

import io
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import click

from heckesel.errors import IdentificationWarning, printable
from heckesel.io import LISTENER

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
    """Show work that takes more than a second, and its parts as they are announced: a bar on a
    terminal, elsewhere a line on stderr for each, with the time that is left if it is known.

    It yields a function (done, total). bar : False if the work shows a bar itself
    """
    if is_quiet() or (sys.stderr.isatty() and not bar):
        yield lambda done, total: None
        return
    shown: _Bar | _Lines = _Bar(label) if sys.stderr.isatty() else _Lines(label)
    before = LISTENER.set(shown.work)
    try:
        yield partial(shown.work, "")
    finally:
        LISTENER.reset(before)
        shown.stop()


class _Late:
    """Something that is shown once a stage has taken a second."""

    part = ""

    def start(self, show: Callable[[], None]) -> None:
        self.timer = threading.Timer(SHOW_AFTER, show)
        self.timer.daemon = True
        self.timer.start()

    def stop(self) -> None:
        self.timer.cancel()
        self.timer.join()


class _Lines(_Late):
    """A line for each part of a stage."""

    def __init__(self, label: str):
        self.label, self.done, self.total, self.began = label, 0, 0, time.monotonic()
        self.start(self.show)

    def work(self, part: str, done: int, total: int) -> None:
        if part != self.part:
            self.stop()
            self.part, self.began = part, time.monotonic()
            self.start(self.show)
        self.done, self.total = done, total

    def show(self) -> None:
        text = f"{self.label}: {self.part}" if self.part else self.label
        if self.total > 1:
            text += f", {self.done} of {self.total}"
        if self.done:
            left = (time.monotonic() - self.began) * (self.total / self.done - 1)
            text += f", about {left:.0f} s left"
        say(f"{text} ...", err=True)


class _Bar(_Late):
    """A bar, from the first second on, with the part of a stage, counts and the time left."""

    def __init__(self, label: str):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        columns = "{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.label, self.task = label, self.bar.add_task(label, total=None)
        self.start(self.bar.start)

    def stop(self) -> None:
        super().stop()
        self.bar.stop()

    def work(self, part: str, done: int, total: int) -> None:
        if part != self.part:
            self.part = part
            self.bar.reset(self.task, description=f"{self.label}: {part}", total=None)
        self.bar.update(self.task, completed=done, total=total or None)


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
