"""Priors of rho: uniform, on a sign or an interval, or a density."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from heckesel.errors import DataError

SIGNS = {"uniform": (-1.0, 1.0), "positive": (0.0, 1.0), "negative": (-1.0, 0.0)}
NODES = 5  # of the midpoint rule for a density over one bin


@dataclass(frozen=True)
class RhoPrior:
    """Uniform on (low, high), or a density on (-1, 1)."""

    low: float = -1.0
    high: float = 1.0
    density: Callable | None = None

    def log_density(self, rho: np.ndarray) -> np.ndarray:
        """(j,) up to a constant; minus infinity where the prior is zero."""
        with np.errstate(divide="ignore"):
            if self.density is not None:
                return np.log(np.asarray(self.density(rho), dtype=float))
            return np.log(((rho >= self.low) & (rho <= self.high)).astype(float))

    def mass(self, edges: np.ndarray) -> np.ndarray:
        """(j,) prior mass between consecutive edges (j + 1,); it need not add up to one."""
        if self.density is None:
            inside = np.clip(edges, self.low, self.high)
            return np.diff(inside)
        share = (np.arange(NODES) + 0.5) / NODES
        nodes = edges[:-1, None] + np.diff(edges)[:, None] * share
        values = np.asarray(self.density(nodes), dtype=float)
        bad = values.shape != nodes.shape or not np.isfinite(values).all() or (values < 0).any()
        if bad or not values.any():
            raise DataError(
                "the rho_prior function must take an array of rho and return a density for each: "
                "finite, not negative, and positive somewhere"
            )
        return values.mean(axis=1) * np.diff(edges)


UNIFORM = RhoPrior()


def bin_edges(rho: np.ndarray) -> np.ndarray:
    """(j + 1,) boundaries of the bins around an ordered grid, from -1 to 1."""
    return np.concatenate([[-1.0], 0.5 * (rho[1:] + rho[:-1]), [1.0]])


def rho_prior(given) -> RhoPrior:
    """The prior from None or "uniform", a sign, an interval (low, high) or a function of rho."""
    if given is None:
        return UNIFORM
    if isinstance(given, str):
        if given not in SIGNS:
            raise DataError(
                f"rho_prior must be one of {', '.join(SIGNS)}, an interval or a function, "
                f"got {given!r}"
            )
        return RhoPrior(*SIGNS[given])
    if callable(given):
        return RhoPrior(density=given)
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        raise DataError(f"a rho_prior interval is two numbers, got {given!r}") from None
    if not -1 <= low < high <= 1:
        raise DataError(f"a rho_prior interval needs -1 <= low < high <= 1, got {given!r}")
    return RhoPrior(low, high)
