"""X4: calibration on real tables and on A-E1, for `HeckmanRegressor` and for ensembles on folds.

The pools, seeds and test rows of A-E2 (California housing, wine quality) and of A-E1, the dataset
"controlled". `auto` is the default `HeckmanRegressor`. The ensembles have the settings of
`NETWORK`: each member holds out a fold, and held-out rows choose sigma or sigma(x).
"""

from dataclasses import dataclass
from itertools import product

from heckesel.deep.training import NetworkConfig
from reproduction import e1_controlled, e2_semireal
from reproduction.problems import AUTO, Problem, problem_row, run_cells

NETWORK = NetworkConfig(n_members=10, folds=5, noise="auto", tails="auto")
CONTROL_METHODS = (AUTO, "heckman_two_step", "heckman_joint", "deep_ensemble")
METHODS = (*CONTROL_METHODS, "weighted_ensemble", "skyline")
DATA_HASHES = e2_semireal.DATA_HASHES
chunk_of = "{0.dataset} {0.method}".format  # cells of one shape


@dataclass(frozen=True)
class Cell:
    """alpha : strength of the instrument in "controlled", 1 elsewhere (it is z's coefficient)"""

    dataset: str
    rho: float
    alpha: float
    seed: int
    method: str


def cells(quick: bool = False) -> list[Cell]:
    if quick:
        return [Cell("wine", 0.8, 1.0, seed, name) for seed in range(2) for name in METHODS]
    draws = product(e2_semireal.DRAWS, METHODS)
    real = [Cell(dataset, rho, 1.0, seed, name) for (dataset, rho, seed), name in draws]
    grid = (e1_controlled.RHOS, e1_controlled.ALPHAS, e1_controlled.SEEDS, CONTROL_METHODS)
    return real + [Cell("controlled", *each) for each in product(*grid)]


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    return run_cells(cells, problem, network=NETWORK, device=device, row=_metrics)


def problem(cell: Cell) -> Problem:
    source = e1_controlled if cell.dataset == "controlled" else e2_semireal
    return source.problem(cell)


def _metrics(one: Problem, fit) -> dict[str, float]:
    # Mean and sd of rho say enough here.
    row = problem_row(one, fit)
    return {name: value for name, value in row.items() if not name.startswith("rho_member_")}
