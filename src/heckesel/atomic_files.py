"""Files that are there whole or not at all, even if the power fails."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from heckesel.errors import DataError

try:
    import fcntl
except ImportError:  # no POSIX system: scratch files of killed runs stay, since none can be known
    fcntl = None  # type: ignore[assignment]

OPEN: set[Path] = set()  # the scratch files that this process is writing


def check_output(path) -> Path:
    """`path` as a place where a file can be put: its folder is there and nothing else is."""
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
        raise DataError(f"{path} is no ordinary file, so it cannot be replaced")
    if not os.access(target.parent, os.W_OK):
        raise DataError(f"the folder {target.parent} of {target.name} cannot be written to")
    return path


def _target(path: Path) -> Path:
    """The file that `path` stands for: a link stays, and what it leads to is replaced."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


@contextmanager
def replacing(path) -> Iterator[Path]:
    """A scratch file beside `path` that takes its place when the block ends, and else goes.

    It has the mode of the file it replaces, and that of any new file where there is none. Inside a
    block that writes `path` already it is `path` itself.
    """
    path = _target(check_output(path))
    if path in OPEN:
        yield path
        return
    _remove_stale(path)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    # the umask is taken off 666; what replaces a file is private until it is complete
    scratch, handle = _scratch(path, 0o666 if mode is None else 0o600)
    OPEN.add(scratch)
    try:
        yield scratch
        if mode is not None:
            os.chmod(scratch, mode)
        os.fsync(handle)  # or the name could outlive a crash, and what it names not
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    finally:
        OPEN.discard(scratch)
        os.close(handle)
    _sync_folder(path.parent)


def write_atomically(path, content: str | bytes) -> None:
    """`content` as the file `path`; text is written as UTF-8."""
    with replacing(path) as scratch:
        scratch.write_bytes(content.encode() if isinstance(content, str) else content)


def _start(path: Path) -> str:
    # 40 characters, so that the longest name the folder allows does not grow beyond it
    return f".{path.name[:40]}."


def _scratch(path: Path, mode: int) -> tuple[Path, int]:
    """A new file, locked for as long as this process has it open."""
    while True:
        scratch = path.parent / f"{_start(path)}{secrets.token_hex(4)}.part"
        try:
            handle = os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        except FileExistsError:
            continue
        if not _locked(handle) or not os.fstat(handle).st_nlink:
            os.close(handle)  # another run took it for stale before the lock was there
            continue
        return scratch, handle


def _remove_stale(path: Path) -> None:
    """Scratch files of this output whose writer was killed: no process holds their lock."""
    if fcntl is None:
        return
    named = re.compile(re.escape(_start(path)) + r"\w{8}\.part")
    with os.scandir(path.parent) as found:
        names = [each.path for each in found if named.fullmatch(each.name)]
    for name in names:
        with suppress(OSError):  # another run was quicker, or the file is another user's
            handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name)
            finally:
                os.close(handle)


def _locked(handle: int) -> bool:
    """Whether the lock is ours; where a file system has none, no run takes a file for stale."""
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
    """The new name, too, on the disk, where folders can be synchronised."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
