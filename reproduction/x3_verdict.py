"""X3: is the verdict on identification right? 432 generated data sets of which the truth is known.

The curve of A-E1 with an instrument that is strong, weak, irrelevant (a column of noise) or absent,
at three correlations and three sizes. Each data set gets the verdict of `hk.identify` and a spline
fit, whose 90 % intervals are then counted where selection was against.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from heckesel.data import SelectionData
from heckesel.datasets import Controlled, make_controlled
from heckesel.diagnostics.evidence import identify
from heckesel.diagnostics.verdict import VERDICTS
from heckesel.methods import load_method
from reproduction.e1_controlled import DATA_HASHES, SIGMA, TEST, TEST_SEED_OFFSET
from reproduction.fit_cells import as_data, metrics_row
from reproduction.runner import attempt
from reproduction.x1_profile import curve_row

__all__ = ["DATA_HASHES", "Cell", "cells", "chunk_of", "run_chunk"]

# Strength of the instrument in the index, where the error has sd 1.
INSTRUMENTS = {"strong": 1.0, "weak": 0.1, "irrelevant": 0.0, "none": 0.0}
RHOS, SIZES, SEEDS = (0.0, 0.5, 0.9), (500, 2000, 8000), range(12)
FIRST_SEED = 50_000  # draws that no other experiment has


@dataclass(frozen=True)
class Cell:
    instrument: str
    rho: float
    n: int
    seed: int


def cells(quick: bool = False) -> list[Cell]:
    sizes, seeds = ((500,), range(1)) if quick else (SIZES, SEEDS)
    return [Cell(i, r, n, s) for i in INSTRUMENTS for r in RHOS for n in sizes for s in seeds]


def chunk_of(cell: Cell) -> str:
    return f"{cell.instrument} {cell.n}"


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    return [attempt(_row, cell) for cell in cells]


def _row(cell: Cell) -> dict[str, float]:
    data = pool(cell)
    found = identify(data)
    fit = load_method("spline_joint").fit(data, device="cpu")
    test = _draw(cell, TEST, TEST_SEED_OFFSET)
    row = {"verdict": float(VERDICTS.index(found.verdict))}
    row |= {
        name: float(found.evidence[name])
        for name in ("wald", "likelihood_ratio", "mills_share", "rho", "rho_low", "rho_high")
        if name in found.evidence
    }
    return row | metrics_row(fit, test.frame[["x"]].to_numpy(), test.truth) | _fit_row(fit)


def _fit_row(fit) -> dict[str, float]:
    return {f"fit_{name}": value for name, value in curve_row(fit).items()}


def pool(cell: Cell) -> SelectionData:
    """x and, unless there is no instrument at all, z."""
    data = as_data(_draw(cell, cell.n, 0))
    if cell.instrument != "none":
        return data
    return replace(data, w=data.x, w_names=data.x_names)


def _draw(cell: Cell, size: int, offset: int) -> Controlled:
    return make_controlled(
        size,
        rho=cell.rho,
        alpha=INSTRUMENTS[cell.instrument],
        seed=FIRST_SEED + offset + cell.seed,
        sigma=SIGMA,
    )
