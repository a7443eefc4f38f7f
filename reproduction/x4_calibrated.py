"""X4: calibration on real data. Members hold out a fold, and held-out rows choose sigma or
sigma(x).

The pools, seeds and test rows of A-E2, and of A-E1 as a control; two further tables, college
grades and school tests, with selection induced by the same rule; the baselines on the same
folds. "controlled-t" is A-E1 with t errors of five degrees of freedom, which the joint likelihood
with errors="t" assumes (method "heckman_joint_t"), unlike the normal one. `members` is the
size of the ensemble: the two-step is run with 2 to 40.

With eight draws the calibration error of wine has a standard error of .01, which is larger than the
differences between methods. "more" tables are therefore 32 further draws of California, wine and
A-E1 with the instrument, on which the paper's settings (methods called "paper") are run again. No
choice was made on them: the decision that the average predicts the mixture of its parts came later,
on other tables.

`docs/defaults.md` says how the defaults were chosen. No choice was made on the two further tables:
they test the defaults, and the choices that `pages/text/x4.md` lists. In every fit, methods called
"open" also choose the weight decay, the selection index or the errors.
"""

from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np

from heckesel.datasets import load_college_gpa, load_school_tests
from heckesel.datasets.college_gpa import FILES as COLLEGE_FILES
from heckesel.datasets.school_tests import FILES as SCHOOL_FILES
from heckesel.fit_info import as_dictionary
from heckesel.networks.training.config import NetworkConfig
from reproduction import e1_controlled, e2_semireal
from reproduction.problems import Problem, problem_row, run_cells

NETWORK = NetworkConfig(n_members=10, folds=5, noise="auto", tails="auto")
METHODS = (
    *("heckman_averaged", "heckman_two_step", "heckman_outcome", "heckman_joint"),
    *("blind_two_head", "deep_ensemble", "weighted_ensemble", "skyline"),
)
CONTROL_METHODS = ("heckman_averaged", "heckman_two_step", "heckman_joint", "deep_ensemble")
TAIL_METHODS = ("heckman_joint", "heckman_joint_t")
# What methods choose by the held-out loss in addition to the weight decay.
OPEN_METHODS: dict[str, dict] = {
    "heckman_two_step_open": {"selection": "auto"},
    "heckman_joint_open": {"errors": "auto"},
}
MORE, MORE_SEEDS = "more ", range(8, 40)
MORE_METHODS = ("heckman_averaged", "heckman_two_step", "skyline")
PAPER = "_paper"  # the paper's settings: five members on all rows, without early stopping
TAIL_DF = 5.0
SEEDS = e2_semireal.SEEDS
MEMBERS = (2, 5, 10, 20, 40)
SCHOOL = ["math4", "lunch", "enroll", "exppp"]
TABLES = e2_semireal.TABLES | {
    "college_gpa": (
        cache(lambda: load_college_gpa().drop(columns="hsizesq")),
        "colgpa",
        2700,
        1400,
    ),
    "school_tests": (cache(lambda: load_school_tests()[SCHOOL]), "math4", 1200, 600),
}
DATA_HASHES = e2_semireal.DATA_HASHES | COLLEGE_FILES | SCHOOL_FILES
chunk_of = "{0.dataset} {0.method} {0.members}".format  # cells of one shape


@dataclass(frozen=True)
class Cell:
    """alpha : strength of the instrument in "controlled", 1 elsewhere (it is z's coefficient)"""

    dataset: str
    rho: float
    alpha: float
    seed: int
    method: str
    members: int


def cells(quick: bool = False) -> list[Cell]:
    if quick:
        return [Cell("wine", 0.8, 1.0, seed, name, 5) for seed in range(2) for name in METHODS]
    usual = NETWORK.n_members
    real = [
        Cell(dataset, rho, 1.0, seed, name, usual)
        for dataset, (rho, seeds) in product(TABLES, SEEDS.items())
        for seed, name in product(seeds, METHODS)
    ]
    chosen = [
        Cell(dataset, 0.8, 1.0, seed, name, usual)
        for dataset, seed, name in product(TABLES, SEEDS[0.8], OPEN_METHODS)
    ]
    grid = (e1_controlled.RHOS, e1_controlled.ALPHAS, e1_controlled.SEEDS, CONTROL_METHODS)
    control = [Cell("controlled", *each, usual) for each in product(*grid)]
    places = [*((name, 0.8) for name in e2_semireal.TABLES), ("controlled", 0.9)]
    others = [members for members in MEMBERS if members != usual]
    sizes = [
        Cell(*place, 1.0, seed, "heckman_two_step", members)
        for place, members, seed in product(places, others, range(8))
    ]
    heavy = [
        Cell("controlled-t", rho, 1.0, seed, name, usual)
        for rho, seed, name in product((0.0, 0.6, 0.9), range(8), TAIL_METHODS)
    ]
    return real + chosen + control + sizes + heavy + _more_cells()


def _more_cells() -> list[Cell]:
    draws = [(dataset, 0.8) for dataset in e2_semireal.TABLES]
    draws += [("controlled", rho) for rho in e1_controlled.RHOS]
    methods = {name: NETWORK.n_members for name in MORE_METHODS}
    methods |= {name + PAPER: e2_semireal.NETWORK.n_members for name in MORE_METHODS[1:]}
    return [
        Cell(MORE + dataset, rho, 1.0, seed, name, members)
        for (dataset, rho), (name, members) in product(draws, methods.items())
        if dataset != "controlled" or not name.startswith("skyline")
        for seed in MORE_SEEDS
    ]


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    name, network = cells[0].method, replace(NETWORK, n_members=cells[0].members)
    if cells[0].dataset == "controlled-t":
        network = replace(network, noise="constant", tails="normal")
    if name.endswith("_t"):
        name, network = name.removesuffix("_t"), replace(network, errors="t")
    if name.endswith(PAPER):
        name, network = name.removesuffix(PAPER), e2_semireal.NETWORK
    if name in OPEN_METHODS:
        network = replace(network, weight_decay="auto", **OPEN_METHODS[name])
        name = name.removesuffix("_open")
    return run_cells(name, cells, problem, network=network, device=device, row=_metrics)


def problem(cell: Cell) -> Problem:
    cell = replace(cell, dataset=cell.dataset.removeprefix(MORE))
    if cell.dataset == "controlled":
        return e1_controlled.problem(cell)
    if cell.dataset == "controlled-t":
        draw = {"rho": cell.rho, "alpha": cell.alpha, "errors": "t", "df": TAIL_DF}
        return e1_controlled.controlled_problem(seed=cell.seed, **draw)
    return e2_semireal.table_problem(TABLES[cell.dataset], cell.rho, cell.seed)


def _metrics(one: Problem, fit) -> dict[str, float]:
    # Mean and sd of rho say enough here; each of up to 40 members would be a quarter of the file.
    row = {
        name: value
        for name, value in problem_row(one, fit).items()
        if not name.startswith("rho_member_")
    }
    info = as_dictionary(fit.info)
    for name in ("held_out_loss", "outcome_seen", "weight_decay", "tail_df"):
        if name in info:
            row[name] = float(info[name])
    for name, shown in (("best_epoch", "best_epoch"), ("df", "df_hat")):
        if name in info:
            row[shown] = float(np.mean(info[name]))
    if "averaged" in info:
        row["splines"] = float("splines" in info["averaged"])
    for name in ("selection_loss", "joint_loss", "held_out_loss"):
        losses = info.get(f"{name}es", {})
        row |= {f"{name}_{choice}": float(value) for choice, value in losses.items()}
    return row
