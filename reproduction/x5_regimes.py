"""X5: the regimes. The same call on 200 settings for which it was not tuned.

An instrument that is strong, weak or absent, five error distributions, five correlations: each of
the 75 combinations has two or three settings, at least one of either size. The outcome function and
the selection index of a setting are drawn once. Choices may be made on DESIGN_SEEDS. `cells` has
the fresh seeds, which are run at the end.

`auto` is the default `HeckmanRegressor`. Rows of the former default of networks on the same draws,
`old_auto`, are in `results/x5_old_auto.json`. X5_SEEDS (a number of fresh seeds, or "design") and
X5_METHODS (names with commas between) in the environment restrict the grid.
"""

import os
import time
from dataclasses import astuple, dataclass
from functools import cache
from itertools import product

import numpy as np

from heckesel.deep.training import NetworkConfig
from heckesel.metrics import evaluate
from reproduction import baselines
from reproduction import regime_draws as draws
from reproduction.problems import AUTO, AutoFit, fit_auto
from reproduction.runner import attempt

DESIGN_SEEDS, FRESH_SEEDS = range(2), range(100, 108)
_, TWO_STEP, NAIVE = METHODS = (AUTO, "heckman_two_step", "deep_ensemble")
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
    forms = list(product(draws.OUTCOMES, draws.SELECTIONS))
    combinations = list(product(draws.INSTRUMENTS, draws.ERRORS, draws.RHOS))
    found = set()
    for each, n in product(combinations, draws.SIZES):
        found.add(Setting(*each, *forms[rng.integers(len(forms))], n))
    for place in rng.permutation(len(combinations))[: SETTINGS - len(found)]:
        each = combinations[place]
        others = [Setting(*each, *form, n) for form, n in product(forms, draws.SIZES)]
        others = [setting for setting in others if setting not in found]
        found.add(others[rng.integers(len(others))])
    return tuple(sorted(found, key=lambda each: (-each.n, *astuple(each))))


def cells(quick: bool = False) -> list[Cell]:
    if quick:  # on a seed of the design, because fresh ones must not be used before the end
        pairs = zip(draws.INSTRUMENTS, draws.ERRORS, strict=False)
        regimes = [(*pair, 0.5) for pair in pairs]
        small = [each for each in settings() if each.n == min(draws.SIZES)]
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
    """The draws of several settings, whose networks train as one batch."""
    return f"{cell.n} {cell.instrument} {cell.errors} {cell.method}"


def run_chunk(cells: list[Cell], device: str = "auto") -> list:
    problems, seeds = [problem(cell) for cell in cells], [cell.seed for cell in cells]
    if cells[0].method == AUTO:
        return [attempt(_auto_row, drawn) for drawn in problems]
    started = time.perf_counter()
    fits = baselines.fit(cells[0].method, problems, seeds, NETWORK, device=device)
    seconds = (time.perf_counter() - started) / len(cells)
    return [attempt(row, *pair, seconds) for pair in zip(problems, fits, strict=True)]


def _auto_row(drawn: draws.Draw) -> dict[str, float]:
    started = time.perf_counter()
    fit = fit_auto(drawn.data)
    return row(drawn, fit, time.perf_counter() - started)


def problem(cell: Cell) -> draws.Draw:
    return draws.draw_regime(*astuple(cell)[:-2], seed=cell.seed)


def row(draw: draws.Draw, fit, seconds: float) -> dict[str, float]:
    """METRICS in the selected-against region and over all points, whether the verdict says
    *supported*, and the seconds of the fit (a batch is split evenly among its draws)."""
    found = evaluate(draw.y, fit.predict(draw.x), f0=draw.f0, propensity_x=draw.propensity_x)
    kept = {f"{name}{region}": found[f"{name}{region}"] for region in REGIONS for name in METRICS}
    kept |= {"n_against": found["n_against"], "selected_share": float(draw.data.s.mean())}
    if isinstance(fit, AutoFit):
        verdict = fit.model.identification_.verdict
        kept["supported"] = float(verdict == "supported by the instrument")
    return kept | {"seconds": seconds}
