"""`results/<experiment>.json`: versions, device and hashes of data, and one row per cell."""

import json
import platform
from collections.abc import Sequence
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from heckesel import __version__
from heckesel.errors import DataError
from heckesel.io import write_atomically
from reproduction import EXPERIMENTS

SCHEMA = 1
PACKAGES = ("numpy", "scipy", "pandas", "torch")
PARTS = {"packages": dict, "python": str, "device": str, "data": dict, "rows": list}
WAY_OUT = "restore it, or move it away and run the experiment again"


def results_path(name: str, folder: Path, quick: bool = False) -> Path:
    """The path of the rows of an experiment; quick ones have a separate folder."""
    stem = EXPERIMENTS[name].rpartition(".")[2]
    return folder / ("quick" if quick else "") / f"{stem}.json"


def cell_key(cell: dict) -> str:
    """A cell as text, which identifies it and by which rows are ordered."""
    return json.dumps(cell, sort_keys=True)


def provenance(device: str, data_hashes: dict, packages: Sequence[str] = ()) -> dict:
    """The description of rows that are computed now: everything in a file except its rows."""
    return {
        "schema": SCHEMA,
        "packages": {
            "heckesel": __version__,
            **{name: _version(name) for name in (*PACKAGES, *packages)},
        },
        "python": platform.python_version(),
        "device": device,
        "data": data_hashes,
    }


def difference(there: dict, here: dict) -> str | None:
    """The first thing in which two provenances differ, in words."""
    old, new = _named(there), _named(here)
    for name in old | new:
        if old.get(name) != new.get(name):
            return f"was made with {name} {old.get(name)}, but this run has {new.get(name)}"
    return None


def _named(made: dict) -> dict:
    data = {f"data file {name}": digest for name, digest in made["data"].items()}
    return made["packages"] | {"Python": made["python"], "device": made["device"]} | data


def write_results(path: Path, rows: list[dict], made: dict) -> None:
    """Rows sorted by cell, replaced in one step, so that a killed run leaves either the old file or
    the new one.

    A row is {"cell": {...}, "metrics": {...}} or {"cell": {...}, "error": "..."}; `made` is the
    `provenance` of all of them.
    """
    content = made | {"rows": sorted(rows, key=lambda row: cell_key(row["cell"]))}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(content, indent=1, sort_keys=False) + "\n")


def read_rows(path: Path) -> list[dict]:
    return read_results_file(path)["rows"]


def rows_of_auto(name: str, folder: Path) -> list[dict]:
    """Rows of `<name>_auto.json`: cells of the default method and its variants that were computed
    on another device than the other cells of the experiment."""
    path = folder / f"{name}_auto.json"
    return read_rows(path) if path.exists() else []


def read_results_file(path: Path) -> dict:
    """Provenance and rows; a damaged file is a `DataError` that names it."""
    content = _read_json(path)
    if problem := _problem(content):
        raise DataError(f"{path} {problem}; {WAY_OUT}")
    return content


def read_times(path: Path) -> dict[str, float]:
    """Seconds by chunk."""
    content = _read_json(path)
    if not isinstance(content, dict):
        raise DataError(f"{path} is damaged: it does not hold the seconds of each chunk; {WAY_OUT}")
    return content


def read_reference(name: str) -> dict:
    """Published and full-precision values, see the note inside each file."""
    path = resources.files("reproduction").joinpath("reference", f"{name}.json")
    return json.loads(path.read_text(encoding="utf-8"))


def _read_json(path: Path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is damaged and cannot be read ({error}); {WAY_OUT}") from error


def _problem(content) -> str | None:
    """What is wrong with the content of a results file."""
    if not isinstance(content, dict):
        return "is not a results file"
    if content.get("schema") != SCHEMA:
        return f"has schema {content.get('schema')!r}, but this version reads schema {SCHEMA}"
    for name, kind in PARTS.items():
        if not isinstance(content.get(name), kind):
            return f"is damaged: {name!r} is missing or not a {kind.__name__}"
    seen = set()
    for number, row in enumerate(content["rows"], 1):
        cell = row.get("cell") if isinstance(row, dict) else None
        if not isinstance(cell, dict) or (
            isinstance(row.get("metrics"), dict) == isinstance(row.get("error"), str)
        ):
            return f"is damaged: row {number} does not have a cell with metrics or an error"
        if (key := cell_key(cell)) in seen:
            return f"is damaged: two rows have the cell {key}"
        seen.add(key)
    return None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
