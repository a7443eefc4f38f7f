"""Every method of the experiments by name, with the paper's baselines that no user needs.

`fit` takes problems, which hold the data and the truth: the weighted ensemble gets the true
propensities, the skyline all outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from heckesel.classical.spline_profile import fit_profile
from heckesel.data import SelectionData
from heckesel.deep.ensemble import TrainingInfo, predict_two_outputs
from heckesel.deep.methods import fit_joint, fit_plain, fit_two_step
from heckesel.deep.training import Members, NetworkConfig, layers_of, member_seed
from heckesel.errors import DataError
from heckesel.predictive import Predictive, check_target

METHODS = (
    *("heckman_two_step", "heckman_joint", "deep_ensemble", "weighted_ensemble", "spline_joint"),
    *("blind_two_head", "mc_dropout", "gp", "skyline", "oracle"),
)
SMALLEST_PROPENSITY = 1e-3  # no unit has a weight above a thousand
RATE, PASSES, DROPOUT = 0.1, 64, 3  # of MC dropout, and the purpose of its random stream
GP_ROWS, GP_RESTARTS = 2000, 2
PRIORS = {
    "uniform": None,
    "positive": lambda rho: (rho > 0).astype(float),
    "negative": lambda rho: (rho < 0).astype(float),
}


@dataclass(frozen=True)
class Oracle:
    """The true mean f0 : x (m, p) -> (m,) and noise, known in simulations only."""

    f0: Callable[[np.ndarray], np.ndarray]
    sigma: float
    info: TrainingInfo | None = None

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """N(f0(x), sigma^2)."""
        if target != "population":
            raise DataError(f"the oracle knows the population only, not target {target!r}")
        return Predictive.normal(self.f0(np.asarray(x, dtype=float)), 0.0, self.sigma**2)


def fit(
    name: str,
    problems: Sequence,
    seeds: Sequence[int],
    network: NetworkConfig,
    *,
    device: str = "auto",
    oracle: Oracle | None = None,
    prior: str = "uniform",
) -> list:
    """The method `name` fitted to each problem, networks as one batch."""
    if name not in METHODS:
        raise DataError(f"there is no method {name!r}; there are {', '.join(METHODS)}")
    datas = [one.data for one in problems]
    if name == "oracle":
        return [replace(oracle, info=TrainingInfo([], sigma=[oracle.sigma]))] * len(datas)
    if name == "gp":
        return [fit_gp(data, seed) for data, seed in zip(datas, seeds, strict=True)]
    if name == "spline_joint":
        pairs = "all" if datas[0].x.shape[1] > 1 else ()
        return [fit_profile(data, interactions=pairs, prior=PRIORS[prior]) for data in datas]
    train: Callable = {"heckman_two_step": fit_two_step, "heckman_joint": fit_joint}.get(
        name, fit_plain
    )
    if name == "blind_two_head":  # the joint model with rho fixed at zero
        network = replace(network, warm_up=network.epochs)
        train = partial(fit_joint, rho_start=np.zeros(network.n_members))
    elif name == "weighted_ensemble":
        datas = [weighted(one.data, one.truth.propensity) for one in problems]
    elif name == "skyline":
        datas = [
            replace(one.data, y=one.truth.y, s=np.ones(one.data.n, dtype=bool)) for one in problems
        ]
    elif name == "mc_dropout":
        return fit_dropout(datas, seeds, network, device=device)
    return train(datas, seeds, network, device=device)


def weighted(data: SelectionData, propensity: np.ndarray) -> SelectionData:
    """The data with weights 1/max(propensity, 1e-3), scaled to mean 1 over the selected units: the
    usual correction if outcomes are missing at random."""
    weight = 1.0 / np.maximum(propensity, SMALLEST_PROPENSITY)
    return replace(data, weight=data.weight * weight / weight[data.s].mean())


@dataclass(frozen=True)
class DropoutNetwork:
    """One trained network, whose predictions average over PASSES random dropout masks.

    seed : of the masks, which are the same in every call
    """

    members: Members
    scaling: object
    seed: int
    info: TrainingInfo

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """Moments over the passes. A pass uses one mask for all rows, so that the prediction at a
        point does not depend on the other points."""
        check_target(target)
        layers = layers_of(self.members.parameters, self.members.sizes)
        rng = np.random.default_rng(member_seed(self.seed, 0, DROPOUT))
        values = self.scaling.x(x)
        for layer in layers[:-1]:
            values = values @ layer[0, :-1] + layer[0, -1]
            mask = rng.random((PASSES, 1, values.shape[-1])) > RATE
            values = values * expit(values) * mask / (1 - RATE)
        outputs = values @ layers[-1][0, :-1] + layers[-1][0, -1]
        return predict_two_outputs(outputs, self.scaling)


def fit_dropout(datas, seeds, network: NetworkConfig, *, device: str) -> list[DropoutNetwork]:
    """MC dropout: one network with random dropout in training and in prediction."""

    def activation(values):
        return torch.nn.functional.dropout(torch.nn.functional.silu(values), RATE)

    config = replace(network, n_members=1, folds=None, noise="constant", tails="normal")
    fits = []
    for data, seed in zip(datas, seeds, strict=True):
        with torch.random.fork_rng():  # one after another, so that masks depend on the seed only
            torch.manual_seed(int(seed))
            (one,) = fit_plain([data], [seed], config, device=device, activation=activation)
        fits.append(DropoutNetwork(one.members, one.scaling, int(seed), one.info))
    return fits


@dataclass(frozen=True)
class GaussianProcess:
    """A Gaussian process on scaled columns; noise : its variance, for the scaled y."""

    process: GaussianProcessRegressor
    centre: np.ndarray
    scale: np.ndarray
    y_centre: float
    y_scale: float
    info: TrainingInfo

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """Normal: the posterior variance of f is epistemic, the noise aleatoric."""
        check_target(target)
        mean, sd = self.process.predict((x - self.centre) / self.scale, return_std=True)
        noise, unit = self.process.kernel_.k2.noise_level, self.y_scale
        doubt = unit**2 * np.maximum(sd**2 - noise, 0.0)
        return Predictive.normal(self.y_centre + unit * mean, doubt, unit**2 * noise)


def fit_gp(data: SelectionData, seed: int) -> GaussianProcess:
    """An exact Gaussian process with a squared-exponential kernel on at most GP_ROWS selected
    units."""
    centre, scale = np.nanmean(data.x, axis=0), np.nanstd(data.x, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    x, y = (data.x[data.s] - centre) / scale, data.y[data.s]
    if len(y) > GP_ROWS:
        drawn = np.random.default_rng(seed).choice(len(y), GP_ROWS, replace=False)
        x, y = x[drawn], y[drawn]
    ends = (1e-5, 1e5)
    kernel = ConstantKernel(1.0, ends) * RBF(np.ones(x.shape[1]), ends) + WhiteKernel(0.1, ends)
    process = GaussianProcessRegressor(
        kernel, n_restarts_optimizer=GP_RESTARTS, random_state=seed
    ).fit(x, (y - y.mean()) / y.std())
    return GaussianProcess(
        process, centre, scale, float(y.mean()), float(y.std()), TrainingInfo([])
    )
