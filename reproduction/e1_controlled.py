"""A-E1, the controlled demonstration: one curve, one instrument, selection on unobservables.

For each rho, alpha (strength of the instrument) and seed: eight methods fitted on a pool of 2000,
metrics on 3000 fresh population draws, split by the true P(s = 1 | x). Inputs are not
standardised here, as in the paper.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product

from heckesel.datasets import Controlled, make_controlled
from heckesel.datasets.simulated import controlled_f0
from heckesel.deep.training import NetworkConfig
from reproduction.baselines import Oracle
from reproduction.problems import TRAINED, Problem, as_data, run_cells

RHOS, ALPHAS, SEEDS = (0.0, 0.3, 0.6, 0.9), (0.0, 1.0), range(8)
POOL, TEST, TEST_SEED_OFFSET = 2000, 3000, 10_000
SIGMA = 0.5
METHODS = (*TRAINED, "oracle")
NETWORK = NetworkConfig(standardise=False)
ORACLE = Oracle(f0=lambda x: controlled_f0(x[:, 0]), sigma=SIGMA)
chunk_of = "{0.method}".format  # over the whole grid: 64 cells of five networks


@dataclass(frozen=True)
class Cell:
    rho: float
    alpha: float
    seed: int
    method: str


def cells(quick: bool = False) -> list[Cell]:
    rhos, seeds = ((0.0, 0.9), range(1)) if quick else (RHOS, SEEDS)
    return [Cell(*each) for each in product(rhos, ALPHAS, seeds, METHODS)]


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    return run_cells(cells, problem, network=NETWORK, device=device, oracle=ORACLE)


def problem(cell) -> Problem:
    return controlled_problem(rho=cell.rho, alpha=cell.alpha, seed=cell.seed)


# All methods use the same draws: those of the whole grid take about 20 MB.
@lru_cache(len(RHOS) * len(ALPHAS) * len(SEEDS))
def controlled_problem(
    *, seed: int, make: Callable[..., Controlled] = make_controlled, size: int = POOL, **draw
) -> Problem:
    """A pool of `size` drawn by `make`, and test points drawn by it with another seed."""
    make = partial(make, sigma=SIGMA, **draw)
    own, test = make(size, seed=seed), make(TEST, seed=TEST_SEED_OFFSET + seed)
    x = test.frame.drop(columns=["z", "y"]).to_numpy()
    return Problem(as_data(own), own.truth, x, test.truth)
