"""A linear fit behind an estimator, whose x and w come without constants."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, stdtr

from heckesel.classical.prediction import LinearMeans
from heckesel.classical.probit_results import probit_index, probit_index_interval
from heckesel.errors import warn_user
from heckesel.predictive import Predictive, possible_covariance, predict_given_selection
from heckesel.scales import TargetTransform
from heckesel.tables.formula import with_intercept


@dataclass(frozen=True)
class LinearModel:
    """result : a `HeckmanFit`, or the part of it that a saved model holds"""

    result: Any

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """The predictive distribution; at rho = +-1 with the covariance of the other parameters."""
        fit, rho = self._with_covariance(), self.result.rho
        normal_end = self.result.status == "boundary" and fit.errors == "normal"
        if target == "population" or not (abs(rho) > 1 or (normal_end and not fit.has_scale)):
            return fit.predict(x=x, w=w, target=target)
        # no density has |rho| >= 1, which a two-step may estimate, too: use the nearest rho
        sign, sigma = 1.0 if target == "selected" else -1.0, fit.sigma
        f = fit.predict(x=x)
        covariance = sign * possible_covariance(rho * sigma, sigma)
        return predict_given_selection(f.mean, f.epistemic, sigma, covariance, sign * self.index(w))

    def _with_covariance(self):
        """The fit; at rho = +-1 with the covariance of the other parameters."""
        if self.result.cov_given_rho is None:
            return self.result
        return replace(self.result, cov=self.result.cov_given_rho)

    def means(self, target: str, transform: TargetTransform | None = None) -> LinearMeans:
        """The expected outcome of rows, with inference; at rho = +-1 without a joint covariance,
        that of the other parameters given rho."""
        fit = self.result if self.result.over_rho is not None else self._with_covariance()
        if fit is not self.result:
            warn_user(f"the fit is at rho = {fit.rho:+.0f}; these intervals treat rho as known")
        return (fit if transform is None else replace(fit, transform=transform)).means(target)

    def matrices(self, x, w) -> tuple:
        """x, w and the columns of log sigma(x), with constants; None where not needed."""
        names, scale = self.result.data, None
        x = None if x is None else with_intercept(x)
        if x is not None and names.scale_names:
            scale = x[:, [names.x_names.index(name) for name in names.scale_names]]
        return x, None if w is None else with_intercept(w), scale

    def index(self, w) -> np.ndarray:
        """The index with P(selected) = Phi(index), also for t errors."""
        index = with_intercept(w) @ self.result.params["select"].to_numpy()
        if self.result.errors != "t":
            return index
        return -np.sign(index) * ndtri(stdtr(self.result.df, -np.abs(index)))


class LinearProbit(LinearModel):
    """result : a `HeckmanProbitFit`"""

    def index_of_outcome(self, x, w, target: str) -> np.ndarray:
        """(m,) z with P(second class) = Phi(z)."""
        x, w, _ = self.matrices(x, w)
        return probit_index(self.result, x, w, target)[0]

    def probabilities(self, x, w=None, target: str = "population") -> np.ndarray:
        """(m, 2) of the first and the second class."""
        z = self.index_of_outcome(x, w, target)
        return np.column_stack([ndtr(-z), ndtr(z)])

    def log_probabilities(self, x, w=None, target: str = "population") -> np.ndarray:
        z = self.index_of_outcome(x, w, target)
        return np.column_stack([log_ndtr(-z), log_ndtr(z)])

    def interval(self, x, w, target: str, level: float) -> np.ndarray:
        """(m, 2) of the second class's probability."""
        x, w, _ = self.matrices(x, w)
        return ndtr(probit_index_interval(self.result, x, w, target, level))
