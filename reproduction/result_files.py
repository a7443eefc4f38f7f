"""`results/<experiment>.json`: what was run on what, and one row per cell."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from heckesel import __version__
from heckesel.atomic_files import write_atomically
from reproduction import EXPERIMENTS

SCHEMA = 1
PACKAGES = ("numpy", "scipy", "pandas", "torch")


def results_path(name: str, folder: Path, quick: bool = False) -> Path:
    """Where the rows of an experiment lie; quick ones where they cannot stand in for full ones."""
    stem = EXPERIMENTS[name].rpartition(".")[2]
    return folder / ("quick" if quick else "") / f"{stem}.json"


def cell_key(cell: dict) -> str:
    """A cell as text, to tell it from others and to order rows by."""
    return json.dumps(cell, sort_keys=True)


def write_results(path: Path, rows: list[dict], *, device: str, data_hashes: dict) -> None:
    """Rows sorted by cell, replaced in one step so that a kill leaves the old file or the new.

    A row is {"cell": {...}, "metrics": {...}} or {"cell": {...}, "error": "..."}.
    """
    ordered = sorted(rows, key=lambda row: cell_key(row["cell"]))
    content = {
        "schema": SCHEMA,
        "packages": {"heckesel": __version__} | {name: _version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "device": device,
        "data": data_hashes,
        "rows": ordered,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(content, indent=1, sort_keys=False) + "\n")


def read_rows(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["rows"]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
