"""Folds: every member holds out one, so every unit has members that were trained without it."""

import math
from dataclasses import replace

import numpy as np
import torch

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.networks.training.batches import Batch, Source, full_batch

# The rows of each network start at a multiple of this, the alignment of vector instructions, so
# that its rounding does not depend on the networks beside it.
ALIGNED = 16
# Random stream of the dataset, not of a member: its key has one number, those of members have two.
FOLDS = 0


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
    """The largest groups first, in turn, so that folds have about as many selected units."""
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
