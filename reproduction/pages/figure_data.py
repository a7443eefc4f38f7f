"""The plotted numbers, `paper/figures/*.json`: from committed rows, and one draw that is trained.

`fig1a.json` holds a pool and two fits of it; it is made once by `train_example` and kept, because
training is the only step whose result differs between machines, in single precision.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product

import numpy as np
from scipy.stats import norm

from heckesel.datasets.simulated import INDEX_SLOPE, controlled_f0
from heckesel.metrics import AGAINST_BELOW
from reproduction import e2_semireal
from reproduction.e1_controlled import RHOS
from reproduction.pages.beyond_paper import x1_page, x5_page
from reproduction.pages.beyond_paper.x6_page import errors_by_outcome
from reproduction.pages.macros import main_panels
from reproduction.pages.rows import Results, over_seeds
from reproduction.regime_draws import ERRORS as X5_ERRORS
from reproduction.regime_draws import INSTRUMENTS
from reproduction.regime_draws import RHOS as X5_RHOS

TRAINED = (
    *("heckman_two_step", "heckman_joint", "blind_two_head", "deep_ensemble"),
    *("mc_dropout", "gp", "weighted_ensemble"),
)
X1_METHODS = ("spline_joint", "heckman_two_step", "heckman_joint", "deep_ensemble", "oracle")
METRICS = ("ece_against", "coverage90_against", "coverage90_well")
EXAMPLE = {"rho": 0.9, "alpha": 1.0, "seed": 0}
EXAMPLE_METHODS = ("deep_ensemble", "heckman_two_step")
SHOWN_UNITS = 400  # of the pool: more would hide the curves
DIGITS = 6


def coverage_by_rho(results: Results) -> dict:
    """Figure 1 (b): selected-against coverage with the instrument, mean and sd over seeds."""
    return {"rho": list(RHOS), "methods": _controlled(results, "coverage90_against", 1.0)}


def honesty_curves(results: Results) -> dict:
    """Figure 2: coverage with and without the instrument, and bias, against rho."""
    metrics = {"coverage": "coverage90_against", "bias": "bias_f0_against"}
    return {"rho": list(RHOS)} | {
        f"{name}_{instrument}": _controlled(results, metric, alpha)
        for name, metric in metrics.items()
        for instrument, alpha in (("with", 1.0), ("without", 0.0))
    }


def semireal_bars(results: Results) -> dict:
    """Figure 3: A-E2 at rho = .8, mean and sd over seeds for each dataset."""
    bars: dict = {metric: {dataset: {} for dataset in e2_semireal.TABLES} for metric in METRICS}
    for metric, dataset, method in product(METRICS, e2_semireal.TABLES, (*TRAINED, "skyline")):
        values = over_seeds(results.e2, metric, dataset=dataset, method=method, rho=0.8)
        bars[metric][dataset][method] = summarised(values)
    return bars


def panel_estimates(results: Results) -> dict:
    """Figure 4: rho of every fit in the main table, with its 95 % profile interval."""
    fits = []
    for row in sorted(main_panels(results), key=lambda row: (row["task"], row["target"])):
        fit = {"task": row["task"], "target": row["target"], "n": int(row["n"])}
        numbers = {"rho": "rho", "low": "rho_low", "high": "rho_high"}
        fit |= {name: rounded(row[metric]) for name, metric in numbers.items()}
        fits.append(fit | {"boundary": bool(row["boundary"])})
    return {"fits": fits}


def without_instrument(results: Results) -> dict:
    """X1 on the paper's curve, alpha = 0, uniform prior: coverage and bias against rho."""
    found: dict = {"rho": list(RHOS)}
    for metric in ("coverage90", "bias_f0"):
        find = partial(x1_page.values, results, "curve", metric=metric, alpha=0.0)
        found[metric] = _curves(X1_METHODS, find)
    return found


def by_regime(results: Results) -> dict:
    """X5: selected-against coverage and CRPS against rho, by instrument and errors."""
    panels: dict = {}
    for metric, instrument in product(("coverage90_against", "crps_against"), INSTRUMENTS):
        for method in x5_page.METHODS:
            found = x5_page.metric_by_regime(results, method, metric, instrument=instrument)
            for errors in X5_ERRORS if found else ():
                means = [rounded(found[instrument, errors, rho].mean) for rho in X5_RHOS]
                panel = panels.setdefault(f"{metric} {instrument} {errors}", {})
                panel[method] = {"mean": means}
    return {"rho": list(X5_RHOS), "panels": panels}


def train_example() -> dict:
    """Figure 1 (a): one pool, f0, and the bands of two ensembles trained on it, on the CPU."""
    from reproduction import baselines
    from reproduction.e1_controlled import NETWORK, Cell, problem

    one = problem(Cell(**EXAMPLE, method=""))
    x = np.linspace(-3, 3, 121)
    bands = {}
    for method in EXAMPLE_METHODS:
        (fit,) = baselines.fit(method, [one], [EXAMPLE["seed"]], NETWORK, device="cpu")
        predicted = fit.predict(x[:, None])
        low, high = predicted.interval(0.9).T
        band = {"mean": predicted.mean, "low": low, "high": high}
        band["epistemic_sd"] = np.sqrt(predicted.epistemic)
        bands[method] = {name: _list(values) for name, values in band.items()}
    shown = slice(SHOWN_UNITS)
    # P(s = 1 | x) = Phi(INDEX_SLOPE x / sqrt(1 + alpha^2)) falls to AGAINST_BELOW here
    against_from = norm.ppf(AGAINST_BELOW) * np.sqrt(1 + EXAMPLE["alpha"] ** 2) / INDEX_SLOPE
    units = {"x": _list(one.data.x[shown, 0]), "y": _list(one.truth.y[shown])}
    units["selected"] = [bool(s) for s in one.data.s[shown]]
    found = {"against_from": rounded(against_from), "units": units}
    return EXAMPLE | found | {"x": _list(x), "f0": _list(controlled_f0(x)), "bands": bands}


def _controlled(results: Results, metric: str, alpha: float) -> dict:
    find = partial(over_seeds, results.e1, metric, alpha=alpha)
    return _curves((*TRAINED, "oracle"), lambda method, rho: find(method=method, rho=rho))


def _curves(methods: Iterable[str], find: Callable[..., np.ndarray]) -> dict:
    """Mean and sd of `find(method, rho=rho)` at every rho, by method."""
    curves = {}
    for method in methods:
        found = [summarised(find(method, rho=rho)) for rho in RHOS]
        curves[method] = {key: [entry[key] for entry in found] for key in ("mean", "sd")}
    return curves


def summarised(values: np.ndarray) -> dict[str, float]:
    return {"mean": rounded(values.mean()), "sd": rounded(values.std())}


def rounded(value: float) -> float:
    """Six digits, so that another order of summation does not change the file."""
    return float(f"{value:.{DIGITS}g}")


def _list(values) -> list[float]:
    return [round(float(value), 4) for value in values]


FROM_RESULTS: dict[str, Callable[[Results], dict]] = {
    "fig1b": coverage_by_rho,
    "fig2": honesty_curves,
    "fig3": semireal_bars,
    "fig4": panel_estimates,
    "x1": without_instrument,
    "x5": by_regime,
    "x6": errors_by_outcome,
}
