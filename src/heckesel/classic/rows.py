"""Standardised rows, selected apart from unselected, held here or read again for every sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from heckesel.classic.blocks import slices, sum_over
from heckesel.classic.standardise import Scaling, scaling_of
from heckesel.data import SelectionData

FEWEST_KEPT = 2000
ALL_ROWS_UP_TO = 50_000
SCAN_ROWS = 20_000
SCAN_SEED = 20_790  # fixed, so that the same data always gives the same modes


class Rows(Protocol):
    """What a likelihood needs of its rows: sums over blocks, and a part to search on.

    n : rows; mass, mass_selected : their weights added up; nonzero : rows of positive weight
    """

    @property
    def p(self) -> int: ...
    @property
    def q(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def mass(self) -> float: ...
    @property
    def mass_selected(self) -> float: ...
    @property
    def nonzero(self) -> int: ...

    def sum(self, function: Callable[[Sample], tuple]) -> list:
        """function(block) added up over blocks; blocks are small `Sample`s."""
        ...

    def part(self) -> Sample:
        """All rows while they are few, else the fixed-seed subsample of SCAN_ROWS."""
        ...


@dataclass(frozen=True)
class Sample:
    """Rows in memory.

    w_selected : (n1, q), residual_columns : (n1, p + 1) = [-x, y], w_unselected : (n0, q)
    """

    w_selected: np.ndarray
    residual_columns: np.ndarray
    weight_selected: np.ndarray
    w_unselected: np.ndarray
    weight_unselected: np.ndarray

    @property
    def q(self) -> int:
        return self.w_selected.shape[1]

    @property
    def p(self) -> int:
        return self.residual_columns.shape[1] - 1

    @property
    def n(self) -> int:
        return len(self.w_selected) + len(self.w_unselected)

    @property
    def mass_selected(self) -> float:
        return float(self.weight_selected.sum())

    @property
    def mass(self) -> float:
        return self.mass_selected + float(self.weight_unselected.sum())

    @property
    def nonzero(self) -> int:
        return int(
            np.count_nonzero(self.weight_selected) + np.count_nonzero(self.weight_unselected)
        )

    def blocks(self) -> list[Sample]:
        """Selected rows block by block, then unselected ones."""
        none = slice(0, 0)
        return [
            *(self._rows(block, none) for block in slices(len(self.w_selected))),
            *(self._rows(none, block) for block in slices(len(self.w_unselected))),
        ]

    def sum(self, function: Callable[[Sample], tuple]) -> list:
        return sum_over(function, self.blocks(), self.n)

    def part(self) -> Sample:
        return self if self.n <= ALL_ROWS_UP_TO else self.subsample(SCAN_ROWS, SCAN_SEED)

    def subsample(self, rows: int, seed: int) -> Sample:
        drawn = draw_rows(len(self.w_selected), len(self.w_unselected), rows, seed)
        return drawn.reweighted(self._rows(drawn.selected, drawn.unselected))

    def _rows(self, selected, unselected) -> Sample:
        return Sample(
            self.w_selected[selected],
            self.residual_columns[selected],
            self.weight_selected[selected],
            self.w_unselected[unselected],
            self.weight_unselected[unselected],
        )


@dataclass(frozen=True)
class Drawn:
    """Which of the selected and of the unselected rows are in a subsample, in ascending order,
    and the factors of their weights."""

    selected: np.ndarray
    unselected: np.ndarray
    factors: tuple[float, float]

    def reweighted(self, sample: Sample) -> Sample:
        return Sample(
            sample.w_selected,
            sample.residual_columns,
            sample.weight_selected * self.factors[0],
            sample.w_unselected,
            sample.weight_unselected * self.factors[1],
        )


def draw_rows(selected: int, unselected: int, rows: int, seed: int) -> Drawn:
    """About `rows` units drawn without replacement, but of each kind at least FEWEST_KEPT;
    weights make up for a kind that is kept more often than the other."""
    rng = np.random.default_rng(seed)
    share = rows / (selected + unselected)
    chosen, factors = [], []
    for count in (selected, unselected):
        kept = max(round(share * count), min(count, FEWEST_KEPT))
        chosen.append(np.sort(rng.choice(count, kept, replace=False, shuffle=False)))
        factors.append(share * count / kept if kept else 1.0)
    return Drawn(chosen[0], chosen[1], (factors[0], factors[1]))


@dataclass(frozen=True)
class Scalings:
    """How the columns of a `Sample` are standardised: x over the selected (the rows it is needed
    on), w over all, y over the selected."""

    w: Scaling
    x: Scaling
    y_centre: float
    y_scale: float

    def apply(self, data: SelectionData) -> Sample:
        s, weight = data.s, data.weight
        residual_columns = np.empty((np.count_nonzero(s), data.x.shape[1] + 1))
        np.compress(s, data.x, axis=0, out=residual_columns[:, :-1])
        residual_columns[:, :-1] -= self.x.centre
        residual_columns[:, :-1] /= -self.x.scale
        residual_columns[:, -1] = (data.y[s] - self.y_centre) / self.y_scale
        w_selected, w_unselected = data.w[s], data.w[~s]
        for part in (w_selected, w_unselected):
            part -= self.w.centre
            part /= self.w.scale
        return Sample(w_selected, residual_columns, weight[s], w_unselected, weight[~s])


def standardised_sample(data: SelectionData) -> tuple[Sample, Scalings]:
    """All rows of `data`, standardised by their own moments."""
    y = data.y[data.s]
    w_scaling, x_scaling = scaling_of(data.w), scaling_of(data.x[data.s])
    y_centre = float(y.mean()) if x_scaling.constant is not None else 0.0
    y_scale = float(np.sqrt(np.mean((y - y_centre) ** 2))) or 1.0
    scalings = Scalings(w_scaling, x_scaling, y_centre, y_scale)
    return scalings.apply(data), scalings
