"""X1: the whole likelihood over rho, on the paper's draws and on a function of five columns.

The paper's failure without an instrument, again, with methods that weigh every rho by its
evidence; then with the sign of rho known, and with the wrong sign believed. Eight draws say little
about a method that settles on the wrong sign now and then: of five columns there are sixteen more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckesel.datasets import Controlled, make_controlled, make_interactions
from heckesel.datasets.interactions import interactions_f0
from heckesel.methods import load_method
from heckesel.methods.heckman_profile import ProfileConfig
from heckesel.methods.oracle import OracleConfig
from heckesel.methods.spline_joint import SplineConfig
from heckesel.networks.training.config import NetworkConfig
from reproduction.e1_controlled import (
    ALPHAS,
    POOL,
    RHOS,
    SEEDS,
    SIGMA,
    TEST,
    TEST_SEED_OFFSET,
)
from reproduction.fit_cells import as_data, metrics_row
from reproduction.runner import attempt

MORE_SEEDS = range(8, 24)
PRIORS = ("uniform", "positive", "negative")
# Methods that weigh rho take a prior; the others are run on the five columns alone, since A-E1
# has them on the curve.
WEIGHING = ("heckman_profile", "spline_joint")
OTHERS = ("heckman_two_step", "heckman_joint", "deep_ensemble", "oracle")
DRAWS = {
    "curve": (make_controlled, POOL),
    "interactions": (make_interactions, 4000),
    "more interactions": (make_interactions, 4000),
}
NETWORK = NetworkConfig()
DATA_HASHES: dict[str, str] = {}  # everything is drawn


@dataclass(frozen=True)
class Cell:
    draw: str
    rho: float
    alpha: float
    seed: int
    method: str
    prior: str


def cells(quick: bool = False) -> list[Cell]:
    rhos, seeds = ((0.9,), range(1)) if quick else (RHOS, SEEDS)
    priors = PRIORS[:1] if quick else PRIORS
    choices = [("curve", method, prior) for method in WEIGHING for prior in priors]
    if not quick:
        choices += [("interactions", method, prior) for method in WEIGHING for prior in priors]
        choices += [("interactions", method, "uniform") for method in OTHERS]
    found = [
        Cell(draw, r, a, s, method, prior)
        for draw, method, prior in choices
        for r in rhos
        for a in ALPHAS
        for s in seeds
    ]
    if quick:
        return found
    return found + [
        Cell("more interactions", r, 0.0, s, method, "uniform")
        for method in WEIGHING
        for r in rhos
        for s in MORE_SEEDS
    ]


def chunk_of(cell: Cell) -> str:
    return f"{cell.draw} {cell.method} {cell.prior}"


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    pools = [pool(cell) for cell in cells]
    fits = fit_pools(cells[0], pools, [cell.seed for cell in cells], device)
    return [attempt(_metrics, *parts) for parts in zip(cells, fits, strict=True)]


def fit_pools(cell, pools: list[Controlled], seeds: list[int], device: str) -> list:
    """One method fitted to many pools of one kind."""
    datas = [as_data(pool) for pool in pools]
    if cell.method == "oracle":
        truth = OracleConfig(f0=interactions_f0, sigma=SIGMA)
        return [load_method("oracle").fit(data, seed=0, config=truth) for data in datas]
    config: object = NETWORK
    if cell.method == "heckman_profile":
        config = ProfileConfig(rho_prior=cell.prior)
    elif cell.method == "spline_joint":
        pairs = "all" if datas[0].x.shape[1] > 1 else ()
        config = SplineConfig(interactions=pairs, rho_prior=cell.prior)
    method = load_method(cell.method)
    return method.fit_many(datas, seeds=seeds, config=config, device=device)


def pool(cell) -> Controlled:
    make, size = DRAWS[cell.draw]
    return make(size, rho=cell.rho, alpha=cell.alpha, seed=cell.seed, sigma=SIGMA)


def _metrics(cell: Cell, fit) -> dict[str, float]:
    make, _ = DRAWS[cell.draw]
    seed = TEST_SEED_OFFSET + cell.seed
    test = make(TEST, rho=cell.rho, alpha=cell.alpha, seed=seed, sigma=SIGMA)
    x = test.frame.drop(columns=["z", "y"]).to_numpy()
    return metrics_row(fit, x, test.truth) | curve_row(fit)


def curve_row(fit) -> dict[str, float]:
    """The two best modes and the interval, where a method has a curve."""
    if "modes" not in fit.info:
        return {}
    low, high = fit.info["rho_interval"]
    row = {"rho_low": low, "rho_high": high, "modes": float(len(fit.info["modes"]))}
    for place, mode in enumerate(fit.info["modes"][:2]):
        row |= {f"mode{place}_rho": mode["rho"], f"mode{place}_weight": mode["weight"]}
    height = np.array(fit.info["curve"]["log_evidence"])
    row["evidence_at_zero"] = float(np.interp(0.0, fit.info["curve"]["rho"], height))
    return row
