"""Oracle: the true outcome function and the true noise, which are known in simulations only."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from heckesel.errors import DataError
from heckesel.fit_info import LinearInfo
from heckesel.predictive import Predictive


@dataclass(frozen=True)
class OracleConfig:
    """f0 : x (m, p) -> (m,) the mean of y; sigma : its sd."""

    f0: Callable[[np.ndarray], np.ndarray]
    sigma: float


@dataclass(frozen=True)
class Oracle:
    config: OracleConfig
    info: LinearInfo

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """N(f0(x), sigma^2)."""
        if target != "population":
            raise DataError(f"the oracle knows the population only, not target {target!r}")
        mean = np.asarray(self.config.f0(np.asarray(x, dtype=float)), dtype=float)
        return Predictive.normal(mean, 0.0, self.config.sigma**2)


def fit_many(datas, *, config, seeds=None, device=None, progress=None) -> list[Oracle]:
    """The same for every dataset: nothing is estimated."""
    return [Oracle(config, LinearInfo([config.sigma])) for _ in datas]
