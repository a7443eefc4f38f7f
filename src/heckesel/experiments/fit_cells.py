"""One method fitted to many cells, networks as one batch, and the row of metrics of a fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heckesel.data import SelectionData
from heckesel.datasets import Truth
from heckesel.deep.config import NetworkConfig
from heckesel.methods import load_method
from heckesel.methods.skyline import SkylineConfig
from heckesel.methods.weighted_ensemble import WeightedConfig
from heckesel.metrics import evaluate


def fit_cells(
    name: str,
    datas: Sequence[SelectionData],
    seeds: Sequence[int],
    truths: Sequence[Truth],
    *,
    network: NetworkConfig,
    device: str,
) -> list:
    """Baselines that may know more than the data are given it: the weighted ensemble the true
    propensities, the skyline all outcomes."""
    method = load_method(name)
    config: object = network
    if name == "gp":
        return method.fit_many(datas, seeds=seeds)
    if name == "weighted_ensemble":
        config = [WeightedConfig(truth.propensity, network) for truth in truths]
    elif name == "skyline":
        config = [SkylineConfig(truth.y, network) for truth in truths]
    return method.fit_many(datas, seeds=seeds, config=config, device=device)


def metrics_row(fit, x, truth: Truth) -> dict[str, float]:
    """Metrics of the population prediction at x, and what the fit says of rho and sigma."""
    row = evaluate(truth.y, fit.predict(x), f0=truth.f0, propensity_x=truth.propensity_x)
    if "rho" in fit.info:
        members = np.array(fit.info["rho"])
        row |= {"rho_hat": float(members.mean()), "rho_hat_sd": float(members.std())}
        row |= {f"rho_member_{j}": float(value) for j, value in enumerate(members)}
    if "sigma" in fit.info:
        row["sigma_hat"] = float(np.mean(fit.info["sigma"]))
    return row
