"""Folds: every member does without one, so that every unit has members that never saw it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from heckesel.data import SelectionData
from heckesel.deep.rows import Rows, Source, full_batch
from heckesel.errors import DataError

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


def with_folds(cell: Rows, data: SelectionData, folds: int | None, seed: int) -> Rows:
    """The cell with the fold of each of its units; with `folds` None, the cell as it is."""
    if folds is None:
        return cell
    fold = assign_folds(data, folds, seed)
    unselected = None if cell.w_unselected is None else fold[~data.s]
    return replace(cell, fold=fold[data.s], fold_unselected=unselected)


def left_out(fold: np.ndarray, members: int, folds: int) -> np.ndarray:
    """(k, n) True where member j did without row i."""
    return np.arange(members)[:, None] % folds == fold


def leave_own_fold_out(
    source: Source, stacked: Rows, members: int, folds: int
) -> tuple[Source, Rows]:
    """Training rows without each network's own fold, and the rows of that fold alone.

    Rows stay where they are; those left out weigh nothing and the others are scaled so that
    weights add up to one again.
    """
    (everything,) = full_batch(stacked, members).batches(0)
    own = torch.arange(len(everything.y), device=everything.y.device) % members % folds
    own = own.to(everything.y)[:, None]
    out = _weighted(everything, own, True)
    kept, held = (_total(part) for part in (_weighted(everything, own, False), out))
    held_rows = _scaled(out, 1 / held)
    if source.steps == 1:
        rows = _scaled(_weighted(everything, own, False), 1 / kept)
        return Source(1, lambda epoch: (rows,)), held_rows

    def batches(epoch):
        for rows in source.batches(epoch):
            yield _scaled(_weighted(rows, own, False), 1 / kept)

    return Source(source.steps, batches), held_rows


def _weighted(rows, own, inside):
    """Weights of the rows in (or outside) each network's own fold; the folds are dropped."""
    weight = rows.weight * ((rows.fold == own) == inside)
    unselected = rows.weight_unselected
    if unselected is not None:
        unselected = unselected * ((rows.fold_unselected == own) == inside)
    return replace(
        rows, weight=weight, weight_unselected=unselected, fold=None, fold_unselected=None
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
