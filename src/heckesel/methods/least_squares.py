"""Least squares on the selected units: the linear baseline, without a correction."""

from dataclasses import dataclass

import numpy as np

from heckesel.classical.covariance import fit_least_squares, least_squares_covariance
from heckesel.data import SelectionData
from heckesel.fit_info import LinearInfo
from heckesel.predictive import Predictive, check_target


@dataclass(frozen=True)
class LinearFit:
    """beta : (p + 1,), the constant last; covariance : (p + 1, p + 1)"""

    beta: np.ndarray
    covariance: np.ndarray
    sigma: float
    info: LinearInfo

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """Normal around x'beta; the uncertainty of beta is epistemic."""
        check_target(target)
        x = np.column_stack([np.asarray(x, dtype=float), np.ones(len(x))])
        epistemic = np.einsum("ij,jk,ik->i", x, self.covariance, x)
        return Predictive.normal(x @ self.beta, epistemic, self.sigma**2)


def fit_many(datas, *, seeds=None, config=None, device=None, progress=None) -> list[LinearFit]:
    """Weighted least squares with a constant; it is not random and has no options."""
    return [_fit(data) for data in datas]


def _fit(data: SelectionData) -> LinearFit:
    x = np.column_stack([data.x[data.s], np.ones(int(data.s.sum()))])
    y, weight = data.y[data.s], data.weight[data.s]
    found = fit_least_squares(x, y, weight)
    covariance = least_squares_covariance(x, y, weight, found, "information")
    return LinearFit(found.beta, covariance, found.sigma, LinearInfo([found.sigma]))
