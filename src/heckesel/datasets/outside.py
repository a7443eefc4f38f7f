"""Reading data files that do not ship, from the folder in the variable HECKESEL_DATA."""

import gzip
import hashlib
import os
from pathlib import Path

from heckesel.errors import DataError

VARIABLE = "HECKESEL_DATA"
GZIP_MAGIC = b"\x1f\x8b"


def read_outside(name: str, sha256: str, path: str | Path | None, *, published: str) -> bytes:
    """The content of `path`, or by default of `name` in the folder HECKESEL_DATA, unzipped.

    A file found by name must have the recorded SHA-256, because committed results depend on it. A
    file given by its path is read as it is.

    published : where the file is published and what it contains, for error messages
    """
    found = Path(path) if path is not None else _in_data_folder(name, published)
    try:
        packed = found.read_bytes()
    except OSError as error:
        raise DataError(f"{found} cannot be read ({error.strerror}); {published}") from None
    if path is None and (computed := hashlib.sha256(packed).hexdigest()) != sha256:
        raise DataError(
            f"{found} has SHA-256 {computed} instead of {sha256}; give its path to read it anyway"
        )
    return gzip.decompress(packed) if packed.startswith(GZIP_MAGIC) else packed


def _in_data_folder(name: str, published: str) -> Path:
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise DataError(
            f"{name} does not ship with heckesel: {published}; save it in a folder and set "
            f"{VARIABLE} to that folder, or give its path"
        )
    return Path(folder) / name
