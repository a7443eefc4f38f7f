"""A line through the selected outcomes: what the file of a new method holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckesel.predictive import Predictive, check_target
from heckesel.saving import register


@register
@dataclass(frozen=True)
class ToyInfo:
    """What the fit reports; a field of None is not in `info_`."""

    rho: list[float]
    sigma: list[float]
    share: float
    status: str | None = None


@register
@dataclass(frozen=True)
class ToyFit:
    """y is normal around constant + x'slope; the share of selected units is the same everywhere."""

    slope: np.ndarray
    constant: float
    sigma: float
    share: float
    info: ToyInfo

    def predict(self, x, w=None, target="population") -> Predictive:
        check_target(target)
        return Predictive.normal(np.asarray(x) @ self.slope + self.constant, 0.0, self.sigma**2)

    def index(self, w) -> np.ndarray:
        return np.full(len(w), self.share)


@register
@dataclass(frozen=True)
class ToyConfig:
    folds: int
    rho_prior: object


def options(network, model) -> ToyConfig:
    return ToyConfig(network.folds, model.rho_prior)


def fit_many(datas, *, seeds, config=None, device=None, progress=None):
    return [_fit(data) for data in datas]


def _fit(data) -> ToyFit:
    x = np.column_stack([data.x[data.s], np.ones(data.s.sum())])
    beta, *_ = np.linalg.lstsq(x, data.y[data.s], rcond=None)
    sigma = float(np.std(data.y[data.s] - x @ beta))
    share = float(data.s.mean())
    return ToyFit(beta[:-1], float(beta[-1]), sigma, share, ToyInfo([0.0], [sigma], share))
