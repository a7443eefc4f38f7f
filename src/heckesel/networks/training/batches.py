"""From data to the rows that a loss is computed on: scaled, split into folds, padded and stacked.

Selected and unselected rows are separate: most losses need the network on selected rows only, and
unselected rows enter the joint likelihood through the linear head. Every member holds out one fold,
so every unit has members that were trained without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.math.moments import Moments
from heckesel.math.special import inverse_mills, mills_delta
from heckesel.on_disk import on_disk

# The rows of each network start at a multiple of this, the alignment of vector instructions, so
# that its rounding does not depend on the networks beside it.
ALIGNED = 16
# Random stream of the dataset, not of a member: its key has one number, those of members have two.
FOLDS = 0
Values = Any  # an array, or a tensor once rows are stacked; None if the loss does not use it


@dataclass(frozen=True)
class Batch:
    """Rows of one dataset (arrays), or of k networks (tensors with leading axis k).

    x : (n, p + 1), y, weight : (n,) the selected units; padding has weight zero
    mills, delta : (n,) the inverse Mills ratio at the probit index (two-step), and by how much
        selection reduces the variance there, in units of rho^2 sigma^2
    w : (n, q + 1), w_unselected : (m, q + 1), weight_unselected : (m,) (joint likelihood)
    selected : (n,) 1 or 0, for losses that need f on unselected units too; x and w then have rows
        for all units, and y of an unselected unit is not used
    fold : (n,), fold_unselected : (m,) the fold of each unit, if members hold one out

    The last column of x and w is constant. Weights add up to one over all rows of the loss, which
    is a weighted mean.
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

    def map(self, function: Callable) -> Batch:
        """The same rows with `function` applied to every field that this loss uses."""
        return Batch(**{name: function(values) for name, values in self.present().items()})


@dataclass(frozen=True)
class Source:
    """The rows of the training steps: `batches(epoch)` yields `steps` batches of the same shapes,
    from memory or from a stream."""

    steps: int
    batches: Callable[[int], Iterable[Batch]]


@dataclass(frozen=True)
class DataScale:
    """Centre and scale of x (p,), w (q,) and y (one number each).

    Inputs of a user's module are not scaled: x_centre and x_scale are None.
    """

    x_centre: np.ndarray | None
    x_scale: np.ndarray | None
    w_centre: np.ndarray = field(metadata=on_disk("q"))
    w_scale: np.ndarray = field(metadata=on_disk("q", positive=True))
    y_centre: float
    y_scale: float = field(metadata=on_disk(positive=True))

    def x(self, x: np.ndarray) -> np.ndarray:
        if self.x_centre is None:
            return x
        return (np.asarray(x, dtype=float) - self.x_centre) / self.x_scale

    def w(self, w: np.ndarray) -> np.ndarray:
        return (w - self.w_centre) / self.w_scale

    def y(self, y: np.ndarray) -> np.ndarray:
        return (y - self.y_centre) / self.y_scale

    def unscale_gamma(self, gamma: np.ndarray) -> np.ndarray:
        """Coefficients (k, q + 1), constant last, for w in the user's units."""
        slopes = gamma[:, :-1] / self.w_scale
        constant = gamma[:, -1:] - slopes @ self.w_centre[:, None]
        return np.hstack([slopes, constant])


def data_scale_of(data: SelectionData, standardise: bool) -> DataScale:
    """Moments of x and w over all units, of y over the selected ones; 0 and 1 if not `standardise`.

    x may be missing for unselected units, so its moments ignore NaN. A constant column has scale 1.
    A weight of two counts as two rows.
    """
    p, q = data.x.shape[1], data.w.shape[1]
    if not standardise:
        return DataScale(np.zeros(p), np.ones(p), np.zeros(q), np.ones(q), 0.0, 1.0)
    s, weight = data.s, data.weight
    return _data_scale(
        _moments(data.x, weight), _moments(data.w, weight), _moments(data.y[s, None], weight[s])
    )


def data_scale_from_moments(x: Moments, w: Moments, y: Moments) -> DataScale:
    """As `data_scale_of`, from moments of x and w over all units and of y over selected ones."""
    return _data_scale(*((each.mean, np.sqrt(each.squares / each.weight)) for each in (x, w, y)))


def _moments(values, weight):
    if (weight == weight[0]).all():
        return np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    share = np.where(np.isnan(values), 0.0, weight[:, None])
    share /= share.sum(axis=0)
    centre = np.nansum(share * values, axis=0)
    return centre, np.sqrt(np.nansum(share * (values - centre) ** 2, axis=0))


