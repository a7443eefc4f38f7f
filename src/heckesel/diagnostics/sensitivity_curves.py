"""How much rests on rho? Conclusions as curves over it, where they break down, and bounds that
need no model."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from heckesel.data import numeric
from heckesel.diagnostics.profile_curve import new_axes
from heckesel.errors import DataError

# Evenly spaced in atanh rho: |rho| up to .96, closer together where it matters more.
RHO = np.tanh(np.linspace(-2.0, 2.0, 21))
PLAUSIBLE = 2.0  # log units below the best that a curve is drawn in full


@dataclass(frozen=True)
class Sensitivity:
    """rho, loglik : (j,), the latter relative to its best; values : name -> (j,) conclusions

    predictions : (j, m) population means of the rows asked for
    """

    rho: np.ndarray
    loglik: np.ndarray
    values: dict[str, np.ndarray]
    predictions: np.ndarray

    def crossings(self, name: str, threshold: float = 0.0) -> list[float]:
        """Every rho at which the value passes `threshold`, by a straight line between grid
        values."""
        if name not in self.values:
            raise DataError(f"there is no {name!r} here; there are {', '.join(self.values)}")
        gap = self.values[name] - threshold
        found = []
        for left in range(len(gap) - 1):
            one, other = gap[left], gap[left + 1]
            if one == 0.0:
                found.append(float(self.rho[left]))
            elif one * other < 0:
                share = one / (one - other)
                found.append(float(self.rho[left] + share * (self.rho[left + 1] - self.rho[left])))
        return found + ([float(self.rho[-1])] if gap[-1] == 0.0 else [])

    def breakdown(self, name: str, threshold: float = 0.0) -> float | None:
        """The rho nearest to 0, in either direction, at which the conclusion of a fit that
        ignores selection flips; None if none on the grid does it."""
        found = self.crossings(name, threshold)
        return min(found, key=abs) if found else None

    def to_frame(self):
        """One row for each rho."""
        import pandas as pd

        index = pd.Index(self.rho, name="rho")
        return pd.DataFrame({"loglik": self.loglik, **self.values}, index=index)

    def plot(self, name: str = "mean", axes=None):
        """The curve of one value, faint where the likelihood is far below its best."""
        axes = axes or new_axes()
        axes.plot(self.rho, self.values[name], color="0.75")
        plausible = np.where(self.loglik > -PLAUSIBLE, self.values[name], np.nan)
        label = f"within {PLAUSIBLE:g} log units of the best"
        axes.plot(self.rho, plausible, "o-", color="#0072B2", label=label)
        axes.axvline(0.0, color="0.5", lw=0.8)
        axes.set(xlabel="rho, held fixed", ylabel=name, xlim=(-1, 1))
        axes.legend(frameon=False)
        return axes


def check_rho(rho) -> np.ndarray:
    """(j,) ascending values inside (-1, 1); None is the usual grid."""
    if rho is None:
        return RHO
    values = np.sort(np.atleast_1d(numeric(rho, "rho")))
    if values.ndim != 1 or not len(values) or not (np.abs(values) < 1).all():
        raise DataError(f"rho must be numbers between -1 and 1, got {rho!r}")
    return values


def worst_case_bounds(y, s, weight, low: float, high: float) -> tuple[float, float]:
    r"""Smallest and largest average outcome of all units, if every unseen one lies in [low, high].

    .. math:: \frac{1}{n}\sum_{s=1} y_i + \frac{n_0}{n}\,[\text{low}, \text{high}]

    Manski's bounds: no model and no instrument, and no narrower without one of them.
    """
    seen = np.asarray(y)[s]
    if not (isinstance(low, Real) and isinstance(high, Real) and low < high):
        raise DataError(f"bounds need numbers low < high, got {low!r} and {high!r}")
    low, high = float(low), float(high)
    if seen.min() < low or seen.max() > high:
        raise DataError(
            f"outcomes run from {seen.min():g} to {seen.max():g}, beyond the bounds {low:g} to "
            f"{high:g}; give bounds that hold"
        )
    share = float(weight[~s].sum() / weight.sum())
    mean = float(np.average(seen, weights=weight[s])) * (1 - share)
    return mean + share * low, mean + share * high
