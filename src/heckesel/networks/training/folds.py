"""Folds: every member does without one, so that every unit has members that never saw it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.networks.training.batches import Batch, Source, full_batch

# Rows of each network begin where vector instructions want them, so that its digits do not depend
# on which networks lie beside it.
ALIGNED = 16
# A stream of the cell, not of a member: its key has one number where theirs have two.
FOLDS = 0


def assign_folds(data: SelectionData, folds: int, seed: int) -> np.ndarray:
    """(n,) fold of each unit, selected and unselected ones dealt out separately."""
    selected = int(data.s.sum())
    if selected < 2 * folds:
        raise DataError(
            f"{selected} selected units cannot be dealt into {folds} folds of at least two; "
            "ask for fewer folds"
        )
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(FOLDS,)))
    fold = np.empty(data.n, dtype=int)
    for part in (data.s, ~data.s):
        fold[part] = rng.permutation(part.sum()) % folds
    return fold


def with_folds(dataset: Batch, data: SelectionData, folds: int | None, seed: int) -> Batch:
    """The cell with the fold of each of its units; with `folds` None, the cell as it is."""
    if folds is None:
        return dataset
    fold = assign_folds(data, folds, seed)
    unselected = None if dataset.w_unselected is None else fold[~data.s]
    return replace(dataset, fold=fold[data.s], fold_unselected=unselected)


def held_out(fold: np.ndarray, members: int, folds: int) -> np.ndarray:
    """(k, n) True where member j did without row i."""
    return np.arange(members)[:, None] % folds == fold


def hold_out_own_fold(
    source: Source, stacked: Batch, members: int, folds: int, first: int = 0
) -> tuple[Source, Batch]:
    """Training rows without each network's own fold, and the rows of that fold alone; the members
    are those from number `first` on.

    Weights are scaled so that they add up to one again. In mini-batches, whose shape must not
    change from step to step, rows left out stay where they are and weigh nothing.
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
            yield _scaled(_weighted(rows, own), factor)

    return Source(source.steps, batches), held_rows


def _gathered(rows: Batch, own, inside: bool) -> Batch:
    """The rows of each network's own fold (or of all others), moved together."""
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
    """values (k, n, ...) at place (k, m) of each network."""
    shape = (*place.shape, *values.shape[2:])
    return values.gather(1, place.reshape(*place.shape, *[1] * (values.dim() - 2)).expand(shape))


def _weighted(rows, own):
    """Weights of the rows outside each network's own fold; the folds are dropped."""
    unselected = rows.weight_unselected
    if unselected is not None:
        unselected = unselected * (rows.fold_unselected != own)
    return replace(
        rows,
        weight=rows.weight * (rows.fold != own),
        weight_unselected=unselected,
        fold=None,
        fold_unselected=None,
    )


def _total(rows):
    total = rows.weight.sum(dim=1, keepdim=True)
    if rows.weight_unselected is not None:
        total = total + rows.weight_unselected.sum(dim=1, keepdim=True)
    return total


def _scaled(rows, factor):
    unselected = rows.weight_unselected
    if unselected is not None:
        unselected = unselected * factor
    return replace(rows, weight=rows.weight * factor, weight_unselected=unselected)
