"""Penalised additive splines with the joint likelihood, averaged over rho: for small tables.

The outcome is a sum of smooth curves, one per column, and of smooth surfaces for the requested
interactions; the selection index is linear. The evidence (see `heckesel.networks.rho.linear_joint`)
chooses the smoothness and weights the values of rho; the predictive is a mixture over rho.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch

from heckesel.classical.checks import dependent_columns
from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.math.splines import INNER_KNOTS, Spline, spline_of, spline_width
from heckesel.methods.parts.spline_graph import spline_columns
from heckesel.networks.rho.rho_mixture import RhoMixture, average_over_rho, held_out_evidence
from heckesel.networks.rho.rho_prior import rho_prior
from heckesel.networks.training.batches import DataScale, data_scale_of, joint_rows, with_folds
from heckesel.networks.training.config import torch_device

SURFACE_KNOTS = 1  # inside the range, in each direction of an interaction
FEWEST_KNOTS = 2
# Limits of a fit that the user did not request: it takes seconds, has enough rows for its columns,
# and six copies of the columns take a gigabyte.
MOST_COLUMNS, LEAST_ROWS, MOST_NUMBERS = 300, 4, 20_000_000


@dataclass(frozen=True)
class SplineConfig:
    """interactions : pairs of columns of x by position, or "all"; rho_prior : see `rho_prior`
    knots : of a curve, inside its range
    folds : units are split into that many, and `info.held_out_evidence` is the log-likelihood
        of those held out; the fit itself is to all units
    """

    interactions: Sequence[tuple[int, int]] | str = ()
    rho_prior: object = None
    folds: int | None = None
    knots: int = INNER_KNOTS


@dataclass(frozen=True)
class SplineBasis:
    """[1, x, wiggles of each column, surfaces]; `membership` (h, ridges) gives their ridges."""

    curves: tuple[Spline | None, ...]
    surfaces: tuple[tuple[int, int, Spline | None, Spline | None], ...]
    membership: np.ndarray

    def columns(self, x: np.ndarray) -> np.ndarray:
        """(1, m, h)"""
        return np.concatenate(_blocks(self.curves, self.surfaces, x), axis=1)[None]

    def graph(self, graph, x: str) -> str:
        """The same in an ONNX graph."""
        return spline_columns(graph, self, x)


def fit_many(datas, *, seeds=None, config=None, device=None, progress=None) -> list[RhoMixture]:
    """Splines for many datasets; those whose bases have the same shape are fitted together."""
    config = config or SplineConfig()
    prior, on = rho_prior(config.rho_prior), torch_device(device or "cpu")
    scalings = [data_scale_of(data, standardise=True) for data in datas]
    bases = [
        spline_basis(scaling.x(data.x[data.s]), config.interactions, config.knots)
        for data, scaling in zip(datas, scalings, strict=True)
    ]
    alike: dict[tuple, list[int]] = {}
    for place, basis in enumerate(bases):
        ridges = basis.membership
        alike.setdefault((ridges.shape, ridges.tobytes()), []).append(place)
    split = [
        with_folds(joint_rows(data, scaling), data, config.folds, seed)
        for data, scaling, seed in zip(datas, scalings, seeds or [0] * len(datas), strict=True)
    ]
    fitted: dict[int, RhoMixture] = {}
    for places in alike.values():
        rows = [split[c] for c in places]
        totals = [datas[c].weight.sum() for c in places]
        units, columns = [scalings[c] for c in places], [bases[c] for c in places]
        found = average_over_rho(rows, totals, units, columns, prior, on)
        if config.folds is not None:
            evidence = held_out_evidence(rows, totals, found, on, config.folds)
            found = [
                replace(fit, info=replace(fit.info, held_out_evidence=float(value)))
                for fit, value in zip(found, evidence, strict=True)
            ]
        fitted |= dict(zip(places, found, strict=True))
    return [fitted[place] for place in range(len(datas))]


def fit_affordable(
    datas, *, seeds, folds: int, rho_prior=None, device=None
) -> list[RhoMixture | None]:
    """The most flexible splines that each dataset supports, or None. Methods with networks compare
    them with the networks on the same folds."""
    asked = [affordable(data.x[data.s]) for data in datas]
    found: list[RhoMixture | None] = [None] * len(datas)
    for rich in dict.fromkeys(one for one in asked if one is not None):
        places = [place for place, one in enumerate(asked) if one == rich]
        interactions, knots = rich
        config = SplineConfig(interactions, rho_prior, folds, knots)
        fits = _possible([datas[c] for c in places], [seeds[c] for c in places], config, device)
        for place, fit in zip(places, fits, strict=True):
            found[place] = fit
    return found


def affordable_basis(data: SelectionData, scaling: DataScale) -> SplineBasis | None:
    """The most flexible basis that a dataset supports, or None."""
    rich = affordable(data.x[data.s])
    return None if rich is None else spline_basis(scaling.x(data.x[data.s]), *rich)


def _possible(datas, seeds, config, device) -> list[RhoMixture | None]:
    """None if a column of x is collinear with the others when a fold is held out. The straight
    lines have no ridge, so the fit would not be unique."""
    try:
        return list(fit_many(datas, seeds=seeds, config=config, device=device))
    except torch.linalg.LinAlgError:
        if len(datas) == 1:
            return [None]
    pairs = zip(datas, seeds, strict=True)
    return [_possible([data], [seed], config, device)[0] for data, seed in pairs]


def affordable(x: np.ndarray) -> tuple[str | tuple, int] | None:
    """The interactions and knots that x (n, p), the selected units, can support below MOST_COLUMNS,
    MOST_NUMBERS and a column for every LEAST_ROWS rows: "all" pairs of columns, else none of them,
    else half as many knots, and so on. None if the fewest are too many, or if columns of x, whose
    straight lines have no ridge, are collinear."""
    if dependent_columns(np.column_stack([np.ones(len(x)), x]))[0] is not None:
        return None
    most = min(MOST_COLUMNS, len(x) // LEAST_ROWS, MOST_NUMBERS // max(1, len(x)))
    small = [1 + spline_width(column, SURFACE_KNOTS) for column in x.T]
    surfaces = sum(one * other for one, other in combinations(small, 2))
    knots = INNER_KNOTS
    while knots >= FEWEST_KNOTS:
        wide = 1 + x.shape[1] + sum(spline_width(column, knots) for column in x.T)
        if wide <= most:
            return ("all" if wide + surfaces <= most else ()), knots
        knots //= 2
    return None


def spline_basis(
    x: np.ndarray,
    interactions=(),
    knots: int = INNER_KNOTS,
    surface_knots: int = SURFACE_KNOTS,
) -> SplineBasis:
    """A basis for columns like x (n, p), the selected units."""
    p = x.shape[1]
    pairs = list(combinations(range(p), 2)) if interactions == "all" else list(interactions)
    for pair in pairs:
        if len(set(pair)) != 2 or not all(0 <= column < p for column in pair):
            raise DataError(f"an interaction is two different columns below {p}, got {pair!r}")
    curves = tuple(spline_of(column, knots) for column in x.T)
    small = [spline_of(column, surface_knots) for column in x.T]
    surfaces = tuple((i, j, small[i], small[j]) for i, j in pairs)
    widths = [block.shape[1] for block in _blocks(curves, surfaces, x[:2])]
    group = np.repeat(np.arange(len(widths)) - 1, widths)  # the straight lines have no ridge
    membership = (group[:, None] == np.arange(len(widths) - 1)).astype(float)
    return SplineBasis(curves, surfaces, membership)


def straight_lines(p: int) -> SplineBasis:
    """A constant and p columns, without curves."""
    return SplineBasis((None,) * p, (), np.zeros((1 + p, 0)))


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
