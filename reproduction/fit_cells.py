"""One method fitted to many cells, networks as one batch, and the row of metrics of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heckesel.data import SelectionData, selection_data
from heckesel.datasets import Controlled, SemiReal, Truth
from heckesel.methods import load_method
from heckesel.methods.skyline import SkylineConfig
from heckesel.methods.weighted_ensemble import WeightedConfig
from heckesel.metrics import evaluate
from heckesel.networks.ensembles.selection_ensemble import with_networks
from heckesel.networks.training.config import NetworkConfig


@dataclass(frozen=True)
class Problem:
    """A pool, and the test points with their truth; x : (m, p)

    Drawn once and handed to every method, so nobody may write to it.
    """

    data: SelectionData
    truth: Truth
    x: np.ndarray
    test_truth: Truth


def as_data(pool: Controlled | SemiReal) -> SelectionData:
    """z is in w only, and a column of it even where its coefficient is 0."""
    names = [name for name in pool.frame if name not in ("z", "y")]
    return selection_data(
        pool.frame[names].to_numpy(),
        pool.frame[[*names, "z"]].to_numpy(),
        pool.frame["y"].to_numpy(),
        x_names=names,
        w_names=[*names, "z"],
    )


def fit_cells(
    name: str,
    problems: Sequence[Problem],
    seeds: Sequence[int],
    *,
    network: NetworkConfig,
    device: str,
) -> list:
    """Baselines that may know more than the data are given it: the weighted ensemble the true
    propensities, the skyline all outcomes. Networks predict on the device they were trained on."""
    method = load_method(name)
    datas, truths = [one.data for one in problems], [one.truth for one in problems]
    config: object = network
    if name == "gp":
        return method.fit_many(datas, seeds=seeds)
    if name == "weighted_ensemble":
        config = [WeightedConfig(truth.propensity, network) for truth in truths]
    elif name == "skyline":
        config = [SkylineConfig(truth.y, network) for truth in truths]
    fits = method.fit_many(datas, seeds=seeds, config=config, device=device)
    return [with_networks(fit, lambda networks: networks.on(device)) for fit in fits]


def problem_row(problem: Problem, fit) -> dict[str, float]:
    """`metrics_row` on the test points, and the share of the pool that was selected."""
    row = metrics_row(fit, problem.x, problem.test_truth)
    return row | {"selected_share": float(problem.data.s.mean())}


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
