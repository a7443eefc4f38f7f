"""X5: the regimes. One call on 200 settings that nobody tuned it to.

An instrument that is strong, weak or absent, five forms of the errors, five correlations: each of
the 75 combinations has two or three settings, at least one of either size, whose outcome function
and selection index are drawn once for all. Choices may be made on DESIGN_SEEDS; `cells` has the
fresh ones, which are run at the end.

Rows need numpy, scipy and torch. X5_SEEDS (a number of fresh seeds, or "design") and X5_METHODS
(names with commas between) in the environment restrict the grid, also in other processes.
"""

from __future__ import annotations

import os
import time
from dataclasses import astuple, dataclass
from functools import cache
from itertools import product

import numpy as np

from heckesel.methods import fit_one, load_method
from heckesel.metrics import evaluate
from heckesel.networks.ensembles.selection_ensemble import with_networks
from heckesel.networks.training.config import NetworkConfig
from reproduction.draws.regime_draws import (
    ERRORS,
    INSTRUMENTS,
    OUTCOMES,
    RHOS,
    SELECTIONS,
    SIZES,
    Draw,
    draw_regime,
)
from reproduction.runner import attempt

DESIGN_SEEDS, FRESH_SEEDS = range(2), range(100, 108)
AUTO, TWO_STEP, NAIVE = METHODS = ("heckman_auto", "heckman_two_step", "deep_ensemble")
NETWORK = NetworkConfig(n_members=10, folds=5, noise="auto", tails="auto")  # as in X4
SETTINGS_SEED, SETTINGS = 5, 200
METRICS = ("coverage90", "width90", "interval_score90", "crps", "bias_f0")
REGIONS = ("_against", "")  # as the suffix of a metric; all points have none
DATA_HASHES: dict[str, str] = {}  # everything is drawn


@dataclass(frozen=True)
class Setting:
    instrument: str
    errors: str
    rho: float
    outcome: str
    selection: str
    n: int


@dataclass(frozen=True)
class Cell(Setting):
    seed: int
    method: str


@cache
def settings() -> tuple[Setting, ...]:
    """Two settings for every combination of instrument, errors and rho, one of either size, and a
    third for as many combinations as there is room for; the larger, which take longer, first."""
    rng = np.random.default_rng(SETTINGS_SEED)
    forms = list(product(OUTCOMES, SELECTIONS))
    combinations = list(product(INSTRUMENTS, ERRORS, RHOS))
    found = set()
    for each, n in product(combinations, SIZES):
        found.add(Setting(*each, *forms[rng.integers(len(forms))], n))
    for place in rng.permutation(len(combinations))[: SETTINGS - len(found)]:
        each = combinations[place]
        others = [Setting(*each, *form, n) for form, n in product(forms, SIZES)]
        others = [setting for setting in others if setting not in found]
        found.add(others[rng.integers(len(others))])
    return tuple(sorted(found, key=_order))


def _order(setting: Setting) -> tuple:
    return (-setting.n, *astuple(setting))


def cells(quick: bool = False) -> list[Cell]:
    if quick:  # on a seed of the design, because fresh ones are not to be looked at
        regimes = [(*pair, 0.5) for pair in zip(INSTRUMENTS, ERRORS, strict=False)]
        small = [each for each in settings() if each.n == min(SIZES)]
        small = [each for each in small if (each.instrument, each.errors, each.rho) in regimes]
        return _cells(small, DESIGN_SEEDS[:1], METHODS)
    asked, seeds = os.environ.get("X5_SEEDS", str(len(FRESH_SEEDS))), DESIGN_SEEDS
    if asked != "design":
        seeds = FRESH_SEEDS[: int(asked)]
    methods = os.environ.get("X5_METHODS", ",".join(METHODS)).split(",")
    return _cells(settings(), seeds, methods)


def design_cells() -> list[Cell]:
    """The settings on the draws that choices may be made on."""
    return _cells(settings(), DESIGN_SEEDS, METHODS)


def _cells(chosen, seeds, methods) -> list[Cell]:
    return [
        Cell(*astuple(setting), seed, method)
        for method, setting, seed in product(methods, chosen, seeds)
    ]


def chunk_of(cell: Cell) -> str:
    """One method on the draws of one setting; networks of several settings train as one batch,
    because a batch takes hardly longer than one setting."""
    place = f"{cell.n} {cell.instrument} {cell.errors}"
    if cell.method == AUTO:
        place += f" {cell.rho} {cell.outcome} {cell.selection}"
    return f"{place} {cell.method}"


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    if cells[0].method == AUTO:
        return [attempt(_auto_row, cell, device) for cell in cells]
    draws, seeds = [problem(cell) for cell in cells], [cell.seed for cell in cells]
    method = load_method(cells[0].method)
    started = time.perf_counter()
    fits = method.fit_many([d.data for d in draws], seeds=seeds, config=NETWORK, device=device)
    seconds = (time.perf_counter() - started) / len(cells)
    fits = [with_networks(fit, lambda networks: networks.on(device)) for fit in fits]
    return [attempt(row, draw, fit, seconds) for draw, fit in zip(draws, fits, strict=True)]


def problem(cell: Cell) -> Draw:
    setting = astuple(cell)[:-2]
    return draw_regime(*setting, seed=cell.seed)


def _auto_row(cell: Cell, device: str) -> dict[str, float]:
    draw, started = problem(cell), time.perf_counter()
    fit = fit_one(AUTO, draw.data, seed=cell.seed, device=device)
    return row(draw, fit, time.perf_counter() - started)


def row(draw: Draw, fit, seconds: float) -> dict[str, float]:
    """METRICS in the selected-against region and over all points, rho averaged over the posterior
    or over members, and the seconds of the fit (a batch is split evenly among its draws)."""
    predictive = fit.predict(draw.x)
    found = evaluate(draw.y, predictive, f0=draw.f0, propensity_x=draw.propensity_x)
    kept = {f"{name}{region}": found[f"{name}{region}"] for region in REGIONS for name in METRICS}
    kept |= {"n_against": found["n_against"], "selected_share": float(draw.data.s.mean())}
    if "rho" in fit.info:
        kept["rho_hat"] = float(np.average(fit.info["rho"], weights=fit.info.get("weight")))
    forms = fit.info.get("forms", {})
    kept |= {f"weight_{name.replace(' ', '_')}": share for name, share in forms.items()}
    return kept | {"seconds": seconds}
