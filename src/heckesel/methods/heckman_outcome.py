"""Deep joint likelihood in which selection may depend on the outcome, with errors of any shape.

The model is in `heckesel.networks.losses.outcome_selection`. It is more precise than the two-step
but depends more on its error model; `heckman_averaged` averages both.
"""

from dataclasses import replace
from itertools import product

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr

from heckesel.classical.probit import instruments_are_strong
from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.fit_info import SelectionInfo
from heckesel.math.special import HALF_LOG_2PI
from heckesel.methods.heckman_two_step import linear_start_of_both
from heckesel.networks.ensembles.noise_calibration import calibrated_level, pairs_of
from heckesel.networks.ensembles.outcome_ensemble import (
    OutcomeEnsemble,
    index_beside_y,
    mean_and_sigma,
    shape_of,
)
from heckesel.networks.losses.outcome_selection import FREE, PLAIN, START_SHAPE
from heckesel.networks.training.batches import Batch, DataScale, held_out, with_constant
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import (
    FitRequest,
    Members,
    best_of,
    train_datasets,
)
from heckesel.networks.training.loop import shifted

# Ratios of theta to kappa at the start: selection depends on the error, or on the outcome. Members
# stop before they could move from one to the other.
STARTS = (0.0, 1.0)


def fit_many(datas, *, seeds, config=None, device=None, progress=None) -> list[OutcomeEnsemble]:
    """The model for many datasets with the same columns, trained as one batch. Held-out units
    choose between PLAIN and FREE and between the starts; `config.noise` and `config.tails` are not
    used."""
    config = config or NetworkConfig(folds=5)
    if config.errors != "normal":
        raise DataError('this method estimates the error distribution; set errors="normal"')
    if config.folds is None:
        raise DataError("this method needs held-out folds; set folds=5, for example")
    tried = FitRequest(datas, seeds, config, device, progress).candidates()
    return best_of(tried, [*map(_fit, tried)])


def _fit(request: FitRequest) -> list[OutcomeEnsemble]:
    batches, config = request.batches(flagged_rows), replace(request.config, warm_up=0)
    heads = [
        classic_heads(batch, instruments_are_strong(data))
        for batch, data in zip(batches, request.datas, strict=True)
    ]
    tried, forms = [], list(product((PLAIN, FREE), zip(*heads, strict=True)))
    for done, (loss, starts) in enumerate(forms):
        shape = START_SHAPE if loss is FREE else ()
        options = {"config": config, "progress": shifted(request.progress, done, len(forms))}
        own = [np.concatenate([start, shape]) for start in starts]
        tried.append(train_datasets(batches, loss=loss, heads=own, **request.training | options))
    best = [min(each, key=_held_out_loss) for each in zip(*tried, strict=True)]
    parts = zip(best, batches, request.scalings, strict=True)
    assert config.folds is not None
    return [calibrated(*each, config.folds) for each in parts]


def _held_out_loss(members: Members) -> float:
    """The mean over selected and unselected units, under members that held them out."""
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
    # the projection of x'beta on the columns of w, which mostly include those of x
    beta = np.linalg.lstsq(batch.w, batch.x @ linear.beta, rcond=None)[0]
    return [
        np.concatenate([gamma / root - theta * beta, [np.log(linear.sigma), kappa, theta]])
        for theta in (seen * kappa for seen in STARTS)
    ]


def calibrated(members: Members, batch: Batch, scaling: DataScale, folds: int) -> OutcomeEnsemble:
    """The ensemble with the level of the noise that maximises the likelihood of held-out selected
    units, given that they were selected."""
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
    per_unit = batch.weight @ batch.selected * np.log(unit)  # for y on its original scale
    info = SelectionInfo(
        rho=(load / np.sqrt(1 + load**2)).tolist(),
        sigma=(unit * sd).tolist(),
        training_loss=(members.loss + per_unit).tolist(),
        validation_loss=(np.asarray(members.validation) + per_unit).tolist(),
        held_out_loss=value + float(np.log(unit)),
        best_epoch=np.asarray(members.best_epoch).tolist(),
        noise="constant" if members.sizes[-1] == 1 else "varying",
        outcome_seen=float(np.mean(shape.theta) / np.mean(shape.kappa)),
    )
    return OutcomeEnsemble(members, scaling, level, info)
