r"""The deep two-step on folds: held-out rows decide when a member stops, and estimate the noise.

With one sigma there is one round of training, with a sigma(x) there are three:

1. f and c, as with one sigma, for residuals r of held-out rows;
2. a network for the standard deviation of :math:`r/\sqrt{1-\rho^2\delta}`, the residuals as they
   would be without selection: :math:`\sigma(x) = \sigma s(x)`;
3. f and c again, around :math:`f + c\,s(x)\lambda`, so that the correction grows with the noise:
   :math:`E[y|s{=}1] = f + \rho\sigma(x)\lambda`, :math:`\rho = c/\sigma`.

Means are fitted by least squares in both rounds. A likelihood with sigma(x) would fit them best
where outcomes are least noisy, and neglect regions with few selected units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from heckesel.fit_info import SelectionInfo
from heckesel.methods.linear_start import linear_start
from heckesel.networks.ensembles.noise_calibration import calibrated_shape, pairs_of, two_step_loss
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble, noise_factor_of
from heckesel.networks.losses.normal import NOISE_SCALE, TWO_STEP
from heckesel.networks.training.batches import Batch
from heckesel.networks.training.ensemble_training import Members
from heckesel.networks.training.fit_request import FitRequest
from heckesel.networks.training.folds import held_out
from heckesel.networks.training.scaling import DataScale
from heckesel.predictive.distribution import RHO_LIMIT

if TYPE_CHECKING:
    from heckesel.methods.heckman_two_step import FirstStep


def fit_on_folds(prepared: Sequence[FirstStep], request: FitRequest) -> list[SelectionEnsemble]:
    """One ensemble for each first step; with noise "auto", what held-out rows prefer."""
    config, folds = request.config, request.config.folds
    assert folds is not None

    def outcomes(batches):
        heads = [
            _start(batch, first.strong) for batch, first in zip(batches, prepared, strict=True)
        ]
        return request.train(batches, loss=TWO_STEP, heads=heads)

    calibrate = partial(_calibrated, folds=folds, tails=config.tails)
    batches = [each.batch for each in prepared]
    members = outcomes(batches)
    fits = []
    if "constant" in config.noises:
        fits.append([calibrate(*each, None) for each in zip(members, prepared, strict=True)])
    if "varying" in config.noises:
        narrow = [_residual_rows(*each, folds) for each in zip(members, batches, strict=True)]
        noise_networks = request.train(narrow, loss=NOISE_SCALE)
        wide = [
            replace(batch, mills=batch.mills * _crossed(each, batch, folds))
            for each, batch in zip(noise_networks, batches, strict=True)
        ]
        members = outcomes(wide)
        again = [replace(each, batch=batch) for each, batch in zip(prepared, wide, strict=True)]
        fits.append([calibrate(*each) for each in zip(members, again, noise_networks, strict=True)])
    return [preferred(each) for each in zip(*fits, strict=True)]


def preferred(fits: Sequence[SelectionEnsemble]) -> SelectionEnsemble:
    """The fit with the lowest held-out loss; its `info` has the losses of all."""
    tried: dict[str, float] = {}
    for fit in fits:
        assert fit.info.noise
        assert fit.info.held_out_loss is not None  # there were folds
        tried[fit.info.noise] = fit.info.held_out_loss
    best = min(fits, key=lambda fit: tried[str(fit.info.noise)])
    return replace(best, info=replace(best.info, held_out_losses=tried))


def _start(batch: Batch, strong: bool) -> np.ndarray:
    start = linear_start(batch, strong)
    return np.array([start.c, np.log(start.sigma)])


def _residual_rows(members: Members, batch: Batch, folds: int) -> Batch:
    """Residuals of held-out rows, scaled to their standard deviation in the population."""
    f = members.outputs(batch.x[:, :-1])[..., 0]
    c = members.head[:, :1].astype(float)
    out = held_out(batch.fold, len(f), folds)
    seen = out.any(axis=0)  # with fewer members than folds, some rows are never held out
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
    """(n,) s(x) of each row by members that held it out, or by all members if none did."""
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

    def loss(level, df):
        return two_step_loss(residual, level, c[own], batch.delta[rows], pairs, df)

    found, index = calibrated_shape(loss, pairs, tails), first.networks
    fit = in_units_of_y(members, np.full(len(c), found.level), first.scaling, first.gamma)
    info = replace(
        fit.info,
        held_out_loss=found.loss + float(np.log(first.scaling.y_scale)),
        best_epoch=np.asarray(members.best_epoch).tolist(),
        noise="constant" if noise_networks is None else "varying",
        tail_df=found.df,
        selection=None if index is None else "network" if index.members else "linear",
        selection_losses=None if index is None else index.losses,
    )
    selection = None if index is None else index.members
    return replace(
        fit, info=info, noise_networks=noise_networks, selection=selection, tail_df=found.df
    )


def in_units_of_y(members, sigma, scaling: DataScale, gamma) -> SelectionEnsemble:
    """The ensemble; sigma : (k,) for the scaled y; gamma : (q + 1,) for w as given."""
    unit, c = scaling.y_scale, members.head[:, 0].astype(float)
    training_loss = (members.loss + np.log(unit)).tolist()
    info = SelectionInfo((c / sigma).tolist(), (unit * sigma).tolist(), training_loss)
    return SelectionEnsemble(members, scaling, unit * sigma, unit * c, gamma[None], info)
