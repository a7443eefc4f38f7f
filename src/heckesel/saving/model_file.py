"""A model as one file: a safetensors file whose metadata holds everything that is not a tensor, as
JSON.

Metadata has two keys: `heckesel`, the JSON text, and `sha256`, the hash of that text and of every
tensor's name, type, shape and bytes. The hash detects damage, not manipulation, because anyone can
compute it. Therefore nothing in a file is executed, and everything in it is validated.

In the JSON an array is written as {"$tensor": name} and a number that JSON cannot represent as
{"$float": "nan" | "inf" | "-inf"}.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from heckesel import __version__
from heckesel.atomic_files import write_atomically
from heckesel.errors import DataError, HeckeselError, cannot_import, printable

FORMAT = 1
LARGEST_HEADER = 2**24  # bytes; the JSON of a fit with ten thousand columns takes less than half
FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
DTYPES = ("float64", "float32", "int64")


class Damage(Exception):
    """The defect of a file, as the end of a sentence that begins with its name."""


def write_model(path, content: dict) -> None:
    """`content`, a nesting of dicts, lists, plain values and arrays, as the file `path`."""
    tensors: dict[str, np.ndarray] = {}
    head = {"format": FORMAT, "version": __version__}
    text = json.dumps(head | {"model": _encoded(content, "model", tensors)}, allow_nan=False)
    metadata = {"heckesel": text, "sha256": _digest(text, tensors)}
    saved = safetensors.numpy.save(tensors, metadata)
    header = int.from_bytes(saved[:8], "little")
    if header > LARGEST_HEADER:
        raise DataError(
            f"the columns and categories of this model take {header:,} bytes, and a model file "
            f"holds at most {LARGEST_HEADER:,}; merge rare categories"
        )
    write_atomically(path, saved)


def as_read(content: dict) -> dict:
    """`content` as `read_model` would return it."""
    tensors: dict[str, np.ndarray] = {}
    return _decoded(_encoded(content, "model", tensors), tensors)


def read_model(path) -> dict:
    """The content that `write_model` wrote; any other file raises a `DataError`."""
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"path must be the name of a file, got {path!r}")
    path = Path(path)
    with refusing(path):  # a name may be too long for the system
        if not path.is_file():
            state = "is a folder" if path.is_dir() else "is not a regular file"
            state = state if path.exists() else "does not exist"
            raise DataError(f"{path} {state}; pass the file that save() wrote")
    with refusing(path):
        with open(path, "rb") as file:
            text, digest = _metadata(file, path.stat().st_size)
            head = _json(text)
            _check_format(head)
            file.seek(0)
            content = file.read()
        try:
            tensors = safetensors.numpy.load(content)
        except (SafetensorError, KeyError, ValueError, TypeError) as error:
            reason = printable((str(error).strip() or type(error).__name__).splitlines()[0])
            raise Damage(f"has tensors that cannot be read ({reason})") from None
        for name, tensor in tensors.items():
            if str(tensor.dtype) not in DTYPES:
                raise Damage(f"has a tensor {name!r} of type {tensor.dtype}")
        if _digest(text, tensors) != digest:
            raise Damage("was altered after it was saved: its checksum does not match")
        unused = dict(tensors)
        model = _decoded(head.get("model"), unused)
        if unused:
            raise Damage(f"has a tensor {next(iter(unused))!r} that no field uses")
    return model


@contextmanager
def refusing(path) -> Iterator[None]:
    """Every error that a hostile file can cause while it is read, as one sentence."""
    try:
        yield
    except Damage as damage:
        raise DataError(f"{path} {damage}") from None
    except (RecursionError, MemoryError, OverflowError) as error:
        kind = type(error).__name__
        raise DataError(f"{path} is not a model saved by heckesel ({kind})") from None
    except OSError as error:
        raise HeckeselError(f"{path} cannot be read: {error.strerror or error}") from None


def imported(module: str):
    """A module of heckesel that may need torch."""
    try:
        return import_module(module)
    except ImportError as error:
        raise HeckeselError(
            "this model holds networks and needs "
            + cannot_import(error.name or "a package", error, "pip install 'heckesel[deep]'")
        ) from None


def _metadata(file, size: int) -> tuple[str, str]:
    """The JSON text and its hash, which are read before the tensors."""
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > size - 8:
        raise Damage("is not a model saved by heckesel, or is truncated")
    if length > LARGEST_HEADER:
        raise Damage(
            f"is not a model saved by heckesel: its header has {length:,} bytes, but that of a "
            f"model has at most {LARGEST_HEADER:,}"
        )
    header = _json(file.read(length).decode("utf-8", errors="replace"))
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("heckesel"), str):
        raise Damage("is not a model saved by heckesel")
    ends = [
        entry["data_offsets"][1]
        for name, entry in header.items()
        if name != "__metadata__" and _has_offsets(entry)
    ]
    if max(ends, default=0) != size - 8 - length:
        raise Damage("is truncated, or something was appended to it")
    return metadata["heckesel"], str(metadata.get("sha256"))


def _has_offsets(entry) -> bool:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    return isinstance(offsets, list) and len(offsets) == 2 and all(type(o) is int for o in offsets)


def _json(text: str) -> dict:
    try:
        content = json.loads(text, parse_constant=_no_constant)
    except ValueError:
        raise Damage("is not a model saved by heckesel: its header is not JSON") from None
    if not isinstance(content, dict):
        raise Damage("is not a model saved by heckesel: its header is not a JSON object")
    return content


def _no_constant(name: str):
    raise ValueError(f"{name} is not JSON")


def _check_format(head: dict) -> None:
    found = head.get("format")
    if type(found) is not int or found < 1:
        raise Damage("is not a model saved by heckesel: it has no format number")
    if found > FORMAT:
        version = printable(str(head.get("version")))
        raise Damage(
            f"was saved by heckesel {version} in format {found}, but this version, {__version__}, "
            f"reads formats up to {FORMAT}; upgrade heckesel"
        )


def _digest(text: str, tensors: dict[str, np.ndarray]) -> str:
    found = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        found.update(f"\0{name}\0{tensor.dtype}\0{tensor.shape}\0".encode())
        found.update(tensor.tobytes())
    return found.hexdigest()


def _encoded(value, name: str, tensors: dict):
    if isinstance(value, np.ndarray) and str(value.dtype) in DTYPES:
        tensors[name] = np.ascontiguousarray(value)
        return {"$tensor": name}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_encoded(item, f"{name}.{j}", tensors) for j, item in enumerate(value)]
    if isinstance(value, dict) and not {"$tensor", "$float"} & set(value):
        return {str(key): _encoded(item, f"{name}.{key}", tensors) for key, item in value.items()}
    raise DataError(f"{name} is a {type(value).__name__}, which cannot be saved")


def _decoded(value, unused: dict):
    """The inverse of `_encoded`; tensors that are used are removed from `unused`."""
    if isinstance(value, list):
        return [_decoded(item, unused) for item in value]
    if not isinstance(value, dict):
        return value
    if "$tensor" in value:
        name = value["$tensor"]
        if not isinstance(name, str) or name not in unused:
            raise Damage(f"lacks the tensor {name!r}")
        return np.array(unused.pop(name))  # a copy, since bytes of a file are read-only
    if "$float" in value:
        if value["$float"] not in ("nan", "inf", "-inf"):
            raise Damage(f"holds {value['$float']!r} in place of a number")
        return FLOATS[value["$float"]]
    return {key: _decoded(item, unused) for key, item in value.items()}
