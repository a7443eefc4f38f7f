"""X2: errors that are not normal, with and without an instrument, for methods that assume normal
errors and for `auto`, which does not.

The draws of A-E1 with t(3) and with centred chi-squared(3) errors of the same variances and
correlation; normal ones are repeated for comparison.
"""

from dataclasses import dataclass
from itertools import product

from heckesel.datasets.error_draws import ERRORS
from reproduction.e1_controlled import ALPHAS, RHOS, SEEDS, controlled_problem
from reproduction.problems import Problem
from reproduction.x1_profile import run_with_prior

METHODS = (
    *("heckman_auto", "heckman_profile", "spline_joint"),
    *("heckman_two_step", "heckman_joint", "deep_ensemble"),
)
chunk_of = "{0.errors} {0.method}".format


@dataclass(frozen=True)
class Cell:
    errors: str
    rho: float
    alpha: float
    seed: int
    method: str
    prior: str = "uniform"


def cells(quick: bool = False) -> list[Cell]:
    rhos, seeds = ((0.9,), range(2)) if quick else (RHOS, SEEDS)
    methods = ("spline_joint",) if quick else METHODS
    return [Cell(*each) for each in product(ERRORS, rhos, ALPHAS, seeds, methods)]


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    return run_with_prior(cells, [problem(cell) for cell in cells], device)


def problem(cell: Cell) -> Problem:
    draw = {"rho": cell.rho, "alpha": cell.alpha, "errors": cell.errors}
    return controlled_problem(seed=cell.seed, **draw)
