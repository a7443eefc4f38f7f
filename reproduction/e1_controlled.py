"""A-E1, the controlled demonstration: one curve, one instrument, selection on unobservables.

For each rho, alpha (strength of the instrument) and seed: eight methods fitted on a pool of 2000,
metrics on 3000 fresh population draws, split by the true P(s = 1 | x). Inputs are not
standardised here, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

from heckesel.datasets import Controlled, make_controlled
from heckesel.datasets.controlled import controlled_f0
from heckesel.methods import load_method
from heckesel.methods.oracle import OracleConfig
from heckesel.networks.training.config import NetworkConfig
from reproduction.fit_cells import Problem, as_data, fit_cells, problem_row
from reproduction.runner import attempt

RHOS, ALPHAS, SEEDS = (0.0, 0.3, 0.6, 0.9), (0.0, 1.0), range(8)
POOL, TEST, TEST_SEED_OFFSET = 2000, 3000, 10_000
SIGMA = 0.5
METHODS = (
    "heckman_joint",
    "heckman_two_step",
    "blind_two_head",
    "deep_ensemble",
    "weighted_ensemble",
    "mc_dropout",
    "gp",
    "oracle",
)
NETWORK = NetworkConfig(standardise=False)
DATA_HASHES: dict[str, str] = {}  # everything is drawn


@dataclass(frozen=True)
class Cell:
    rho: float
    alpha: float
    seed: int
    method: str


def cells(quick: bool = False) -> list[Cell]:
    rhos, seeds = ((0.0, 0.9), range(1)) if quick else (RHOS, SEEDS)
    return [Cell(r, a, s, m) for r in rhos for a in ALPHAS for s in seeds for m in METHODS]


def chunk_of(cell: Cell) -> str:
    """One method over the whole grid is one batch: 64 cells of five networks."""
    return cell.method


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    problems = [problem(cell) for cell in cells]
    if cells[0].method == "oracle":
        config = OracleConfig(f0=lambda x: controlled_f0(x[:, 0]), sigma=SIGMA)
        fits = [load_method("oracle").fit(one.data, seed=0, config=config) for one in problems]
    else:
        seeds = [cell.seed for cell in cells]
        fits = fit_cells(cells[0].method, problems, seeds, network=NETWORK, device=device)
    return [attempt(problem_row, *pair) for pair in zip(problems, fits, strict=True)]


def problem(cell) -> Problem:
    return _problem(cell.rho, cell.alpha, cell.seed)


# Every method asks for the same draws: those of the whole grid, some 20 MB.
@lru_cache(len(RHOS) * len(ALPHAS) * len(SEEDS))
def _problem(rho: float, alpha: float, seed: int) -> Problem:
    draw = partial(make_controlled, rho=rho, alpha=alpha, sigma=SIGMA)
    own, test = draw(POOL, seed=seed), draw(TEST, seed=TEST_SEED_OFFSET + seed)
    return controlled_problem(own, test)


def controlled_problem(pool: Controlled, test: Controlled) -> Problem:
    return Problem(as_data(pool), pool.truth, test.frame[["x"]].to_numpy(), test.truth)


def pool(cell) -> Controlled:
    return make_controlled(POOL, rho=cell.rho, alpha=cell.alpha, seed=cell.seed, sigma=SIGMA)
