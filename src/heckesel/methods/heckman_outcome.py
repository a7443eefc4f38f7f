"""Deep joint likelihood of a selection that may look at the outcome, with errors of any shape.

The model is in `heckesel.networks.losses.outcome_selection`. It is sharper than the two-step, and
leans on its model of the errors where that leans on little; `heckman_averaged` has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.linear.wald import instruments_are_strong
from heckesel.methods.linear_start import linear_start_of_both
from heckesel.networks.ensembles.noise_calibration import calibrated_level, pairs_of
from heckesel.networks.ensembles.outcome_ensemble import (
    OutcomeEnsemble,
    index_beside_y,
    mean_and_sigma,
    shape_of,
)
from heckesel.networks.losses.outcome_selection import FREE, PLAIN, START_SHAPE
from heckesel.networks.training.batches import Batch
from heckesel.networks.training.choices import best_of
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import Members, train_datasets
from heckesel.networks.training.folds import assign_folds, held_out
from heckesel.networks.training.layers import with_constant
from heckesel.networks.training.loop import Progress, shifted
from heckesel.networks.training.scaling import DataScale, data_scale_of
from heckesel.numerics.normal import HALF_LOG_2PI

# theta over kappa at the start: selection sees what is unusual, or the outcome. Members end before
# they have gone all the way from one to the other.
STARTS = (0.0, 1.0)


def fit_many(
    datas: Sequence[SelectionData],
    *,
    seeds: Sequence[int],
    config: NetworkConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[OutcomeEnsemble]:
    """The model for many datasets with the same columns, trained as one batch. Held-out units
    choose between its two forms and the starts; `config.noise` and `config.tails` are not used."""
    config = config or NetworkConfig(folds=5)
    if config.errors != "normal":
        raise DataError('this likelihood finds the shape of its errors; take errors="normal"')
    if config.folds is None:
        raise DataError("this likelihood needs held-out folds; set folds, say to 5")
    return best_of(config, partial(_fit_many, datas, seeds, device), progress)


def _fit_many(datas, seeds, device, config, progress) -> list[OutcomeEnsemble]:
    scalings = [data_scale_of(data, config.standardise) for data in datas]
    batches = [
        replace(flagged_rows(data, scaling), fold=assign_folds(data, config.folds, seed))
        for data, scaling, seed in zip(datas, scalings, seeds, strict=True)
    ]
    heads = [
        classic_heads(batch, instruments_are_strong(data))
        for batch, data in zip(batches, datas, strict=True)
    ]
    tried, forms = [], list(product((PLAIN, FREE), zip(*heads, strict=True)))
    for done, (loss, starts) in enumerate(forms):
        shape = START_SHAPE if loss is FREE else ()
        tried.append(
            train_datasets(
                batches,
                loss=loss,
                seeds=seeds,
                config=replace(config, warm_up=0),
                heads=[np.concatenate([start, shape]) for start in starts],
                units=max(data.n for data in datas),
                device=device,
                progress=shifted(progress, done, len(forms)),
            )
        )
    best = [min(each, key=_held_out_loss) for each in zip(*tried, strict=True)]
    calibrate = partial(calibrated, folds=config.folds)
    return [calibrate(*each) for each in zip(best, batches, scalings, strict=True)]


def _held_out_loss(members: Members) -> float:
    """Of selected and unselected units, under members that held them out."""
    return float(np.mean(np.asarray(members.validation)))


def flagged_rows(data: SelectionData, scaling: DataScale) -> Batch:
    """Selected and unselected units, in the order of the data."""
    return Batch(
        x=with_constant(scaling.x(data.x)),
        y=np.where(data.s, scaling.y(np.where(data.s, data.y, 0.0)), 0.0),
        weight=data.weight / data.weight.sum(),
        w=with_constant(scaling.w(data.w)),
        selected=data.s.astype(float),
    )


def classic_heads(batch: Batch, strong: bool) -> list[np.ndarray]:
    r"""(h,) for each of STARTS: the linear model on the same rows in the parameters of this one,
    :math:`\kappa = \rho/(\sigma\sqrt{1-\rho^2})`, and gamma such that
    :math:`w'\gamma + \theta x'\beta` is :math:`\sqrt{1+\kappa^2\sigma^2}` times the index of a
    probit."""
    s = batch.selected > 0
    apart = Batch(
        x=batch.x[s],
        y=batch.y[s],
        weight=batch.weight[s],
        w=batch.w[s],
        w_unselected=batch.w[~s],
        weight_unselected=batch.weight[~s],
    )
    gamma, linear = linear_start_of_both(apart, strong)
    root = np.sqrt(1 - linear.rho**2)
    kappa = linear.rho / (linear.sigma * root)
    # x'beta as far as columns of w have it, which mostly are those of x and more
    beta = np.linalg.lstsq(batch.w, batch.x @ linear.beta, rcond=None)[0]
    return [
        np.concatenate([gamma / root - theta * beta, [np.log(linear.sigma), kappa, theta]])
        for theta in (seen * kappa for seen in STARTS)
    ]


def calibrated(members: Members, batch: Batch, scaling: DataScale, folds: int) -> OutcomeEnsemble:
    """The ensemble with the level of its noise that makes selected held-out units likeliest, given
    that they were selected."""
    shape = shape_of(members)
    mean, sigma = mean_and_sigma(members, shape, batch.x[:, :-1])
    pairs = pairs_of(
        mean, sigma, batch.weight * batch.selected, held_out(batch.fold, len(mean), folds)
    )
    own = pairs.member
    index = index_beside_y(shape, shape.gamma @ batch.w.T, mean, sigma)[own, pairs.row]
    y, kappa = batch.y[pairs.row], shape.kappa[own]
    log_share, (shift, width) = np.log(shape.share[own]), (shape.shift[own], shape.width[own])

    def loss(level):
        noise = level * pairs.noise_factor[:, None]
        centre = pairs.mean[:, None] + noise * shift
        variance = (noise * width) ** 2 + pairs.doubt[:, None]
        square = (y[:, None] - centre) ** 2 / variance
        density = logsumexp(log_share - 0.5 * (square + np.log(variance)), axis=1) - HALF_LOG_2PI
        lean = index[:, None] + kappa[:, None] * centre
        share = np.exp(log_share) * ndtr(lean / np.sqrt(1 + kappa[:, None] ** 2 * variance))
        return np.log(share.sum(axis=1)) - density - log_ndtr(index + kappa * y)

    level, value = calibrated_level(loss, pairs.weight)
    sd = level * np.sqrt(shape.variance * (sigma**2 @ batch.weight))  # over all units
    load = shape.kappa * sd
    unit = scaling.y_scale
    per_unit = batch.weight @ batch.selected * np.log(unit)  # of y as it is given
    info = {
        "rho": (load / np.sqrt(1 + load**2)).tolist(),
        "sigma": (unit * sd).tolist(),
        "training_loss": (members.loss + per_unit).tolist(),
        "validation_loss": (np.asarray(members.validation) + per_unit).tolist(),
        "held_out_loss": value + float(np.log(unit)),
        "best_epoch": np.asarray(members.best_epoch).tolist(),
        "noise": "constant" if members.sizes[-1] == 1 else "varying",
        "outcome_seen": float(np.mean(shape.theta) / np.mean(shape.kappa)),
    }
    return OutcomeEnsemble(members, scaling, level, info)
