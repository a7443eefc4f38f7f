"""X2: errors that are not normal, with and without an instrument: the honesty curve of methods
that rest on the normal shape.

The draws of A-E1 with t(3) and with centred chi-squared(3) errors of the same variances and
correlation; normal ones beside them.
"""

from __future__ import annotations

from dataclasses import dataclass

from heckesel.datasets import Controlled, make_controlled
from heckesel.datasets.error_draws import ERRORS
from reproduction import e1_controlled as e1
from reproduction.fit_cells import metrics_row
from reproduction.runner import attempt
from reproduction.x1_profile import curve_row, fit_pools

DATA_HASHES = e1.DATA_HASHES
METHODS = ("heckman_profile", "spline_joint", "heckman_two_step", "heckman_joint", "deep_ensemble")


@dataclass(frozen=True)
class Cell:
    errors: str
    rho: float
    alpha: float
    seed: int
    method: str
    prior: str = "uniform"


def cells(quick: bool = False) -> list[Cell]:
    rhos, seeds = ((0.9,), range(2)) if quick else (e1.RHOS, e1.SEEDS)
    methods = ("spline_joint",) if quick else METHODS
    return [
        Cell(e, r, a, s, m)
        for e in ERRORS
        for r in rhos
        for a in e1.ALPHAS
        for s in seeds
        for m in methods
    ]


def chunk_of(cell: Cell) -> str:
    return f"{cell.errors} {cell.method}"


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    pools = [_draw(cell, e1.POOL, cell.seed) for cell in cells]
    fits = fit_pools(cells[0], pools, [cell.seed for cell in cells], device)
    return [attempt(_metrics, *parts) for parts in zip(cells, fits, strict=True)]


def _draw(cell: Cell, size: int, seed: int) -> Controlled:
    return make_controlled(
        size, rho=cell.rho, alpha=cell.alpha, seed=seed, sigma=e1.SIGMA, errors=cell.errors
    )


def _metrics(cell: Cell, fit) -> dict[str, float]:
    test = _draw(cell, e1.TEST, e1.TEST_SEED_OFFSET + cell.seed)
    return metrics_row(fit, test.frame[["x"]].to_numpy(), test.truth) | curve_row(fit)
