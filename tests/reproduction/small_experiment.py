"""An experiment of a second, for tests of the runner: chunks of two cells, one of which fails."""

import os
import time
from dataclasses import dataclass

DATA_HASHES: dict[str, str] = {}


@dataclass(frozen=True)
class Cell:
    number: int


def cells(quick=False):
    return [Cell(number) for number in range(4 if quick else 12)]


def chunk_of(cell):
    return f"chunk {cell.number // 2}"


def run_chunk(cells, device="auto"):
    time.sleep(float(os.environ.get("SECONDS_A_CHUNK", "0.03")))
    unlucky = "SEVEN" not in os.environ
    return [
        ValueError("seven is unlucky")
        if unlucky and cell.number == 7
        else {"square": cell.number**2 / 3}
        for cell in cells
    ]
