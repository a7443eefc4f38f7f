"""A pool with its test points, a method fitted to many of them, and the metrics of a fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from heckesel.data import SelectionData, selection_data
from heckesel.datasets import Controlled, SemiReal, Truth
from heckesel.methods import load_method
from heckesel.methods.oracle import OracleConfig
from heckesel.methods.skyline import SkylineConfig
from heckesel.methods.weighted_ensemble import WeightedConfig
from heckesel.metrics import evaluate
from heckesel.networks.ensembles.selection_ensemble import with_networks
from heckesel.networks.training.config import NetworkConfig
from reproduction.runner import attempt

# What the paper trains in A-E1 and A-E2.
TRAINED = (
    *("heckman_joint", "heckman_two_step", "blind_two_head", "deep_ensemble"),
    *("weighted_ensemble", "mc_dropout", "gp"),
)


@dataclass(frozen=True)
class Problem:
    """A pool, and the test points with their truth; x : (m, p)

    Drawn once and shared by every method, so nothing may write to it.
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


def run_problems(
    name: str,
    problems: Sequence[Problem],
    seeds: Sequence[int],
    *,
    network: NetworkConfig,
    device: str,
    oracle: OracleConfig | None = None,
    row: Callable[..., dict[str, float]] | None = None,
) -> list:
    """A row for each problem, or the exception: `row(problem, fit)`, by default `problem_row`."""
    fits = _fit(name, problems, seeds, network, device, oracle)
    return [attempt(row or problem_row, *pair) for pair in zip(problems, fits, strict=True)]


def _fit(name, problems, seeds, network, device, oracle) -> list:
    """Baselines get what they may know beyond the data: the weighted ensemble the true
    propensities, the skyline all outcomes. Networks predict on the device they were trained on."""
    method = load_method(name)
    datas = [one.data for one in problems]
    config: object = network
    if name == "oracle":
        return [method.fit(data, seed=0, config=oracle) for data in datas]
    if name == "gp":
        return method.fit_many(datas, seeds=seeds)
    if name == "weighted_ensemble":
        config = [WeightedConfig(one.truth.propensity, network) for one in problems]
    elif name == "skyline":
        config = [SkylineConfig(one.truth.y, network) for one in problems]
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
        row |= rho_row(fit)
    if "sigma" in fit.info:
        row["sigma_hat"] = float(np.mean(fit.info["sigma"]))
    return row


def rho_row(fit) -> dict[str, float]:
    """rho of the members of an ensemble: mean, standard deviation, and each of them."""
    members = np.array(fit.info["rho"])
    row = {"rho_hat": float(members.mean()), "rho_hat_sd": float(members.std())}
    return row | {f"rho_member_{j}": float(value) for j, value in enumerate(members)}
