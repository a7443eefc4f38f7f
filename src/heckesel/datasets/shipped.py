"""Reading the data files that ship inside the package."""

from __future__ import annotations

import hashlib
import io
from importlib import resources

import pandas as pd

from heckesel.errors import DataError


def read_shipped(name: str, sha256: str) -> pd.DataFrame:
    """The table in one file of `datasets/files`, refused unless its SHA-256 is the recorded one.

    Published results rest on the order and the last digit of these rows, so a damaged or
    replaced file is an error and not a warning.
    """
    packed = resources.files("heckesel.datasets").joinpath("files", name).read_bytes()
    found = hashlib.sha256(packed).hexdigest()
    if found != sha256:
        raise DataError(
            f"{name} has SHA-256 {found} instead of {sha256}: reinstall heckesel to restore it"
        )
    return pd.read_csv(io.BytesIO(packed), compression="gzip")
