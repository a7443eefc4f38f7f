"""Peak memory of this process alone."""

from __future__ import annotations

import re
import resource
from pathlib import Path

STATUS = Path("/proc/self/status")


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
