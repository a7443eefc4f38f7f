"""Deep joint likelihood: outcome network, linear selection head, sigma and rho fitted at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.linear.wald import instruments_are_strong
from heckesel.methods.linear_start import linear_start_of_both
from heckesel.methods.two_step_on_folds import preferred
from heckesel.networks.ensembles.noise_calibration import (
    Judged,
    joint_loss,
    judged_shape,
    judged_tails,
    pairs_of,
    student_loss,
)
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble, local_spread
from heckesel.networks.losses.normal import JOINT, JOINT_VARYING, Loss
from heckesel.networks.losses.student import JOINT_STUDENT, degrees_of_freedom
from heckesel.networks.training.batches import Rows
from heckesel.networks.training.choices import best_of
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import Members, all_rows, train_cells
from heckesel.networks.training.folds import left_out, with_folds
from heckesel.networks.training.loop import Progress
from heckesel.networks.training.own_modules import ModuleMembers
from heckesel.networks.training.scaling import Scaling, scaling_of

# log 8: ten degrees of freedom, heavier than normal and a little away from it.
START_LOG_EXTRA_DF = 2.08


def fit(
    data: SelectionData,
    *,
    seed: int,
    config: NetworkConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> SelectionEnsemble:
    """The joint model for one cell."""
    return fit_many([data], seeds=[seed], config=config, device=device, progress=progress)[0]


def fit_many(
    datas: Sequence[SelectionData],
    *,
    seeds: Sequence[int],
    config: NetworkConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[SelectionEnsemble]:
    """The joint model for many cells with the same columns, trained as one batch."""
    return fit_two_heads(datas, JOINT, seeds=seeds, config=config, device=device, progress=progress)


def fit_two_heads(
    datas, loss: Loss, *, seeds, config=None, device=None, progress=None
) -> list[SelectionEnsemble]:
    """Ensembles for a loss with a linear selection head; the head ends in log sigma and, where
    the loss has it, atanh rho."""
    fit_one = partial(_fit_two_heads, datas, loss, seeds, device)
    return best_of(config or NetworkConfig(), fit_one, progress)


def _fit_two_heads(datas, loss, seeds, device, config, progress):
    if loss is JOINT and config.errors == "t":
        loss = JOINT_STUDENT
    if config.selection != "linear":
        raise DataError('the joint likelihood has a linear index; take the two-step for "network"')
    scalings = [scaling_of(data, config.standardise) for data in datas]
    cells = [
        with_folds(all_rows(data, scaling), data, config.folds, seed)
        for data, scaling, seed in zip(datas, scalings, seeds, strict=True)
    ]
    train = partial(
        train_cells,
        cells,
        seeds=seeds,
        units=max(data.n for data in datas),
        device=device,
        progress=progress,
    )
    if config.folds is None:
        trained = train(loss=loss, config=config, starts=starts_of(loss, config))
        return [two_headed(loss, *parts) for parts in zip(trained, cells, scalings, strict=True)]
    strong = [instruments_are_strong(data) for data in datas]
    fits = []
    for noise in config.noises if loss is JOINT else ("constant",):
        own = JOINT_VARYING if noise == "varying" else loss
        heads = [classic_head(cell, own, each) for cell, each in zip(cells, strong, strict=True)]
        # Heads start at classic estimates; a warm-up would only be something to end in.
        trained = train(loss=own, config=replace(config, warm_up=0), heads=heads)
        fits.append(
            [
                judged(own, *parts, config.folds, config.tails)
                for parts in zip(trained, cells, scalings, strict=True)
            ]
        )
    return [
        preferred(each).reporting_sigma_of(data.x, data.weight)
        for *each, data in zip(*fits, datas, strict=True)
    ]


def starts_of(loss: Loss, config: NetworkConfig) -> dict[str, list[float]]:
    """Scalars of the loss that do not start at zero, a value for each member."""
    if "log_extra_df" not in loss.scalars:
        return {}
    return {"log_extra_df": [START_LOG_EXTRA_DF] * config.n_members}


def classic_head(cell: Rows, loss: Loss, strong: bool) -> np.ndarray:
    """(h,) where the heads start: gamma of a probit, log sigma and, where the loss has it, atanh
    rho of the linear model on the same rows; strong : whether instruments move selection."""
    gamma, linear = linear_start_of_both(cell, strong)
    start = {
        "log_sigma": np.log(linear.sigma),
        "log_extra_df": START_LOG_EXTRA_DF,
        "atanh_rho": np.arctanh(linear.rho),
    }
    return np.concatenate([gamma, [start[name] for name in loss.scalars]])


def judged(
    loss: Loss, members: Members, cell: Rows, scaling: Scaling, folds: int, tails: str
) -> SelectionEnsemble:
    """The ensemble with the level of sigma, and the tails, judged by the joint likelihood of rows
    left out."""
    fitted = two_headed(loss, members, cell, scaling)
    rho = np.array(fitted.info["rho"])
    gamma = members.head.astype(float)[:, : cell.w.shape[1]]
    outputs = members.outputs(cell.x[:, :-1])
    spread = local_spread(outputs[..., 1]) if loss.outputs == 2 else np.ones(outputs.shape[:2])
    out = left_out(cell.fold, len(outputs), folds)
    pairs = pairs_of(outputs[..., 0], spread, cell.weight, out)
    index = (cell.w[pairs.row] * gamma[pairs.member]).sum(axis=1)
    y, rho_of = cell.y[pairs.row], rho[pairs.member]
    if fitted.df is None:
        found = judged_shape(
            lambda level, df: joint_loss(y, level, rho_of, index, pairs, df), pairs, tails
        )
        fitted = replace(fitted, tail_df=found.df, info=fitted.info | found.info)
    else:
        level, common, value = judged_tails(
            lambda level, df: student_loss(y, level, rho_of, index, df, pairs), pairs.weight
        )
        found, df = Judged(level, common, value), np.full(len(rho), common)
        fitted = replace(fitted, df=df, info=fitted.info | {"df": df.tolist()})
    sigma = np.full(len(rho), scaling.y_scale * found.level)
    info = fitted.info | {
        "sigma": sigma.tolist(),
        "held_out_loss": found.loss + float(np.log(scaling.y_scale)),
        "best_epoch": np.asarray(members.best_epoch).tolist(),
        "noise": "varying" if loss.outputs == 2 else "constant",
    }
    return replace(fitted, sigma=sigma, covariance=rho * sigma, info=info)


def two_headed(
    loss: Loss, members: Members | ModuleMembers, cell: Rows, scaling: Scaling
) -> SelectionEnsemble:
    """The ensemble in units of y and w."""
    head = members.head.astype(float)
    split = head.shape[1] - len(loss.scalars)
    scalars = dict(zip(loss.scalars, head[:, split:].T, strict=True))
    sigma = scaling.y_scale * np.exp(scalars["log_sigma"])
    rho = np.tanh(scalars.get("atanh_rho", np.zeros(len(head))))
    df = None
    if "log_extra_df" in scalars:
        df = degrees_of_freedom(scalars["log_extra_df"])
    # The density of y is that of the scaled y over its scale, for the selected share of units.
    in_units_of_y = cell.weight.sum() * np.log(scaling.y_scale)
    return SelectionEnsemble(
        members=members,
        scaling=scaling,
        sigma=sigma,
        covariance=rho * sigma,
        gamma=scaling.unscale_gamma(head[:, :split]),
        info={
            "rho": rho.tolist(),
            "sigma": sigma.tolist(),
            "training_loss": (members.loss + in_units_of_y).tolist(),
        }
        | ({} if df is None else {"df": df.tolist()}),
        df=df,
    )
