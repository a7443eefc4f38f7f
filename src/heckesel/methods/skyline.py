"""Skyline: the deep ensemble trained on all outcomes, observed or not, as an upper reference."""

from dataclasses import dataclass, field, replace

import numpy as np

from heckesel.errors import DataError
from heckesel.methods import deep_ensemble
from heckesel.networks.ensembles.selection_ensemble import GaussianEnsemble
from heckesel.networks.training.config import NetworkConfig


@dataclass(frozen=True)
class SkylineConfig:
    """y : (n,) the outcomes of all units, the unselected ones included."""

    y: np.ndarray
    network: NetworkConfig = field(default_factory=NetworkConfig)


def fit_many(datas, *, seeds, config, device=None, progress=None) -> list[GaussianEnsemble]:
    """The skyline for many datasets; `config` is one for each, all with the same network."""
    configs = [config] if isinstance(config, SkylineConfig) else config
    complete = [_complete(data, each.y) for data, each in zip(datas, configs, strict=True)]
    return deep_ensemble.fit_many(
        complete, seeds=seeds, config=configs[0].network, device=device, progress=progress
    )


def _complete(data, y):
    y = np.asarray(y, dtype=float)
    missing = np.flatnonzero(~np.isfinite(np.column_stack([y, data.x])).all(axis=1))
    if len(missing):
        raise DataError(
            f"the skyline needs x and y of every unit but {len(missing)} rows lack one "
            f"(first: row {missing[0]})"
        )
    return replace(data, y=y, s=np.ones(data.n, dtype=bool))
