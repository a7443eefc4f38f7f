"""A-E2/E3: real tables with induced, documented selection.

California housing and red wine quality. `induce_selection` hides half of the outcomes of a pool.
Eight methods are fitted to the others; metrics are computed on test rows without selection and
split by P(s = 1 | x). Everything is standardised by the pool, as in the paper.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product

from heckesel.datasets import SemiReal, induce_selection, load_california_housing, load_wine_quality
from heckesel.datasets.shipped import FILES
from heckesel.deep.training import NetworkConfig
from reproduction.problems import TRAINED, Problem, as_data, run_cells

# loader, outcome, rows of the pool and of the test set
TABLES: dict[str, tuple[Callable, str, int, int]] = {
    "california": (cache(load_california_housing), "MedHouseVal", 6000, 4000),
    "wine": (cache(load_wine_quality), "quality", 1100, 499),
}
SEEDS = {0.0: range(3), 0.5: range(3), 0.8: range(8)}
DRAWS = [(name, rho, seed) for name in TABLES for rho in SEEDS for seed in SEEDS[rho]]
METHODS = (*TRAINED, "skyline")
NETWORK = NetworkConfig(standardise=False)  # the draws are standardised already
DATA_HASHES = {name: FILES[name] for name in FILES if name.startswith(("california", "wine"))}
chunk_of = "{0.dataset} {0.method}".format  # cells of one shape


@dataclass(frozen=True)
class Cell:
    dataset: str
    rho: float
    seed: int
    method: str


def cells(quick: bool = False) -> list[Cell]:
    if quick:
        return [Cell("wine", 0.8, seed, method) for seed in range(2) for method in METHODS]
    return [Cell(*draw, method) for draw, method in product(DRAWS, METHODS)]


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    return run_cells(cells, problem, network=NETWORK, device=device)


def problem(cell) -> Problem:
    return table_problem(TABLES[cell.dataset], cell.rho, cell.seed)


# All methods use the same draws: those of the whole grid take about 25 MB.
@lru_cache(len(DRAWS))
def table_problem(table: tuple[Callable, str, int, int], rho: float, seed: int) -> Problem:
    one = draw_table(*table, rho=rho, seed=seed)
    x = one.test_frame.drop(columns="y").to_numpy()
    return Problem(as_data(one), one.truth, x, one.test_truth)


def draw_table(load: Callable, outcome: str, n_pool: int, n_test: int, **rule) -> SemiReal:
    return induce_selection(load(), outcome=outcome, n_pool=n_pool, n_test=n_test, **rule)
