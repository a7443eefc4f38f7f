"""The plotted numbers, `paper/figures/*.json`: from committed rows, and one draw that is trained.

`fig1a.json` holds a pool and two fits of it; it is made once by `train_example` and kept, because
training is the one step that another machine repeats only to single precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from scipy.stats import norm

from heckesel.datasets.controlled import INDEX_SLOPE, controlled_f0
from heckesel.metrics.regions import AGAINST_BELOW
from reproduction import e2_semireal, x4_calibrated
from reproduction.e1_controlled import ALPHAS, RHOS
from reproduction.pages.beyond_paper import x1_page, x2_page, x4_page
from reproduction.pages.macros import main_panels
from reproduction.pages.rows import Results, over_seeds
from reproduction.x2_misspecified import METHODS as X2_METHODS

TRAINED = (
    *("heckman_two_step", "heckman_joint", "blind_two_head", "deep_ensemble"),
    *("mc_dropout", "gp", "weighted_ensemble"),
)
X1_METHODS = (
    *("heckman_profile", "spline_joint", "heckman_two_step", "heckman_joint"),
    *("deep_ensemble", "oracle"),
)
IN_BOTH = [method for method in x4_calibrated.METHODS if method in e2_semireal.METHODS]
METRICS = ("ece_against", "coverage90_against", "coverage90_well")
EXAMPLE_RHO, EXAMPLE_ALPHA, EXAMPLE_SEED = 0.9, 1.0, 0
EXAMPLE_METHODS = ("deep_ensemble", "heckman_two_step")
SHOWN_UNITS = 400  # of the pool: more than that hides the curves
DIGITS = 6


def coverage_by_rho(results: Results) -> dict:
    """Figure 1 (b): selected-against coverage with the instrument, mean and sd over seeds."""
    return {"rho": list(RHOS), "methods": _controlled(results, "coverage90_against", 1.0)}


def honesty_curves(results: Results) -> dict:
    """Figure 2: coverage with and without the instrument, and bias, against rho."""
    return {
        "rho": list(RHOS),
        "coverage_with": _controlled(results, "coverage90_against", 1.0),
        "coverage_without": _controlled(results, "coverage90_against", 0.0),
        "bias_with": _controlled(results, "bias_f0_against", 1.0),
        "bias_without": _controlled(results, "bias_f0_against", 0.0),
    }


def semireal_bars(results: Results) -> dict:
    """Figure 3: A-E2 at rho = .8, mean and sd over seeds for each dataset."""
    return {
        metric: {
            dataset: {m: _semireal(results, metric, dataset, m) for m in (*TRAINED, "skyline")}
            for dataset in e2_semireal.SIZES
        }
        for metric in METRICS
    }


def panel_estimates(results: Results) -> dict:
    """Figure 4: rho of every fit in the main table, with its 95 % profile interval."""
    return {
        "fits": [
            {
                "task": row["task"],
                "target": row["target"],
                "n": int(row["n"]),
                "rho": rounded(row["rho"]),
                "low": rounded(row["rho_low"]),
                "high": rounded(row["rho_high"]),
                "boundary": bool(row["boundary"]),
            }
            for row in sorted(main_panels(results), key=lambda row: (row["task"], row["target"]))
        ]
    }


def without_instrument(results: Results) -> dict:
    """X1 on the paper's curve, alpha = 0, uniform prior: coverage and bias against rho."""
    found: dict = {"rho": list(RHOS)}
    for metric in ("coverage90", "bias_f0"):
        find = partial(x1_page.values, results, "curve", metric=metric, alpha=0.0)
        found[metric] = _curves(X1_METHODS, find)
    return found


def honesty_by_errors(results: Results) -> dict:
    """X2: coverage and bias against rho, by errors, with and without the instrument."""
    return {
        "rho": list(RHOS),
        "panels": {
            f"{metric} {errors} {alpha:g}": _curves(
                X2_METHODS,
                partial(x2_page.values, results, metric=metric, errors=errors, alpha=alpha),
            )
            for metric in ("coverage90", "bias_f0")
            for errors in x2_page.ERRORS
            for alpha in ALPHAS
        },
    }


def calibration(results: Results) -> dict:
    """X4, rho = .8, mean and sd over seeds; `paper` has the paper's settings on the same rows."""
    return {
        dataset: {
            "now": {
                m: {k: summarised(x4_page.values(results, dataset, m, k)) for k in METRICS}
                for m in x4_calibrated.METHODS
            },
            "paper": {
                m: {k: _semireal(results, k, dataset, m) for k in METRICS}
                for m in (IN_BOTH if dataset in x4_page.PAPERS else ())
            },
        }
        for dataset in x4_page.TABLES
    }


def train_example() -> dict:
    """Figure 1 (a): one pool, f0, and the bands of two ensembles trained on it, on the CPU."""
    from heckesel.methods import load_method
    from reproduction.e1_controlled import NETWORK, Cell, pool
    from reproduction.problems import as_data

    draw = pool(Cell(EXAMPLE_RHO, EXAMPLE_ALPHA, EXAMPLE_SEED, method=""))
    data = as_data(draw)
    x = np.linspace(-3, 3, 121)
    bands = {}
    for method in EXAMPLE_METHODS:
        (fit,) = load_method(method).fit_many(
            [data], seeds=[EXAMPLE_SEED], config=NETWORK, device="cpu"
        )
        predicted = fit.predict(x[:, None])
        low, high = predicted.interval(0.9).T
        bands[method] = {
            "mean": _list(predicted.mean),
            "low": _list(low),
            "high": _list(high),
            "epistemic_sd": _list(np.sqrt(predicted.epistemic)),
        }
    shown = slice(SHOWN_UNITS)
    # P(s = 1 | x) = Phi(INDEX_SLOPE x / sqrt(1 + alpha^2)) falls to AGAINST_BELOW here
    against_from = norm.ppf(AGAINST_BELOW) * np.sqrt(1 + EXAMPLE_ALPHA**2) / INDEX_SLOPE
    return {
        "rho": EXAMPLE_RHO,
        "alpha": EXAMPLE_ALPHA,
        "seed": EXAMPLE_SEED,
        "against_from": rounded(against_from),
        "units": {
            "x": _list(draw.frame["x"].to_numpy()[shown]),
            "y": _list(draw.truth.y[shown]),
            "selected": [bool(s) for s in data.s[shown]],
        },
        "x": _list(x),
        "f0": _list(controlled_f0(x)),
        "bands": bands,
    }


def _controlled(results: Results, metric: str, alpha: float) -> dict:
    def find(method: str, rho: float) -> np.ndarray:
        return over_seeds(results.e1, metric, method=method, rho=rho, alpha=alpha)

    return _curves((*TRAINED, "oracle"), find)


def _semireal(results: Results, metric: str, dataset: str, method: str) -> dict[str, float]:
    return summarised(over_seeds(results.e2, metric, dataset=dataset, method=method, rho=0.8))


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
    "x2": honesty_by_errors,
    "x4": calibration,
}
