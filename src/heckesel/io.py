"""Files written completely or not at all, progress bars, and maps over threads and clusters."""

import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from heckesel.errors import DataError

try:
    import fcntl
except ImportError:  # not POSIX: scratch files of killed runs stay, since they cannot be recognised
    fcntl = None  # type: ignore[assignment]

OPEN: set[Path] = set()  # the scratch files that this process is writing
SHOW_AFTER = 1.0  # seconds; shorter work needs no bar
RETRIES = 3  # of a task that was interrupted, before the fit gives up
PATIENCE = 1.5  # seconds in which a cluster without workers may get its first
LARGE = 1 << 20  # bytes; a larger function is sent once and not with every item


def check_output(path) -> Path:
    """Check that a file can be written to `path`, and return it."""
    path = Path(path)
    target = _target(path)
    if target.is_dir():
        raise DataError(f"{path} is a folder; give the name of a file")
    if target.is_symlink():
        raise DataError(f"{path} is a link that leads to itself; name another file")
    if not target.parent.is_dir():
        raise DataError(
            f"the folder {target.parent} of {target.name} does not exist; create it first"
        )
    if target.exists() and not target.is_file():
        raise DataError(f"{path} is not a regular file, so it cannot be replaced")
    if not os.access(target.parent, os.W_OK):
        raise DataError(f"the folder {target.parent} of {target.name} cannot be written to")
    return path


def check_outputs(inputs: dict, outputs: dict) -> None:
    """Refuse an output that is an input or another output, under whatever name, and one that
    cannot be written.

    inputs : description -> path
    outputs : option -> path, None if it was not given
    """
    taken = {f"{what}, which is read": path for what, path in inputs.items()}
    given = {option: path for option, path in outputs.items() if path is not None}
    for option, path in given.items():
        for what, other in taken.items():
            if _same_file(path, other):
                raise DataError(f"{option} {path} would replace {what}; name another file")
        taken[f"the file of {option}"] = path
    for path in given.values():
        check_output(path)


def _same_file(path, other) -> bool:
    """Whether two paths are one file: links are followed, and existing files are compared by their
    inode, since two names may be hard links or differ only in case."""
    try:
        return Path(path).resolve() == Path(other).resolve() or os.path.samefile(path, other)
    except (OSError, RuntimeError):  # one does not exist, or a link leads to itself
        return False


def _target(path: Path) -> Path:
    """The target of `path`: links are followed, so that their targets are replaced."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


@contextmanager
def replacing(path) -> Iterator[Path]:
    """A scratch file that replaces `path` when the block ends, and is removed if it fails.

    It gets the mode of the file that it replaces, or that of a new file. Inside a block that
    already writes `path` it is `path` itself.
    """
    path = _target(check_output(path))
    if path in OPEN:
        yield path
        return
    _remove_stale(path)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    # the umask applies to 666; the replacement of a file is private until it is complete
    scratch, handle = _scratch(path, 0o666 if mode is None else 0o600)
    OPEN.add(scratch)
    try:
        yield scratch
        if mode is not None:
            os.chmod(scratch, mode)
        os.fsync(handle)  # otherwise the name could survive a crash without the content
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    finally:
        OPEN.discard(scratch)
        os.close(handle)
    _sync_folder(path.parent)


def write_atomically(path, content: str | bytes) -> None:
    """Write `content` to the file `path`; text as UTF-8."""
    with replacing(path) as scratch:
        scratch.write_bytes(content.encode() if isinstance(content, str) else content)


def _start(path: Path) -> str:
    # 40 characters, so that the name stays within the limit of the file system
    return f".{path.name[:40]}."


def _scratch(path: Path, mode: int) -> tuple[Path, int]:
    """A new file, locked while this process has it open."""
    while True:
        scratch = path.parent / f"{_start(path)}{secrets.token_hex(4)}.part"
        try:
            handle = os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        except FileExistsError:
            continue
        if not _locked(handle) or not os.fstat(handle).st_nlink:
            os.close(handle)  # another run removed it as stale before it was locked
            continue
        return scratch, handle


def _remove_stale(path: Path) -> None:
    """Remove scratch files of killed runs: no process holds their lock."""
    if fcntl is None:
        return
    named = re.compile(re.escape(_start(path)) + r"\w{8}\.part")
    with os.scandir(path.parent) as found:
        names = [each.path for each in found if named.fullmatch(each.name)]
    for name in names:
        with suppress(OSError):  # another run removed it first, or it belongs to another user
            handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name)
            finally:
                os.close(handle)


def _locked(handle: int) -> bool:
    """Whether this process has the lock; without locks, no run treats a file as stale."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Write the new name to disk, if the system can synchronise folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


