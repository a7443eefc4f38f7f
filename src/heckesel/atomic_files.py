"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heckesel.errors import DataError


def check_output(path) -> Path:
    """`path` as a place where a file can be put: its folder is there and nothing else is."""
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise DataError(f"the folder {path.parent} of {path.name} does not exist; create it first")
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is no ordinary file, so it cannot be replaced")
    if not os.access(path.parent, os.W_OK):
        raise DataError(f"the folder {path.parent} of {path.name} cannot be written to")
    return path


@contextmanager
def replacing(path) -> Iterator[Path]:
    """A scratch file beside `path` that takes its place when the block ends, and else goes."""
    path = check_output(path)
    # a name of 40 characters, so that the longest one the folder allows does not grow beyond it
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".part")
    os.close(handle)
    scratch = Path(name)
    try:
        yield scratch
        os.chmod(scratch, 0o644)  # mkstemp makes it private
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def write_atomically(path, content: str | bytes) -> None:
    """`content` as the file `path`; text is written as UTF-8."""
    with replacing(path) as scratch:
        scratch.write_bytes(content.encode() if isinstance(content, str) else content)
