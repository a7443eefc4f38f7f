"""Does the joint likelihood need its warm-up? rho of every member with and without it.

The paper freezes rho at 0 for 100 of 1500 epochs and reports that rho collapses otherwise. Here
the same draws with and without it, at the paper's schedule and at two short ones.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from heckesel.deep.methods import fit_joint
from reproduction.e1_controlled import NETWORK, problem
from reproduction.problems import rho_row

SCHEDULES: dict[str, dict] = {
    "paper": {},
    "200 epochs": {"epochs": 200},
    "learning rate 1e-3": {"learning_rate": 1e-3},
}
RHOS, ALPHAS, SEEDS, WARM_UPS = (0.8, 0.9), (0.0, 1.0), range(8), (0, 100)
chunk_of = "{0.schedule}, warm-up {0.warm_up}".format


@dataclass(frozen=True)
class Cell:
    rho: float
    alpha: float
    seed: int
    schedule: str
    warm_up: int


def cells(quick: bool = False) -> list[Cell]:
    seeds = range(1) if quick else SEEDS
    schedules = ("200 epochs",) if quick else tuple(SCHEDULES)
    return [Cell(*each) for each in product(RHOS, ALPHAS, seeds, schedules, WARM_UPS)]


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    config = replace(NETWORK, warm_up=cells[0].warm_up, **SCHEDULES[cells[0].schedule])
    datas, seeds = [problem(cell).data for cell in cells], [cell.seed for cell in cells]
    fits = fit_joint(datas, seeds, config, device=device)
    return [rho_row(fit) | {"loss": float(np.mean(fit.info.training_loss))} for fit in fits]
