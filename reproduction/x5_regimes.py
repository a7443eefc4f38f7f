"""X5: the regimes. The same call on 200 settings for which it was not tuned.

An instrument that is strong, weak or absent, five error distributions, five correlations: each of
the 75 combinations has two or three settings, at least one of either size. The outcome function and
the selection index of a setting are drawn once. Choices may be made on DESIGN_SEEDS. `cells` has
the fresh seeds, which are run at the end.

Rows need numpy, scipy and torch. X5_SEEDS (a number of fresh seeds, or "design") and X5_METHODS
(names with commas between) in the environment restrict the grid, also in other processes.
"""

import os
import time
from dataclasses import astuple, dataclass, replace
from functools import cache
from itertools import product

import numpy as np

from heckesel.fit_info import as_dictionary
from heckesel.methods import load_method
from heckesel.metrics import evaluate
from heckesel.networks.ensembles.selection_ensemble import with_networks
from heckesel.networks.training.config import NetworkConfig, torch_device
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
REGIONS = ("_against", "")  # suffixes of metrics; those over all points have none
DATA_HASHES: dict[str, str] = {}  # all data are simulated


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
    third one for some combinations, up to 200 settings. The larger ones, which take longer, come
    first."""
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
    if quick:  # on a seed of the design, because fresh ones must not be used before the end
        regimes = [(*pair, 0.5) for pair in zip(INSTRUMENTS, ERRORS, strict=False)]
        small = [each for each in settings() if each.n == min(SIZES)]
        small = [each for each in small if (each.instrument, each.errors, each.rho) in regimes]
        return _cells(small, DESIGN_SEEDS[:1], METHODS)
    asked = os.environ.get("X5_SEEDS", str(len(FRESH_SEEDS)))
    seeds = DESIGN_SEEDS if asked == "design" else FRESH_SEEDS[: int(asked)]
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
    """The draws of several settings, whose networks train as one batch; `auto` weights the networks
    of the two-step, so both are in one chunk."""
    place = f"{cell.n} {cell.instrument} {cell.errors}"
    return f"{place} {NAIVE if cell.method == NAIVE else AUTO}"


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    """Rows of cells in their order. The networks of a draw are trained once, even if several
    methods use them."""
    draws = list(dict.fromkeys(replace(cell, method="") for cell in cells))
    problems, seeds = [problem(draw) for draw in draws], [draw.seed for draw in draws]
    naive = cells[0].method == NAIVE
    method = load_method(NAIVE if naive else TWO_STEP)
    started = time.perf_counter()
    fits = method.fit_many([p.data for p in problems], seeds=seeds, config=NETWORK, device=device)
    seconds = (time.perf_counter() - started) / len(draws)
    fits = [with_networks(fit, lambda networks: networks.on(device)) for fit in fits]
    place = torch_device(device)

    def find(cell: Cell) -> dict[str, float]:
        at = draws.index(replace(cell, method=""))
        drawn, fit = problems[at], fits[at]
        if cell.method != AUTO:
            return row(drawn, fit, seconds)
        started = time.perf_counter()
        auto = load_method(AUTO)
        fit = auto.weigh_candidates(drawn.data, cell.seed, fit, auto.AutoConfig(), place)
        return row(drawn, fit, seconds + time.perf_counter() - started)

    return [attempt(find, cell) for cell in cells]


def problem(cell: Cell) -> Draw:
    setting = astuple(cell)[:-2]
    return draw_regime(*setting, seed=cell.seed)


def row(draw: Draw, fit, seconds: float) -> dict[str, float]:
    """METRICS in the selected-against region and over all points, rho averaged over the posterior
    or over members, weights of candidates, and the seconds of the fit (a batch is split evenly
    among its draws)."""
    predictive = fit.predict(draw.x)
    found = evaluate(draw.y, predictive, f0=draw.f0, propensity_x=draw.propensity_x)
    kept = {f"{name}{region}": found[f"{name}{region}"] for region in REGIONS for name in METRICS}
    kept |= {"n_against": found["n_against"], "selected_share": float(draw.data.s.mean())}
    info = as_dictionary(fit.info)
    if "rho" in info:
        kept["rho_hat"] = float(np.average(info["rho"], weights=info.get("weight")))
    for each in info.get("candidates", []):
        name = each["errors"] if each["outcome"] == "splines" else each["outcome"]
        kept[f"weight_{name.replace(' ', '_')}"] = each["weight"]
    return kept | {"seconds": seconds}
