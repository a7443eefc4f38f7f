"""The plotted numbers, `paper/figures/*.json`: from committed rows, and one draw that is trained.

`fig1a.json` holds a pool and two fits of it; it is made once by `train_example` and kept, because
training is the one step that another machine repeats only to single precision.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from heckesel.datasets.controlled import INDEX_SLOPE, controlled_f0
from heckesel.metrics.regions import AGAINST_BELOW
from reproduction.pages.numbers import main_panels
from reproduction.pages.rows import Results, over_seeds

RHOS = (0.0, 0.3, 0.6, 0.9)
CONTROLLED = (
    "heckman_two_step",
    "heckman_joint",
    "blind_two_head",
    "deep_ensemble",
    "mc_dropout",
    "gp",
    "weighted_ensemble",
    "oracle",
)
SEMIREAL = (*CONTROLLED[:-1], "skyline")
DATASETS = ("california", "wine")
EXAMPLE_RHO, EXAMPLE_ALPHA, EXAMPLE_SEED = 0.9, 1.0, 0
EXAMPLE_METHODS = ("deep_ensemble", "heckman_two_step")
SHOWN_UNITS = 400  # of the pool: more than that hides the curves
DIGITS = 6


def coverage_by_rho(results: Results) -> dict:
    """Figure 1 (b): selected-against coverage with the instrument, mean and sd over seeds."""
    return {"rho": list(RHOS), "methods": _curves(results, "coverage90_against", alpha=1.0)}


def honesty_curves(results: Results) -> dict:
    """Figure 2: coverage with and without the instrument, and bias, against rho."""
    return {
        "rho": list(RHOS),
        "coverage_with": _curves(results, "coverage90_against", alpha=1.0),
        "coverage_without": _curves(results, "coverage90_against", alpha=0.0),
        "bias_with": _curves(results, "bias_f0_against", alpha=1.0),
        "bias_without": _curves(results, "bias_f0_against", alpha=0.0),
    }


def semireal_bars(results: Results) -> dict:
    """Figure 3: A-E2 at rho = .8, mean and sd over seeds for each dataset."""
    return {
        metric: {
            dataset: {
                method: mean_and_sd(
                    over_seeds(results.e2, metric, method=method, dataset=dataset, rho=0.8)
                )
                for method in SEMIREAL
            }
            for dataset in DATASETS
        }
        for metric in ("ece_against", "coverage90_against", "coverage90_well")
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


def train_example() -> dict:
    """Figure 1 (a): one pool, f0, and the bands of two ensembles trained on it, on the CPU."""
    from heckesel.methods import load_method
    from reproduction.e1_controlled import NETWORK, Cell, pool
    from reproduction.fit_cells import as_data

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
    return {
        "rho": EXAMPLE_RHO,
        "alpha": EXAMPLE_ALPHA,
        "seed": EXAMPLE_SEED,
        # P(s = 1 | x) = Phi(INDEX_SLOPE x / sqrt(1 + alpha^2)) falls to AGAINST_BELOW here
        "against_from": rounded(
            norm.ppf(AGAINST_BELOW) * np.sqrt(1 + EXAMPLE_ALPHA**2) / INDEX_SLOPE
        ),
        "units": {
            "x": _list(draw.frame["x"].to_numpy()[shown]),
            "y": _list(draw.truth.y[shown]),
            "selected": [bool(s) for s in data.s[shown]],
        },
        "x": _list(x),
        "f0": _list(controlled_f0(x)),
        "bands": bands,
    }


def _curves(results: Results, metric: str, alpha: float) -> dict:
    return {
        method: {
            key: [
                mean_and_sd(over_seeds(results.e1, metric, method=method, rho=rho, alpha=alpha))[
                    key
                ]
                for rho in RHOS
            ]
            for key in ("mean", "sd")
        }
        for method in CONTROLLED
    }


def mean_and_sd(values: np.ndarray) -> dict[str, float]:
    return {"mean": rounded(values.mean()), "sd": rounded(values.std())}


def rounded(value: float) -> float:
    """Six digits, so that another order of summation does not change the file."""
    return float(f"{value:.{DIGITS}g}")


def _list(values) -> list[float]:
    return [round(float(value), 4) for value in values]


FROM_RESULTS = {
    "fig1b": coverage_by_rho,
    "fig2": honesty_curves,
    "fig3": semireal_bars,
    "fig4": panel_estimates,
}