def _data_scale(*moments) -> DataScale:
    """From mean and sd of x, w and y. The computed sd of a constant column is rounding error, about
    1e-16 of its mean."""
    x, w, y = (
        (centre, np.where(scale > 1e-12 * np.abs(centre), scale, 1.0)) for centre, scale in moments
    )
    return DataScale(*x, *w, float(y[0][0]), float(y[1][0]))


def with_constant(values: np.ndarray) -> np.ndarray:
    """(n, p + 1): a column of ones behind the others."""
    return np.column_stack([values, np.ones(len(values))])


def outcome_rows(data: SelectionData, scaling: DataScale, factor=1.0, *, total=None) -> Batch:
    """The selected units, with weights `data.weight * factor` that add up to one.

    total : the sum to divide weights by, if these are some rows of a longer table
    """
    weight = (data.weight * factor)[data.s]
    return Batch(
        x=with_constant(scaling.x(data.x[data.s])),
        y=scaling.y(data.y[data.s]),
        weight=weight / (weight.sum() if total is None else total),
    )


def joint_rows(data: SelectionData, scaling: DataScale, *, total=None) -> Batch:
    """Selected and unselected units for a joint likelihood; weights add up to one over both, or
    are divided by `total`."""
    total = data.weight.sum() if total is None else total
    w = with_constant(scaling.w(data.w))
    return replace(
        outcome_rows(data, scaling, total=total),
        w=w[data.s],
        w_unselected=w[~data.s],
        weight_unselected=data.weight[~data.s] / total,
    )


def with_mills(rows: Batch, index: np.ndarray) -> Batch:
    """Rows of one dataset with `mills` and `delta` at the probit index (n,)."""
    mills = inverse_mills(index)
    return replace(rows, mills=mills, delta=mills_delta(index, mills))


def assign_folds(data: SelectionData, folds: int, seed: int) -> np.ndarray:
    """(n,) fold of each unit; selected and unselected units are split separately. Units of one
    group are in one fold."""
    if data.groups is not None:
        return _folds_of_groups(data, folds, seed)
    selected = int(data.s.sum())
    if selected < 2 * folds:
        raise DataError(
            f"{selected} selected units cannot be split into {folds} folds of at least two; "
            "set fewer folds"
        )
    rng = _generator(seed)
    fold = np.empty(data.n, dtype=int)
    for part in (data.s, ~data.s):
        fold[part] = rng.permutation(part.sum()) % folds
    return fold


def _folds_of_groups(data: SelectionData, folds: int, seed: int) -> np.ndarray:
    """Assigns groups to the folds in turn, the largest first, so that folds have similar numbers of
    selected units."""
    assert data.groups is not None
    _, code = np.unique(data.groups, return_inverse=True)
    selected = np.bincount(code, data.s)
    with_outcome = groups_with_outcome(data)
    if with_outcome < folds:
        raise DataError(
            f"{with_outcome} groups with selected units cannot be split into {folds} folds; set "
            "fewer folds"
        )
    chance = _generator(seed).random(len(selected))
    order = np.lexsort((chance, -np.bincount(code), -selected))
    fold = np.empty(len(order), dtype=int)
    fold[order] = np.arange(len(order)) % folds
    return fold[code]


def groups_with_outcome(data: SelectionData) -> int:
    """How many groups have selected units; without groups each unit is one."""
    return int(data.s.sum()) if data.groups is None else len(np.unique(data.groups[data.s]))


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(FOLDS,)))


def with_folds(dataset: Batch, data: SelectionData, folds: int | None, seed: int) -> Batch:
    """The dataset, of all units or of the selected ones, with the fold of each unit;
    unchanged if `folds` is None."""
    if folds is None:
        return dataset
    fold = assign_folds(data, folds, seed)
    unselected = None if dataset.w_unselected is None else fold[~data.s]
    own = fold if len(dataset.y) == data.n else fold[data.s]
    return replace(dataset, fold=own, fold_unselected=unselected)


def held_out(fold: np.ndarray, members: int, folds: int) -> np.ndarray:
    """(k, n) True where member j held out row i."""
    return np.arange(members)[:, None] % folds == fold


