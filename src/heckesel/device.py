"""Names of devices, checked before torch is imported, which takes its time."""

from __future__ import annotations

import re

from heckesel.errors import DataError


def check_device(name) -> None:
    """Refuse a name that no machine has a device for."""
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", str(name)):
        raise DataError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:0', got {str(name)!r}")
