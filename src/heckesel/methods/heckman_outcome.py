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
from heckesel.networks.ensembles.noise_calibration import judged_level, pairs_of
from heckesel.networks.ensembles.outcome_ensemble import (
    OutcomeEnsemble,
    index_beside_y,
    mean_and_sigma,
    shape_of,
)
from heckesel.networks.losses.outcome_selection import FREE, PLAIN, START_SHAPE
from heckesel.networks.training.batches import Rows
from heckesel.networks.training.choices import best_of
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import Members, train_cells
from heckesel.networks.training.folds import assign_folds, left_out
from heckesel.networks.training.layers import with_constant
from heckesel.networks.training.loop import Progress, shifted
from heckesel.networks.training.scaling import Scaling, scaling_of
from heckesel.numerics.normal import HALF_LOG_2PI

# theta over kappa at the start: selection sees what is unusual, or the outcome. Members end before
# they have gone all the way from one to the other.
STARTS = (0.0, 1.0)


def fit(
    data: SelectionData,
    *,
    seed: int,
    config: NetworkConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> OutcomeEnsemble:
    """The model for one cell."""
    return fit_many([data], seeds=[seed], config=config, device=device, progress=progress)[0]


def fit_many(
    datas: Sequence[SelectionData],
    *,
    seeds: Sequence[int],
    config: NetworkConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[OutcomeEnsemble]:
    """The model for many cells with the same columns, trained as one batch. Units left out choose
    between its two forms and the starts; `config.noise` and `config.tails` are not asked."""
    config = config or NetworkConfig(folds=5)
    if config.errors != "normal":
        raise DataError('this likelihood finds the shape of its errors; take errors="normal"')
    if config.folds is None:
        raise DataError("this likelihood is judged on folds; set folds, say to 5")
    return best_of(config, partial(_fit_many, datas, seeds, device), progress)


def _fit_many(datas, seeds, device, config, progress) -> list[OutcomeEnsemble]:
    scalings = [scaling_of(data, config.standardise) for data in datas]
    cells = [
        replace(every_row(data, scaling), fold=assign_folds(data, config.folds, seed))
        for data, scaling, seed in zip(datas, scalings, seeds, strict=True)
    ]
    heads = [
        classic_heads(cell, instruments_are_strong(data))
        for cell, data in zip(cells, datas, strict=True)
    ]
    tried, forms = [], list(product((PLAIN, FREE), zip(*heads, strict=True)))
    for done, (loss, starts) in enumerate(forms):
        shape = START_SHAPE if loss is FREE else ()
        tried.append(
            train_cells(
                cells,
                loss=loss,
                seeds=seeds,
                config=replace(config, warm_up=0),
                heads=[np.concatenate([start, shape]) for start in starts],
                units=max(data.n for data in datas),
                device=device,
                progress=shifted(progress, done, len(forms)),
            )
        )
    best = [min(each, key=_loss_left_out) for each in zip(*tried, strict=True)]
    judge = partial(judged, folds=config.folds)
    return [judge(*each) for each in zip(best, cells, scalings, strict=True)]


def _loss_left_out(members: Members) -> float:
    """Of selected and unselected units, under members that did without them."""
    return float(np.mean(np.asarray(members.validation)))


def every_row(data: SelectionData, scaling: Scaling) -> Rows:
    """Selected and unselected units, in the order of the data."""
    return Rows(
        x=with_constant(scaling.x(data.x)),
        y=np.where(data.s, scaling.y(np.where(data.s, data.y, 0.0)), 0.0),
        weight=data.weight / data.weight.sum(),
        w=with_constant(scaling.w(data.w)),
        selected=data.s.astype(float),
    )


def classic_heads(cell: Rows, strong: bool) -> list[np.ndarray]:
    r"""(h,) for each of STARTS: the linear model on the same rows in the parameters of this one,
    :math:`\kappa = \rho/(\sigma\sqrt{1-\rho^2})`, and gamma such that
    :math:`w'\gamma + \theta x'\beta` is :math:`\sqrt{1+\kappa^2\sigma^2}` times the index of a
    probit."""
    s = cell.selected > 0
    apart = Rows(
        x=cell.x[s],
        y=cell.y[s],
        weight=cell.weight[s],
        w=cell.w[s],
        w_unselected=cell.w[~s],
        weight_unselected=cell.weight[~s],
    )
    gamma, linear = linear_start_of_both(apart, strong)
    root = np.sqrt(1 - linear.rho**2)
    kappa = linear.rho / (linear.sigma * root)
    # x'beta as far as columns of w have it, which mostly are those of x and more
    beta = np.linalg.lstsq(cell.w, cell.x @ linear.beta, rcond=None)[0]
    return [
        np.concatenate([gamma / root - theta * beta, [np.log(linear.sigma), kappa, theta]])
        for theta in (seen * kappa for seen in STARTS)
    ]


def judged(members: Members, cell: Rows, scaling: Scaling, folds: int) -> OutcomeEnsemble:
    """The ensemble with the level of its noise that makes selected units left out likeliest, given
    that they were selected."""
    shape = shape_of(members)
    mean, sigma = mean_and_sigma(members, shape, cell.x[:, :-1])
    pairs = pairs_of(
        mean, sigma, cell.weight * cell.selected, left_out(cell.fold, len(mean), folds)
    )
    own = pairs.member
    index = index_beside_y(shape, shape.gamma @ cell.w.T, mean, sigma)[own, pairs.row]
    y, kappa = cell.y[pairs.row], shape.kappa[own]
    log_share, (shift, width) = np.log(shape.share[own]), (shape.shift[own], shape.width[own])

    def loss(level):
        noise = level * pairs.spread[:, None]
        centre = pairs.mean[:, None] + noise * shift
        variance = (noise * width) ** 2 + pairs.doubt[:, None]
        square = (y[:, None] - centre) ** 2 / variance
        density = logsumexp(log_share - 0.5 * (square + np.log(variance)), axis=1) - HALF_LOG_2PI
        lean = index[:, None] + kappa[:, None] * centre
        share = np.exp(log_share) * ndtr(lean / np.sqrt(1 + kappa[:, None] ** 2 * variance))
        return np.log(share.sum(axis=1)) - density - log_ndtr(index + kappa * y)

    level, value = judged_level(loss, pairs.weight)
    sd = level * np.sqrt(shape.variance * (sigma**2 @ cell.weight))  # over all units
    load = shape.kappa * sd
    unit = scaling.y_scale
    per_unit = cell.weight @ cell.selected * np.log(unit)  # of y as it is given
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
