"""Output files that would replace an input, or another output, are refused at the start."""

from __future__ import annotations

import os
from pathlib import Path

from heckesel.errors import DataError


def check_outputs(inputs: dict, outputs: dict) -> None:
    """Refuse an output that is an input or another output, under whatever name.

    inputs : description -> path
    outputs : option -> path, None if it was not given
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
    """Whether two paths are one file: links are followed, and existing files are compared by their
    inode, since two names may be hard links or differ only in case."""
    try:
        return Path(path).resolve() == Path(other).resolve() or os.path.samefile(path, other)
    except (OSError, RuntimeError):  # one does not exist, or a link leads to itself
        return False
