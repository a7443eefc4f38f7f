"""`Rows`: the data as losses see it. Selected rows are gathered, since most losses need f on them
alone; unselected rows enter the joint likelihood through the linear head only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch

from heckesel.deep.nets import MINI_BATCHES, member_seed
from heckesel.numerics.normal import inverse_mills, mills_delta

Values = Any  # an array, or a tensor once rows are stacked; None where a loss has no use for it


@dataclass(frozen=True)
class Rows:
    """Rows of one cell (arrays), or of k networks side by side (tensors, leading axis k).

    x : (n, p + 1), y, weight : (n,) the selected units; padding has weight zero
    mills, delta : (n,) the inverse Mills ratio at the probit index (two-step), and what selection
        takes off the variance there in units of rho^2 sigma^2
    w : (n, q + 1), w_unselected : (m, q + 1), weight_unselected : (m,) (joint likelihood)
    selected : (n,) 1 or 0, where a loss needs f on unselected units too; these are then among
        the rows of x and w, with a y that is not read
    fold : (n,), fold_unselected : (m,) the fold of each unit, where members leave one out

    x and w end in a constant column.

    Weights add up to one over all rows the loss uses: the loss is a weighted mean.
    """

    x: Values
    y: Values
    weight: Values
    mills: Values = None
    delta: Values = None
    w: Values = None
    w_unselected: Values = None
    weight_unselected: Values = None
    selected: Values = None
    fold: Values = None
    fold_unselected: Values = None

    def present(self) -> dict[str, Values]:
        """The fields this loss uses, by name."""
        named = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: values for name, values in named if values is not None}


def with_mills(rows: Rows, index: np.ndarray) -> Rows:
    """Rows of one cell with the Mills term and delta at the probit index (n,) of each."""
    mills = inverse_mills(index)
    return replace(rows, mills=mills, delta=mills_delta(index, mills))


@dataclass(frozen=True)
class Source:
    """Where training steps take their rows: `batches(epoch)` yields `steps` of them, all of the
    same shapes. A stream from disk or network is another function with this signature."""

    steps: int
    batches: Callable[[int], Iterable[Rows]]


def stack_cells(
    cells: Sequence[Rows], *, dtype: torch.dtype, device: torch.device, multiple_of: int = 1
) -> Rows:
    """Cells side by side with leading axis len(cells), padded with zeros to the longest, and to a
    `multiple_of` rows."""

    def stacked(name):
        arrays = [getattr(cell, name) for cell in cells]
        # one row to point at, if empty
        length = rounded_up(max(1, *(len(array) for array in arrays)), multiple_of)
        block = np.zeros((len(arrays), length, *arrays[0].shape[1:]))
        for place, array in zip(block, arrays, strict=True):
            place[: len(array)] = array
        return torch.as_tensor(block, dtype=dtype, device=device)

    return Rows(**{name: stacked(name) for name in cells[0].present()})


def rows_together(hidden: Sequence[int]) -> int:
    """Rows of networks with these widths are padded to a multiple of this, so that a network does
    not depend on how many are trained beside it.

    Products depend on where a matrix starts; 16 rows of float32 fill whole lines of 64 bytes.
    Elementwise functions take two vectors of up to 16 numbers at a time and compute a rest by
    other instructions; 16 rows of a layer are a multiple of 32 numbers if its width is even.
    """
    return 16 if all(width % 2 == 0 for width in hidden) else 32


def rounded_up(rows: int, multiple_of: int) -> int:
    return math.ceil(rows / multiple_of) * multiple_of


def full_batch(stacked: Rows, members: int) -> Source:
    """Every step sees every row; network c * members + j sees the rows of cell c.

    Rows are copied for each member: next to the activations of a hidden layer they are small.
    """
    repeated = {
        name: values.repeat_interleave(members, dim=0) for name, values in stacked.present().items()
    }
    rows = Rows(**repeated)
    return Source(1, lambda epoch: (rows,))


def of_networks(source: Source, networks: torch.Tensor) -> Source:
    """The same steps for some of the networks."""

    def chosen(rows):
        return Rows(**{name: values[networks] for name, values in rows.present().items()})

    if source.steps == 1:
        (rows,) = source.batches(0)
        own = chosen(rows)
        return Source(1, lambda epoch: (own,))
    return Source(source.steps, lambda epoch: map(chosen, source.batches(epoch)))


def mini_batches(
    cells: Sequence[Rows],
    stacked: Rows,
    seeds,
    members: int,
    steps: int,
    first: int = 0,
    multiple_of: int = 1,
) -> Source:
    """Each epoch cuts the rows of each network into `steps` parts, in an order of its own, padded
    to a `multiple_of` rows; the members are those from number `first` on.

    Selected and unselected rows are cut separately, so that every step has its share of both.
    Weights are multiplied by `steps`, which makes each step's gradient unbiased.
    """
    selected = [len(cell.y) for cell in cells]
    unselected = [0 if cell.w_unselected is None else len(cell.w_unselected) for cell in cells]

    def batches(epoch):
        order = batch_generators(seeds, range(first, first + members), epoch)
        chosen, others = (
            positions(order, counts, steps, step_rows(max(counts), steps, multiple_of))
            for counts in (selected, unselected)
        )
        for step in range(steps):
            yield take(stacked, members, steps, chosen[step], others[step])

    return Source(steps, batches)


def batch_generators(seeds, members, epoch) -> list[list[np.random.Generator]]:
    """What draws the order of rows in one epoch: by cell, then by member."""
    return [
        [np.random.default_rng(member_seed(seed, j, MINI_BATCHES, epoch)) for j in members]
        for seed in seeds
    ]


def step_rows(count: int, steps: int, multiple_of: int) -> int:
    """Rows of each of `steps` that visit `count`: at least one, to point at."""
    return rounded_up(max(1, math.ceil(count / steps)), multiple_of)


def positions(rngs, counts, steps: int, length: int) -> np.ndarray:
    """(steps, k, length) rows of each step, -1 where a network has none left.

    rngs : by cell, then by member; counts : rows of each cell
    """
    places = np.full((steps, sum(map(len, rngs)), length), -1)
    network = 0
    for own, count in zip(rngs, counts, strict=True):
        for rng in own:
            shuffled = rng.permutation(count)
            for step in range(steps):
                part = shuffled[step::steps]
                places[step, network, : len(part)] = part
            network += 1
    return places


def take(stacked: Rows, members: int, steps: int, chosen, others) -> Rows:
    """The rows at these places, (k, length) of selected and of unselected ones."""
    device = stacked.y.device
    cell = torch.arange(len(stacked.y), device=device).repeat_interleave(members)[:, None]
    chosen, others = (torch.as_tensor(at, device=device) for at in (chosen, others))

    def taken(name):
        at = others if name.endswith("unselected") else chosen
        values = getattr(stacked, name)[cell, at.clamp(min=0)]
        return values * (at >= 0) * steps if name.startswith("weight") else values

    return replace(stacked, **{name: taken(name) for name in stacked.present()})
