"""Peak memory of this process alone, and what it has read."""

from __future__ import annotations

import re
import resource
from pathlib import Path

STATUS, IO = Path("/proc/self/status"), Path("/proc/self/io")


def peak_bytes() -> int:
    """The high-water mark of this program's own pages.

    On Linux `ru_maxrss` is handed down through exec, so that a child of a large parent never shows
    less than its parent held; VmHWM starts afresh.
    """
    if STATUS.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", STATUS.read_text())
        if found:
            return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def bytes_read() -> int | None:
    """By this process since it started, from files or caches; None if the system does not say."""
    if not IO.exists():
        return None
    found = re.search(r"rchar: (\d+)", IO.read_text())
    return None if found is None else int(found[1])
