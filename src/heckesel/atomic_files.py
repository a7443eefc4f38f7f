"""Files that are written completely or not at all, even if the power fails."""

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
except ImportError:  # not POSIX: scratch files of killed runs stay, since they cannot be recognised
    fcntl = None  # type: ignore[assignment]

OPEN: set[Path] = set()  # the scratch files that this process is writing


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
