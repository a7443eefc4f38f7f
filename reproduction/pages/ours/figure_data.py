"""The plotted numbers of our own experiments, `paper/figures/x*.json`."""

from __future__ import annotations

from reproduction.e1_controlled import ALPHAS, RHOS
from reproduction.e2_semireal import METHODS as E2_METHODS
from reproduction.pages.figure_data import mean_and_sd
from reproduction.pages.ours import x1, x2, x4
from reproduction.pages.rows import Results, over_seeds
from reproduction.x2_misspecified import METHODS as X2_METHODS
from reproduction.x4_calibrated import METHODS as X4_METHODS

CURVE_METHODS = (
    "heckman_profile",
    "spline_joint",
    "heckman_two_step",
    "heckman_joint",
    "deep_ensemble",
    "oracle",
)
IN_BOTH = [method for method in X4_METHODS if method in E2_METHODS]  # the paper's own
X4_METRICS = ("ece_against", "coverage90_against", "coverage90_well")


def without_instrument(results: Results) -> dict:
    """The paper's curve, alpha = 0, uniform prior: coverage and bias against rho."""
    return {
        "rho": list(RHOS),
        **{
            metric: {
                method: _curve(
                    [x1.values(results, "curve", method, metric, alpha=0.0, rho=r) for r in RHOS]
                )
                for method in CURVE_METHODS
            }
            for metric in ("coverage90", "bias_f0")
        },
    }


def honesty(results: Results) -> dict:
    """Coverage and bias against rho, by errors, with and without the instrument."""
    return {
        "rho": list(RHOS),
        "panels": {
            f"{metric} {errors} {alpha:g}": {
                method: _curve(
                    [
                        x2.values(results, method, metric, errors=errors, alpha=alpha, rho=rho)
                        for rho in RHOS
                    ]
                )
                for method in X2_METHODS
            }
            for metric in ("coverage90", "bias_f0")
            for errors in x2.ERRORS
            for alpha in ALPHAS
        },
    }


def calibration(results: Results) -> dict:
    """rho = .8, mean and sd over seeds; `paper` holds the paper's settings on the same rows."""
    return {
        dataset: {
            "now": {
                method: {
                    metric: mean_and_sd(x4.values(results, dataset, method, metric))
                    for metric in X4_METRICS
                }
                for method in X4_METHODS
            },
            "paper": {
                method: {
                    metric: mean_and_sd(
                        over_seeds(results.e2, metric, dataset=dataset, method=method, rho=0.8)
                    )
                    for metric in X4_METRICS
                }
                for method in (IN_BOTH if dataset in x4.PAPERS else ())
            },
        }
        for dataset in x4.TABLES
    }


def _curve(values: list) -> dict[str, list[float]]:
    found = [mean_and_sd(over) for over in values]
    return {key: [entry[key] for entry in found] for key in ("mean", "sd")}


FROM_OUR_RESULTS = {"x1": without_instrument, "x2": honesty, "x4": calibration}