def stack_datasets(
    datasets: Sequence[Batch], *, dtype: torch.dtype, device: torch.device, multiple_of: int = 1
) -> Batch:
    """Datasets with leading axis len(datasets), padded with zeros to the longest, and to a
    `multiple_of` rows."""

    def stacked(name):
        arrays = [getattr(dataset, name) for dataset in datasets]
        # at least one row, because positions of padding point to a row
        length = rounded_up(max(1, *(len(array) for array in arrays)), multiple_of)
        block = np.zeros((len(arrays), length, *arrays[0].shape[1:]))
        for place, array in zip(block, arrays, strict=True):
            place[: len(array)] = array
        return torch.as_tensor(block, dtype=dtype, device=device)

    return Batch(**{name: stacked(name) for name in datasets[0].present()})


def rows_together(hidden: Sequence[int]) -> int:
    """Rows of networks with these widths are padded to a multiple of this, so that a network does
    not depend on how many are trained beside it.

    The rounding of products depends on the alignment of a matrix; 16 rows of float32 fill whole
    lines of 64 bytes. Elementwise functions process two vectors of up to 16 numbers at a time and
    the remainder by other instructions; 16 rows of a layer are a multiple of 32 numbers if its
    width is even.
    """
    return 16 if all(width % 2 == 0 for width in hidden) else 32


def rounded_up(rows: int, multiple_of: int) -> int:
    return math.ceil(rows / multiple_of) * multiple_of


def full_batch(stacked: Batch, members: int) -> Source:
    """One batch of all rows; network c * members + j sees the rows of dataset c.

    Rows are copied for each member. They are small compared with the activations of a hidden layer.
    """
    rows = stacked.map(lambda values: values.repeat_interleave(members, dim=0))
    return Source(1, lambda epoch: (rows,))


def hold_out_own_fold(
    source: Source, stacked: Batch, members: int, folds: int, first: int = 0
) -> tuple[Source, Batch]:
    """Training rows without the fold that each network holds out, and its held-out rows; `first` is
    the number of the first member.

    Weights are rescaled to add up to one. The shape of mini-batches must not change between steps,
    so held-out rows stay in them with weight zero.
    """
    (everything,) = full_batch(stacked, members).batches(0)
    member = first + torch.arange(len(everything.y), device=everything.y.device) % members
    own = member % folds
    own = own.to(everything.y)[:, None]
    kept, held = (_gathered(everything, own, inside) for inside in (False, True))
    factor = 1 / _total(kept)
    held_rows = _scaled(held, 1 / _total(held))
    if source.steps == 1:
        rows = _scaled(kept, factor)
        return Source(1, lambda epoch: (rows,)), held_rows

    def batches(epoch):
        for rows in source.batches(epoch):
            yield _scaled(rows, factor, own)

    return Source(source.steps, batches), held_rows


def _gathered(rows: Batch, own, inside: bool) -> Batch:
    """The rows of each network's own fold (or of all others), without gaps."""
    parts = {}
    for fold, weight_name, names in (
        (rows.fold, "weight", ("x", "y", "weight", "mills", "delta", "w", "selected")),
        (rows.fold_unselected, "weight_unselected", ("w_unselected", "weight_unselected")),
    ):
        if fold is None:
            continue
        wanted = ((fold == own) == inside) & (getattr(rows, weight_name) > 0)
        length = ALIGNED * math.ceil(max(1, int(wanted.sum(dim=1).max())) / ALIGNED)
        place = torch.argsort(~wanted, dim=1, stable=True)[:, :length]
        for name in names:
            if (values := getattr(rows, name)) is not None:
                parts[name] = _at(values, place)
        parts[weight_name] *= _at(wanted, place)
    return Batch(**parts)


def _at(values, place):
    """values (k, n, ...) at the positions (k, m) of each network."""
    shape = (*place.shape, *values.shape[2:])
    return values.gather(1, place.reshape(*place.shape, *[1] * (values.dim() - 2)).expand(shape))


def _total(rows: Batch) -> torch.Tensor:
    total = rows.weight.sum(dim=1, keepdim=True)
    if rows.weight_unselected is not None:
        total = total + rows.weight_unselected.sum(dim=1, keepdim=True)
    return total


def _scaled(rows: Batch, factor, own=None) -> Batch:
    """Weights times `factor` and, with `own`, 0 inside each network's own fold; without folds."""
    weights = {}
    for name, fold in (("weight", rows.fold), ("weight_unselected", rows.fold_unselected)):
        if (weight := getattr(rows, name)) is not None:
            weights[name] = (weight if own is None else weight * (fold != own)) * factor
    return replace(rows, fold=None, fold_unselected=None, **weights)
