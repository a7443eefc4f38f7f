"""Penalised additive splines with the joint likelihood, averaged over rho: for small tables.

The outcome is a sum of smooth curves, one a column, and of smooth surfaces where interactions are
asked for; the selection index is linear. Smoothness and rho are weighed by the evidence (see
`heckesel.deep.linear_joint`), and the predictive is a mixture over rho.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from heckesel.classic.probit import selection_probit
from heckesel.data import SelectionData
from heckesel.deep.cells import all_rows
from heckesel.deep.config import torch_device
from heckesel.deep.rho_mixture import RhoMixture, average_over_rho
from heckesel.deep.rho_prior import rho_prior
from heckesel.deep.scaling import scaling_of
from heckesel.errors import DataError
from heckesel.numerics.splines import Spline, spline_of

SURFACE_KNOTS = 1  # inside the range, in each direction of an interaction


@dataclass(frozen=True)
class SplineConfig:
    """interactions : pairs of columns of x by position, or "all"; rho_prior : see `rho_prior`"""

    interactions: Sequence[tuple[int, int]] | str = ()
    rho_prior: object = None


@dataclass(frozen=True)
class SplineBasis:
    """[1, x, wiggles of each column, surfaces]; `membership` (h, ridges) says which ridge."""

    curves: tuple[Spline | None, ...]
    surfaces: tuple[tuple[int, int, Spline | None, Spline | None], ...]
    membership: np.ndarray

    def columns(self, x: np.ndarray) -> np.ndarray:
        """(1, m, h)"""
        return np.concatenate(_blocks(self.curves, self.surfaces, x), axis=1)[None]


def fit(
    data: SelectionData,
    *,
    seed: int = 0,
    config: SplineConfig | None = None,
    device: str | None = None,
    progress=None,
) -> RhoMixture:
    """Splines for one cell; nothing is random, so `seed` has no effect."""
    return fit_many([data], seeds=[seed], config=config, device=device)[0]


def fit_many(
    datas: Sequence[SelectionData],
    *,
    seeds: Sequence[int] | None = None,
    config: SplineConfig | None = None,
    device: str | None = None,
    progress=None,
) -> list[RhoMixture]:
    """Splines for many cells; those whose bases have the same shape side by side."""
    config = config or SplineConfig()
    prior, place = rho_prior(config.rho_prior), torch_device(device or "cpu")
    for data in datas:
        selection_probit(data)  # refuses columns that leave no single best index
    scalings = [scaling_of(data, standardise=True) for data in datas]
    bases = [
        spline_basis(scaling.x(data.x[data.s]), config.interactions)
        for data, scaling in zip(datas, scalings, strict=True)
    ]
    alike: dict[tuple, list[int]] = {}
    for cell, basis in enumerate(bases):
        ridges = basis.membership
        alike.setdefault((ridges.shape, ridges.tobytes()), []).append(cell)
    fitted: dict[int, RhoMixture] = {}
    for cells in alike.values():
        found = average_over_rho(
            [all_rows(datas[c], scalings[c]) for c in cells],
            [datas[c].weight.sum() for c in cells],
            [scalings[c] for c in cells],
            [bases[c] for c in cells],
            bases[cells[0]].membership,
            prior,
            place,
        )
        fitted |= dict(zip(cells, found, strict=True))
    return [fitted[cell] for cell in range(len(datas))]


def spline_basis(x: np.ndarray, interactions=()) -> SplineBasis:
    """A basis for columns like x (n, p), the selected units."""
    p = x.shape[1]
    pairs = list(combinations(range(p), 2)) if interactions == "all" else list(interactions)
    for pair in pairs:
        if len(set(pair)) != 2 or not all(0 <= column < p for column in pair):
            raise DataError(f"an interaction is two different columns below {p}, got {pair!r}")
    curves = tuple(spline_of(column) for column in x.T)
    small = [spline_of(column, SURFACE_KNOTS) for column in x.T]
    surfaces = tuple((i, j, small[i], small[j]) for i, j in pairs)
    widths = [block.shape[1] for block in _blocks(curves, surfaces, x[:2])]
    group = np.repeat(np.arange(len(widths)) - 1, widths)  # the straight lines carry no ridge
    membership = (group[:, None] == np.arange(len(widths) - 1)).astype(float)
    return SplineBasis(curves, surfaces, membership)


def _blocks(curves, surfaces, x) -> list[np.ndarray]:
    straight = np.column_stack([np.ones(len(x)), x])
    wiggles = [spline.columns(column) for spline, column in zip(curves, x.T, strict=True) if spline]
    return [straight, *wiggles, *(_surface(x, *surface) for surface in surfaces)]


def _surface(x, i, j, spline_i, spline_j):
    """(m, h) products of (x_i, wiggles of x_i) with (x_j, wiggles of x_j)."""
    one, other = (
        np.column_stack([x[:, at], *([spline.columns(x[:, at])] if spline else [])])
        for at, spline in ((i, spline_i), (j, spline_j))
    )
    return (one[:, :, None] * other[:, None, :]).reshape(len(x), -1)
