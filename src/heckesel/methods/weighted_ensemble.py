"""Deep ensemble weighted by inverse propensities: the usual correction if outcomes
are missing at random.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from heckesel.classical.probit import selection_probit
from heckesel.data import SelectionData
from heckesel.methods import deep_ensemble
from heckesel.networks.ensembles.selection_ensemble import GaussianEnsemble
from heckesel.networks.training.config import NetworkConfig

# No unit has a weight above a thousand: smaller propensities are raised to this one.
SMALLEST_PROPENSITY = 1e-3


@dataclass(frozen=True)
class WeightedConfig:
    """propensity : (n,) known P(s=1 | w) of every unit; None means that a probit on w estimates
    it."""

    propensity: np.ndarray | None = None
    network: NetworkConfig = field(default_factory=NetworkConfig)


def fit_many(datas, *, seeds, config=None, device=None, progress=None) -> list[GaussianEnsemble]:
    """The weighted ensemble for many datasets; with known propensities `config` is one for each
    dataset, all with the same network."""
    config = config or WeightedConfig()
    configs = [config] * len(datas) if isinstance(config, WeightedConfig) else list(config)
    factors = [
        inverse_propensity_weights(
            estimated_propensity(data) if each.propensity is None else each.propensity, data.s
        )
        for data, each in zip(datas, configs, strict=True)
    ]
    network = configs[0].network
    return deep_ensemble.fit_many(
        datas, seeds=seeds, config=network, factors=factors, device=device, progress=progress
    )


def inverse_propensity_weights(propensity, s) -> np.ndarray:
    """1/max(propensity, 1e-3), scaled to mean 1 over the selected units; (n,)."""
    weight = 1.0 / np.maximum(propensity, SMALLEST_PROPENSITY)
    return weight / weight[s].mean()


def estimated_propensity(data: SelectionData) -> np.ndarray:
    """Phi(w'gamma), gamma from a probit with a constant; (n,)."""
    w = np.column_stack([data.w, np.ones(data.n)])
    return ndtr(w @ selection_probit(data).gamma)
