"""A-E2/E3: real tables with induced, documented selection.

California housing and red wine quality. `induce_selection` hides half of the outcomes of a pool.
Eight methods are fitted to the others; metrics are computed on test rows without selection and
split by P(s = 1 | x). Everything is standardised by the pool, as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

from heckesel.datasets import (
    SemiReal,
    induce_selection,
    load_california_housing,
    load_wine_quality,
)
from heckesel.datasets.california_housing import FILES as CALIFORNIA_FILES
from heckesel.datasets.wine_quality import FILES as WINE_FILES
from heckesel.networks.training.config import NetworkConfig
from reproduction.problems import TRAINED, Problem, as_data, run_problems

# rows of the pool and of the test set
SIZES = {"california": (6000, 4000), "wine": (1100, 499)}
# loader, outcome
TABLES: dict[str, tuple[Callable, str]] = {
    "california": (cache(load_california_housing), "MedHouseVal"),
    "wine": (cache(load_wine_quality), "quality"),
}
SEEDS = {0.0: range(3), 0.5: range(3), 0.8: range(8)}
METHODS = (*TRAINED, "skyline")
NETWORK = NetworkConfig(standardise=False)  # the draws are standardised already
DATA_HASHES = CALIFORNIA_FILES | WINE_FILES


@dataclass(frozen=True)
class Cell:
    dataset: str
    rho: float
    seed: int
    method: str


def cells(quick: bool = False) -> list[Cell]:
    if quick:
        return [Cell("wine", 0.8, seed, method) for seed in range(2) for method in METHODS]
    return [
        Cell(dataset, rho, seed, method)
        for dataset in SIZES
        for rho, seeds in SEEDS.items()
        for seed in seeds
        for method in METHODS
    ]


def chunk_of(cell: Cell) -> str:
    """One method on one dataset: cells of one shape."""
    return f"{cell.dataset} {cell.method}"


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    problems, seeds = [problem(cell) for cell in cells], [cell.seed for cell in cells]
    return run_problems(cells[0].method, problems, seeds, network=NETWORK, device=device)


def problem(cell) -> Problem:
    return _problem(cell.dataset, cell.rho, cell.seed)


# Every method asks for the same draws: those of the whole grid, some 25 MB.
@lru_cache(len(SIZES) * sum(map(len, SEEDS.values())))
def _problem(dataset: str, rho: float, seed: int) -> Problem:
    return semireal_problem(draw_table(*TABLES[dataset], SIZES[dataset], rho, seed))


def semireal_problem(one: SemiReal) -> Problem:
    x = one.test_frame.drop(columns="y").to_numpy()
    return Problem(as_data(one), one.truth, x, one.test_truth)


def draw(cell) -> SemiReal:
    return draw_table(*TABLES[cell.dataset], SIZES[cell.dataset], cell.rho, cell.seed)


def draw_table(load: Callable, outcome: str, sizes: tuple, rho: float, seed: int) -> SemiReal:
    n_pool, n_test = sizes
    return induce_selection(
        load(), outcome=outcome, rho=rho, seed=seed, n_pool=n_pool, n_test=n_test
    )
