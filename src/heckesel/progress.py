"""A progress bar on a terminal, for work that takes more than a second."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

SHOW_AFTER = 1.0  # seconds; shorter work needs no bar


@contextmanager
def progress_bar(label: str, *, enabled: bool = True) -> Iterator:
    """Yield a callback (done, total), or None if there is no terminal."""
    if not enabled or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    task = bar.add_task(label, total=None)
    started = time.perf_counter()

    def update(done: int, total: int) -> None:
        if not bar.live.is_started and time.perf_counter() - started > SHOW_AFTER:
            bar.start()
        if bar.live.is_started:
            bar.update(task, completed=done, total=total)

    try:
        yield update
    finally:
        bar.stop()
