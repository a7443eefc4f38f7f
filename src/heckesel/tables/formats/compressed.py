"""Compressed files: bytes to bytes, by the suffix."""

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from pathlib import Path

from heckesel.errors import DataError
from heckesel.tables.formats.typed_files import pyarrow

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst", ".zip")
DAMAGED = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def unpacked(raw: bytes, path, suffix: str) -> bytes:
    """suffix : one of COMPRESSIONS, or empty"""
    try:
        match suffix:
            case ".gz":
                return gzip.decompress(raw)
            case ".bz2":
                return bz2.decompress(raw)
            case ".xz":
                return lzma.decompress(raw)
            case ".zst":
                return pyarrow(".zst files").input_stream(io.BytesIO(raw), "zstd").read()
            case ".zip":
                return _only_member(raw, path)
    except DataError:
        raise
    except DAMAGED:
        raise DataError(f"{path} is not a complete {suffix[1:]} file; compress it again") from None
    return raw


def _only_member(raw: bytes, path) -> bytes:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        every = [each.filename for each in archive.infolist() if not each.is_dir()]
        names = [name for name in every if not name.startswith("__MACOSX/")]  # its own notes
        if len(names) != 1:
            raise DataError(f"{path} holds {len(names)} files; give an archive with one")
        try:
            return archive.read(names[0])
        except RuntimeError:  # a password, or a compression that Python does not have
            raise DataError(f"{path} cannot be unpacked here; unpack it first") from None


def packed(raw: bytes, path, suffix: str) -> bytes:
    """Without a time stamp, so that the same table gives the same bytes."""
    match suffix:
        case ".gz":
            return gzip.compress(raw, mtime=0)
        case ".bz2":
            return bz2.compress(raw)
        case ".xz":
            return lzma.compress(raw)
        case ".zst":
            return pyarrow(".zst files").compress(raw, codec="zstd", asbytes=True)
        case ".zip":
            content = io.BytesIO()
            with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(zipfile.ZipInfo(Path(path).stem), raw, zipfile.ZIP_DEFLATED)
            return content.getvalue()
    return raw
