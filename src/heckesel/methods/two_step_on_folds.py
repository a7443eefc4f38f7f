r"""The deep two-step with members on folds: each ends by the fold it did not see, and what is said
about the noise comes from rows that the member saying it did not see.

One sigma takes one round. A sigma(x) takes three, each a training of its own:

1. f and c, as with one sigma, for residuals r of rows left out;
2. a network for the width of :math:`r/\sqrt{1-\rho^2\delta}`, which selection has not narrowed:
   :math:`\sigma(x) = \sigma s(x)`;
3. f and c again, around :math:`f + c\,s(x)\lambda`, so that the correction grows with the noise:
   :math:`E[y|s{=}1] = f + \rho\sigma(x)\lambda`, :math:`\rho = c/\sigma`.

Means are fitted by least squares in both rounds. A likelihood with sigma(x) in it would fit them
best where outcomes are least noisy, and let go of the units that selection kept away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from heckesel.methods.linear_start import linear_start
from heckesel.networks.ensembles.noise_calibration import judged_shape, pairs_of, two_step_loss
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble, local_spread
from heckesel.networks.losses.normal import NOISE_SCALE, TWO_STEP
from heckesel.networks.training.batches import Batch
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import Members
from heckesel.networks.training.folds import held_out
from heckesel.predictive.distribution import RHO_LIMIT

if TYPE_CHECKING:
    from heckesel.methods.heckman_two_step import FirstStep


def fit_on_folds(prepared: Sequence[FirstStep], train, config: NetworkConfig, folds: int):
    """One ensemble for each first step; with noise "auto", what rows left out prefer.

    train : `train_datasets` with everything given but cells, loss, config and heads
    """

    def outcomes(cells):
        heads = [_start(cell, first.strong) for cell, first in zip(cells, prepared, strict=True)]
        return train(cells, loss=TWO_STEP, config=config, heads=heads)

    judge = partial(_judged, folds=folds, tails=config.tails)
    cells = [each.cell for each in prepared]
    members = outcomes(cells)
    fits = []
    if "constant" in config.noises:
        fits.append([judge(*each, None) for each in zip(members, prepared, strict=True)])
    if "varying" in config.noises:
        narrow = [_residual_rows(*each, folds) for each in zip(members, cells, strict=True)]
        spreads = train(narrow, loss=NOISE_SCALE, config=config)
        wide = [
            replace(cell, mills=cell.mills * _crossed(each, cell, folds))
            for each, cell in zip(spreads, cells, strict=True)
        ]
        members = outcomes(wide)
        again = [replace(each, cell=cell) for each, cell in zip(prepared, wide, strict=True)]
        fits.append([judge(*each) for each in zip(members, again, spreads, strict=True)])
    return [preferred(each) for each in zip(*fits, strict=True)]


def preferred(fits: Sequence[SelectionEnsemble]) -> SelectionEnsemble:
    """The fit with the least loss on the rows left out; it reports the losses of all."""
    best = min(fits, key=lambda fit: fit.info["held_out_loss"])
    tried = {fit.info["noise"]: fit.info["held_out_loss"] for fit in fits}
    return replace(best, info=best.info | {"held_out_losses": tried})


def _start(cell: Batch, strong: bool) -> np.ndarray:
    start = linear_start(cell, strong)
    return np.array([start.c, np.log(start.sigma)])


def _residual_rows(members: Members, cell: Batch, folds: int) -> Batch:
    """Residuals of rows under members that did not see them, as wide as in the population."""
    f = members.outputs(cell.x[:, :-1])[..., 0]
    c = members.head[:, :1].astype(float)
    out = held_out(cell.fold, len(f), folds)
    seen = out.any(axis=0)  # with fewer members than folds some rows have no honest residual
    residual = np.where(out, cell.y - f - c * cell.mills, 0.0).sum(axis=0) / np.maximum(
        out.sum(axis=0), 1
    )
    weight = np.where(seen, cell.weight, 0.0)
    weight = weight / weight.sum()
    square, c2 = residual**2 @ weight, float(np.mean(c)) ** 2
    rho2 = min(c2 / (square + c2 * (cell.delta @ weight)), RHO_LIMIT**2)
    return Batch(
        x=cell.x, y=residual / np.sqrt(1 - rho2 * cell.delta), weight=weight, fold=cell.fold
    )


def _crossed(spread: Members, cell: Batch, folds: int) -> np.ndarray:
    """(n,) s(x) of each row by members that did not see it, of all members where there is none."""
    factor = local_spread(spread.outputs(cell.x[:, :-1])[..., 0])
    out = held_out(cell.fold, len(factor), folds)
    out = out | ~out.any(axis=0)
    return np.where(out, factor, 0.0).sum(axis=0) / out.sum(axis=0)


def _judged(
    members: Members, first: FirstStep, spread: Members | None, folds: int, tails: str
) -> SelectionEnsemble:
    """The ensemble in units of y, with the level of sigma and the tails that rows left out
    prefer."""
    cell, c = first.cell, members.head[:, 0].astype(float)
    x = cell.x[:, :-1]
    f = members.outputs(x)[..., 0]
    factor = np.ones_like(f) if spread is None else local_spread(spread.outputs(x)[..., 0])
    pairs = pairs_of(f, factor, cell.weight, held_out(cell.fold, len(f), folds))
    rows, own = pairs.row, pairs.member
    residual = cell.y[rows] - pairs.mean - c[own] * cell.mills[rows]
    found = judged_shape(
        lambda level, df: two_step_loss(residual, level, c[own], cell.delta[rows], pairs, df),
        pairs,
        tails,
    )
    unit = first.scaling.y_scale
    sigma = np.full(len(c), unit * found.level)
    fitted = SelectionEnsemble(
        members=members,
        scaling=first.scaling,
        sigma=sigma,
        covariance=unit * c,
        gamma=first.gamma[None],
        info={
            "rho": (c / found.level).tolist(),
            "sigma": sigma.tolist(),
            "training_loss": (members.loss + np.log(unit)).tolist(),
            "held_out_loss": found.loss + float(np.log(unit)),
            "best_epoch": np.asarray(members.best_epoch).tolist(),
            "noise": "constant" if spread is None else "varying",
        }
        | found.info,
        spread=spread,
        tail_df=found.df,
    )
    if first.networks is None:
        return fitted
    index = first.networks
    kind = "linear" if index.members is None else "network"
    info = fitted.info | {"selection": kind, "selection_losses": index.losses}
    return replace(fitted, selection=index.members, info=info)
