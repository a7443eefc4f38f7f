"""Reading the data files that ship inside the package."""

import hashlib
import io
from importlib import resources

import pandas as pd

from heckesel.errors import DataError


def read_shipped(hashes: dict[str, str], name: str | None = None) -> pd.DataFrame:
    """The table in a file of `datasets/files`, by default the first.

    Published results depend on the order and the last digit of these rows, so a file whose SHA-256
    differs from the recorded one is an error.

    hashes : file name -> SHA-256
    """
    name = name or next(iter(hashes))
    packed = resources.files("heckesel.datasets").joinpath("files", name).read_bytes()
    found = hashlib.sha256(packed).hexdigest()
    if found != (recorded := hashes[name]):
        raise DataError(
            f"{name} has SHA-256 {found} instead of {recorded}; reinstall heckesel to restore it"
        )
    return pd.read_csv(io.BytesIO(packed), compression="gzip")
