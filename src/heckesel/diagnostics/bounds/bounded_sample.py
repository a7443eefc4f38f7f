"""The units that bounds are computed from, and the covariance of sums over them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from heckesel.classical.covariance import cluster_freedom


@dataclass(frozen=True)
class BoundedSample:
    """n units of positive weight; outcomes lie between low and high.

    y : (n,) NaN where there is no outcome
    answered : (n,) bool, whether the outcome was observed without a follow-up
    followed : (n,) bool, whether the unit was drawn for the follow-up, or None
    weight_kind : "frequency" or "probability"
    clusters : (n,) codes, or None
    treated : (n,) bool, or None
    instrument : (n,) positions of the values of the instrument, which increase, or None
    strata : (n,) codes of the combinations of covariates, or None
    quantile : None for means
    mirrored : whether y, low, high and the quantile are those of -y
    """

    y: np.ndarray
    answered: np.ndarray
    low: float
    high: float
    weight: np.ndarray
    weight_kind: str = "frequency"
    followed: np.ndarray | None = None
    clusters: np.ndarray | None = None
    treated: np.ndarray | None = None
    instrument: np.ndarray | None = None
    strata: np.ndarray | None = None
    quantile: float | None = None
    mirrored: bool = False

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of intervals: G - 1 for G clusters, infinite without."""
        return cluster_freedom(self.clusters, self.weight)

    def mirror(self) -> BoundedSample:
        """The same units with outcome -y, whose lower bound is minus the upper bound of y."""
        return replace(
            self,
            y=-self.y,
            low=-self.high,
            high=-self.low,
            quantile=None if self.quantile is None else 1 - self.quantile,
            mirrored=not self.mirrored,
        )

    def total(self, rows) -> float:
        """Sum of the weights of some rows."""
        return float(self.weight @ rows)

    def units(self, rows) -> float:
        """Number of units among some rows."""
        counted = self.weight_kind == "frequency"
        return self.total(rows) if counted else float(np.count_nonzero(rows))

    def residual_factor(self, rows) -> float:
        """sqrt(n / (n - 1)) for n units: what makes a variance around their mean unbiased.

        Clusters have their own factor in `covariance`.
        """
        units = self.units(rows)
        return float(np.sqrt(units / (units - 1))) if units > 1 and self.clusters is None else 1.0

    def covariance(self, contributions) -> np.ndarray:
        """(k, k) covariance of k estimates.

        contributions : (n, k) so that an estimate differs from its limit by about the sum of a
        column. Each is proportional to the weight of its unit. A frequency weight of two stands for
        two units, which contribute half each.
        """
        if self.clusters is not None:
            sums = np.stack([np.bincount(self.clusters, each) for each in contributions.T], axis=1)
            return sums.T @ sums * (1 + 1 / self.freedom)
        if self.weight_kind == "frequency":
            return contributions.T @ (contributions / self.weight[:, None])
        return contributions.T @ contributions
