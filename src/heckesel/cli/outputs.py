"""Files to write that are files to read, or each other: refused before any work."""

from __future__ import annotations

import os
from pathlib import Path

from heckesel.errors import DataError


def check_outputs(inputs: dict, outputs: dict) -> None:
    """Refuse an output that is an input or another output, under whatever name.

    inputs : what is read, in words -> its path
    outputs : the option -> the path it names, None where it was not given
    """
    taken = {f"{what}, which is read": path for what, path in inputs.items()}
    for option, path in outputs.items():
        if path is None:
            continue
        for what, other in taken.items():
            if _same(path, other):
                raise DataError(f"{option} {path} would replace {what}; name another file")
        taken[f"the file of {option}"] = path


def _same(path, other) -> bool:
    """Links lead to the file they stand for; a file that is there is known by its own number, too,
    since two names may differ in case alone or be hard links."""
    try:
        return Path(path).resolve() == Path(other).resolve() or os.path.samefile(path, other)
    except (OSError, RuntimeError):  # one is not there, or a link leads to itself
        return False
