"""What a user sees of work that takes its time: a spinner here, notes afterwards."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

from heckesel.cli.terminal import say
from heckesel.errors import IdentificationWarning

SHOW_AFTER = 1.0  # seconds


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """A spinner for work that cannot be counted, after a second and on a terminal only."""
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
    """One line on stderr, once in a command, however often it reads its table."""
    context = click.get_current_context(silent=True)
    said = set() if context is None else context.meta.setdefault(__name__, set())
    if text not in said:
        said.add(text)
        say(f"note: {text}", err=True)


@contextmanager
def notes(*, said: tuple[str, ...] = ()) -> Iterator[None]:
    """Warnings as notes of one line on stderr; not those that begin with what is `said` anyway."""
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
