"""Write LICENCES.md from the metadata of the installed packages.

python scripts/licences.py
"""

from __future__ import annotations

from importlib.metadata import metadata
from pathlib import Path

from lock import ROOT, pinned

PAGE = ROOT / "LICENCES.md"
TOP = """\
# Licences

heckesel is published under the MIT licence. The table lists what `make setup` installs: the
packages it needs, those of the optional extras, and the tools for tests and documentation. The
last column is the licence stated in the metadata of each package. Packages under the GPL are used
by tests only. The table is written by `scripts/licences.py`.

| package | version | licence |
|---|---|---|
"""
# Some packages put the whole text of their licence into the field for its name.
LONGEST_NAME = 40


def licence(name: str) -> str:
    """The SPDX expression; else the name of the licence; else what the classifiers say."""
    stated = metadata(name)
    free = stated.get("License", "")
    if expression := stated.get("License-Expression"):
        return expression
    if free and len(free) <= LONGEST_NAME and "\n" not in free:
        return free
    classifiers = [line.split(" :: ") for line in stated.get_all("Classifier", [])]
    return "; ".join(parts[-1] for parts in classifiers if parts[0] == "License")


def row(requirement: str) -> str:
    name, version = requirement.split("==")
    return f"| {name} | {version} | {licence(name)} |\n"


def write(page: Path = PAGE) -> None:
    page.write_text(TOP + "".join(map(row, sorted(pinned(), key=str.lower))), encoding="utf-8")


if __name__ == "__main__":
    write()
