"""The rows and columns that tests of the validity of instruments work on."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from heckesel.classical.checks import checked_probit
from heckesel.classical.probit import ProbitFit
from heckesel.data import CONSTANT, SelectionData, kind_of_weights
from heckesel.errors import ColumnError
from heckesel.verdict.strength import smooth_columns

MOST_ROWS = 10_000
INDEPENDENT = 1e-7  # singular values below this share of the largest are rounding
MOST_UNITS = 1e12  # whole weights that add up to more cannot count units


@dataclass(frozen=True)
class ValiditySample:
    """At most 10,000 units; a row with a frequency weight is repeated, so that units are
    independent and all other weights are probability weights.

    w : (n, q), its constant first; z : (n, k) instruments; x : (n1, p) of the selected
    known : (n, h) everything that is not an instrument and is complete in all rows
    probit : of s on w; effects : (k,) its coefficients of the instruments
    units : the number of units with positive weight, before sampling
    groups : (n,) integer codes of dependent units, or None
    """

    w: np.ndarray
    z: np.ndarray
    x: np.ndarray
    known: np.ndarray
    s: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    instruments: tuple[str, ...]
    probit: ProbitFit
    units: int
    groups: np.ndarray | None = None

    @property
    def n(self) -> int:
        return len(self.s)

    @cached_property
    def covariates(self) -> np.ndarray:
        """(n, h) orthonormal columns: a constant and smooth functions of the known columns."""
        return spanning(smooth_columns(self.known))

    @cached_property
    def smooth(self) -> np.ndarray:
        """(n1, h) the same for the columns of x among the selected."""
        return spanning(smooth_columns(self.x))

    @property
    def effects(self) -> np.ndarray:
        return self.probit.gamma[-self.z.shape[1] :]

    @property
    def z_sd(self) -> np.ndarray:
        """(k,)"""
        return sd(self.z, self.weight)

    @property
    def y_sd(self) -> float:
        """Of the outcome among the selected."""
        return float(sd(self.y[self.s], self.weight[self.s]))


def validity_sample(data: SelectionData, seed: int) -> ValiditySample:
    """x and w of `data` may have a constant column or not.

    A column that is collinear in w, or that predicts selection perfectly, is an error; if only the
    sampled units have this problem, the column is omitted.
    """
    data, units = _units(data, seed)
    chosen = [data.w_names.index(name) for name in data.instruments]
    others = [j for j, name in enumerate(data.w_names) if j not in chosen and name != CONSTANT]
    determined, chosen, probit = _selection(data, others, chosen, sampled=units > data.n)
    z = data.w[:, chosen]
    new = [
        j
        for j, name in enumerate(data.x_names)
        if name not in data.w_names and not np.isnan(data.x[:, j]).any()
    ]
    x = data.x[data.s]
    return ValiditySample(
        w=np.column_stack([np.ones(data.n), data.w[:, determined], z]),
        z=z,
        x=x[:, np.ptp(x, axis=0) > 0],
        known=np.column_stack([data.w[:, others], data.x[:, new]]),
        s=data.s,
        y=data.y,
        weight=data.weight,
        instruments=tuple(data.w_names[j] for j in chosen),
        probit=probit,
        units=units,
        groups=data.groups,
    )


def _selection(
    data: SelectionData, others: list[int], chosen: list[int], *, sampled: bool
) -> tuple[list[int], list[int], ProbitFit]:
    """The columns of w that the units determine, other ones and instruments, and their probit."""
    while True:
        kept = [*others, *chosen]
        w = np.column_stack([np.ones(data.n), data.w[:, kept]])
        names = (CONSTANT, *(data.w_names[j] for j in kept))
        try:
            return others, chosen, checked_probit(w, data.s, names, data.weight)
        except ColumnError as error:
            omitted = [j for j in kept if data.w_names[j] in error.terms][:1]
            if not sampled or not omitted or omitted == chosen:
                raise
            others = [j for j in others if j not in omitted]
            chosen = [j for j in chosen if j not in omitted]


def _units(data: SelectionData, seed: int) -> tuple[SelectionData, int]:
    """At most 10,000 random units, and the number of all units."""
    data = data.take(data.weight > 0)
    counts = (data.weight > 0).astype(float)
    if kind_of_weights(None, data.weight) == "frequency" and data.weight.sum() < MOST_UNITS:
        counts = data.weight
    ends = np.cumsum(counts)
    units = round(ends[-1])
    if units > MOST_ROWS:
        chosen = np.sort(np.random.default_rng(seed).choice(units, MOST_ROWS, replace=False))
    else:
        chosen = np.arange(units)
    repeated = units > data.n
    data = data.take(np.searchsorted(ends, chosen, side="right"))
    return (replace(data, weight=np.ones(data.n)) if repeated else data), units


def sd(values, weight) -> np.ndarray:
    """Weighted standard deviation of each column."""
    centred = values - np.average(values, axis=0, weights=weight)
    return np.sqrt(np.average(centred**2, axis=0, weights=weight))


def spanning(columns: np.ndarray) -> np.ndarray:
    """(n, h) orthonormal columns with the span of a constant and `columns`."""
    scale = np.abs(columns).max(axis=0, initial=0.0)
    kept = columns[:, scale > 0] / scale[scale > 0]
    centred = kept - kept.mean(axis=0)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    varying = left[:, size > INDEPENDENT * max(size.max(initial=0.0), 1.0)]
    return np.column_stack([np.full(len(columns), len(columns) ** -0.5), varying])
