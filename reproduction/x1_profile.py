"""X1: the whole likelihood over rho, on the paper's draws and on a function of five columns.

The paper's failure without an instrument is repeated with a method that weights every rho by its
evidence: with a uniform prior, with the sign of rho known, and with the wrong sign assumed.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from heckesel.classical.spline_profile import RhoInfo
from heckesel.datasets import make_controlled, make_interactions
from heckesel.datasets.simulated import interactions_f0
from heckesel.deep.training import NetworkConfig
from reproduction.baselines import Oracle
from reproduction.e1_controlled import ALPHAS, POOL, RHOS, SEEDS, SIGMA, controlled_problem
from reproduction.problems import Problem, metrics_row, run_cells

PRIORS = ("uniform", "positive", "negative")
# A method that weights rho takes a prior. The others are run on the five columns only, because A-E1
# runs them on the curve.
PROFILE = "spline_joint"
WEIGHING = (PROFILE,)
OTHERS = ("heckman_two_step", "heckman_joint", "deep_ensemble", "oracle")
DRAWS = {
    "curve": (make_controlled, POOL),
    "interactions": (make_interactions, 4000),
}
NETWORK = NetworkConfig()
ORACLE = Oracle(f0=interactions_f0, sigma=SIGMA)
chunk_of = "{0.draw} {0.method} {0.prior}".format


@dataclass(frozen=True)
class Cell:
    draw: str
    rho: float
    alpha: float
    seed: int
    method: str
    prior: str


def cells(quick: bool = False) -> list[Cell]:
    if quick:
        return [Cell("curve", 0.9, a, 0, method, "uniform") for method in WEIGHING for a in ALPHAS]
    choices = [*product(("curve", "interactions"), WEIGHING, PRIORS)]
    choices += [("interactions", method, "uniform") for method in OTHERS]
    return [
        Cell(draw, rho, alpha, seed, method, prior)
        for (draw, method, prior), rho, alpha, seed in product(choices, RHOS, ALPHAS, SEEDS)
    ]


def problem(cell: Cell) -> Problem:
    make, size = DRAWS[cell.draw]
    draw = {"rho": cell.rho, "alpha": cell.alpha, "seed": cell.seed}
    return controlled_problem(make=make, size=size, **draw)


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    options = {"oracle": ORACLE, "prior": cells[0].prior, "device": device, "row": _row}
    return run_cells(cells, problem, network=NETWORK, **options)


def _row(problem: Problem, fit) -> dict[str, float]:
    """Metrics, and for methods with a likelihood curve over rho the two best modes and the
    interval."""
    row = metrics_row(fit, problem.x, problem.test_truth)
    if not isinstance(fit.info, RhoInfo):
        return row
    low, high = fit.info.rho_interval
    row |= {"rho_low": low, "rho_high": high, "modes": float(len(fit.info.modes))}
    for place, mode in enumerate(fit.info.modes[:2]):
        row |= {f"mode{place}_rho": mode.rho, f"mode{place}_weight": mode.weight}
    height = np.array(fit.info.curve["log_evidence"])
    row["evidence_at_zero"] = float(np.interp(0.0, fit.info.curve["rho"], height))
    return row
