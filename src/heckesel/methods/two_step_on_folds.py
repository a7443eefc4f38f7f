r"""The deep two-step with members on folds: each ends by the fold it did not see, and what is said
about the noise comes from rows that the member saying it did not see.

One sigma takes one round. A sigma(x) takes three, each a training separate:

1. f and c, as with one sigma, for residuals r of held-out rows;
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
from heckesel.networks.ensembles.noise_calibration import calibrated_shape, pairs_of, two_step_loss
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble, noise_factor_of
from heckesel.networks.losses.normal import NOISE_SCALE, TWO_STEP
from heckesel.networks.training.batches import Batch
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import Members
from heckesel.networks.training.folds import held_out
from heckesel.predictive.distribution import RHO_LIMIT

if TYPE_CHECKING:
    from heckesel.methods.heckman_two_step import FirstStep


def fit_on_folds(prepared: Sequence[FirstStep], train, config: NetworkConfig, folds: int):
    """One ensemble for each first step; with noise "auto", what held-out rows prefer.

    train : `train_datasets` with everything given but datasets, loss, config and heads
    """

    def outcomes(batches):
        heads = [
            _start(batch, first.strong) for batch, first in zip(batches, prepared, strict=True)
        ]
        return train(batches, loss=TWO_STEP, config=config, heads=heads)

    calibrate = partial(_calibrated, folds=folds, tails=config.tails)
    batches = [each.batch for each in prepared]
    members = outcomes(batches)
    fits = []
    if "constant" in config.noises:
        fits.append([calibrate(*each, None) for each in zip(members, prepared, strict=True)])
    if "varying" in config.noises:
        narrow = [_residual_rows(*each, folds) for each in zip(members, batches, strict=True)]
        noise_networks = train(narrow, loss=NOISE_SCALE, config=config)
        wide = [
            replace(batch, mills=batch.mills * _crossed(each, batch, folds))
            for each, batch in zip(noise_networks, batches, strict=True)
        ]
        members = outcomes(wide)
        again = [replace(each, batch=batch) for each, batch in zip(prepared, wide, strict=True)]
        fits.append([calibrate(*each) for each in zip(members, again, noise_networks, strict=True)])
    return [preferred(each) for each in zip(*fits, strict=True)]


def preferred(fits: Sequence[SelectionEnsemble]) -> SelectionEnsemble:
    """The fit with the least loss on the held-out rows; it reports the losses of all."""
    best = min(fits, key=lambda fit: fit.info["held_out_loss"])
    tried = {fit.info["noise"]: fit.info["held_out_loss"] for fit in fits}
    return replace(best, info=best.info | {"held_out_losses": tried})


def _start(batch: Batch, strong: bool) -> np.ndarray:
    start = linear_start(batch, strong)
    return np.array([start.c, np.log(start.sigma)])


def _residual_rows(members: Members, batch: Batch, folds: int) -> Batch:
    """Residuals of rows under members that did not see them, as wide as in the population."""
    f = members.outputs(batch.x[:, :-1])[..., 0]
    c = members.head[:, :1].astype(float)
    out = held_out(batch.fold, len(f), folds)
    seen = out.any(axis=0)  # with fewer members than folds some rows have no honest residual
    residual = np.where(out, batch.y - f - c * batch.mills, 0.0).sum(axis=0) / np.maximum(
        out.sum(axis=0), 1
    )
    weight = np.where(seen, batch.weight, 0.0)
    weight = weight / weight.sum()
    square, c2 = residual**2 @ weight, float(np.mean(c)) ** 2
    rho2 = min(c2 / (square + c2 * (batch.delta @ weight)), RHO_LIMIT**2)
    return Batch(
        x=batch.x, y=residual / np.sqrt(1 - rho2 * batch.delta), weight=weight, fold=batch.fold
    )


def _crossed(noise_networks: Members, batch: Batch, folds: int) -> np.ndarray:
    """(n,) s(x) of each row by members that did not see it, of all members where there is none."""
    factor = noise_factor_of(noise_networks.outputs(batch.x[:, :-1])[..., 0])
    out = held_out(batch.fold, len(factor), folds)
    out = out | ~out.any(axis=0)
    return np.where(out, factor, 0.0).sum(axis=0) / out.sum(axis=0)


def _calibrated(
    members: Members, first: FirstStep, noise_networks: Members | None, folds: int, tails: str
) -> SelectionEnsemble:
    """The ensemble in units of y, with the level of sigma and the tails that held-out rows
    prefer."""
    batch, c = first.batch, members.head[:, 0].astype(float)
    x = batch.x[:, :-1]
    f = members.outputs(x)[..., 0]
    factor = (
        np.ones_like(f)
        if noise_networks is None
        else noise_factor_of(noise_networks.outputs(x)[..., 0])
    )
    pairs = pairs_of(f, factor, batch.weight, held_out(batch.fold, len(f), folds))
    rows, own = pairs.row, pairs.member
    residual = batch.y[rows] - pairs.mean - c[own] * batch.mills[rows]
    found = calibrated_shape(
        lambda level, df: two_step_loss(residual, level, c[own], batch.delta[rows], pairs, df),
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
            "noise": "constant" if noise_networks is None else "varying",
        }
        | found.info,
        noise_networks=noise_networks,
        tail_df=found.df,
    )
    if first.networks is None:
        return fitted
    index = first.networks
    kind = "linear" if index.members is None else "network"
    info = fitted.info | {"selection": kind, "selection_losses": index.losses}
    return replace(fitted, selection=index.members, info=info)
