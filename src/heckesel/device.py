"""Names of devices, checked before torch is imported, which is slow."""

import re

from heckesel.errors import DataError


def check_device(name) -> None:
    """Refuse a name that is not a device."""
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", str(name)):
        raise DataError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:0', got {str(name)!r}")