Listener = Callable[[str, int, int], None]
LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


def announce(work: str, done: int = 0, total: int = 0, *, verbose: bool = False) -> None:
    """Name the work that begins or goes on, and how much of it is done.

    The command line shows it; elsewhere it is a line on standard error if `verbose`.
    """
    listener = LISTENER.get()
    if listener is not None:
        listener(work, done, total)
    elif verbose and done == 0:
        print(f"heckesel: {work}", file=sys.stderr)


@contextmanager
def unannounced() -> Iterator[None]:
    """Fits inside the block are parts of one piece of work, which are not named."""
    before = LISTENER.set(lambda *_: None)
    try:
        yield
    finally:
        LISTENER.reset(before)


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


def in_threads(function: Callable, items: Iterable) -> Iterable:
    """`map` over threads, which run in parallel because numpy releases the interpreter lock; this
    thread is one of them, so that none waits for another to wake up."""
    tasks = list(items)
    results: list = [None] * len(tasks)
    errors: dict[int, BaseException] = {}
    positions = count()

    def work() -> None:
        while not errors and (at := next(positions)) < len(tasks):
            try:
                results[at] = function(tasks[at])
            except BaseException as error:  # an interrupt, too, ends the other threads' work
                errors[at] = error

    helpers = min(os.cpu_count() or 1, len(tasks)) - 1
    others = [_threads(os.getpid()).submit(work) for _ in range(helpers)]
    work()
    for other in others:
        if not other.cancel():
            other.result()
    if errors:
        raise errors[min(errors)]
    return results


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """The pool of one process: a forked process has no threads."""
    return ThreadPoolExecutor(os.cpu_count() or 1)


@dataclass(frozen=True)
class Cluster:
    """A `map` over the workers of a Dask client, or over threads once the client is closed."""

    client: Any

    @property
    def running(self) -> bool:
        return self.client is not None and self.client.status == "running"

    @property
    def workers(self) -> int:
        return max(1, len(self.client.nthreads())) if self.running else 1

    def __call__(self, function, items):
        if not self.running:
            return in_threads(function, items)
        from distributed.protocol.pickle import dumps

        # Sent as bytes: arrays that dask unpacks may start at odd addresses, which numpy multiplies
        # by another routine, and the last digits would depend on the worker.
        content = dumps(function)
        if len(content) >= LARGE:
            # the result of a task, unlike data that was scattered, is made again if it is lost
            content = self.client.submit(_as_it_is, content, pure=False, retries=RETRIES)
        options = {"pure": False, "retries": RETRIES}
        futures = [self.client.submit(_call, content, dumps(item), **options) for item in items]
        return self.client.gather(futures)

    def __reduce__(self):
        return Cluster, (None,)  # a connection cannot be saved


def cluster_of(client) -> Cluster:
    """A checked `client=`."""
    if not hasattr(client, "gather"):
        raise DataError(f"client must be a dask.distributed.Client, got {type(client).__name__}")
    cluster = Cluster(client)
    if cluster.running and not client.nthreads():
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise DataError(
                "the Dask cluster of client= has no workers; start one, such as with "
                "client.cluster.scale(2), and wait for it with client.wait_for_workers(1)"
            ) from None
    return cluster


def _as_it_is(content: bytes) -> bytes:
    return content


def _call(function: bytes, item: bytes):
    from distributed.protocol.pickle import loads

    with threadpool_limits(1, user_api="blas"):
        return loads(function)(loads(item))
