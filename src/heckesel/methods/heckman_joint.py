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
    Calibration,
    calibrated_shape,
    calibrated_tails,
    joint_loss,
    pairs_of,
    student_loss,
)
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble, noise_factor_of
from heckesel.networks.losses.normal import JOINT, JOINT_VARYING, Loss
from heckesel.networks.losses.student import JOINT_STUDENT, degrees_of_freedom
from heckesel.networks.training.batches import Batch
from heckesel.networks.training.choices import best_of
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import Members, joint_rows, train_datasets
from heckesel.networks.training.folds import held_out, with_folds
from heckesel.networks.training.loop import Progress
from heckesel.networks.training.own_modules import ModuleMembers
from heckesel.networks.training.scaling import DataScale, data_scale_of

# log 8: ten degrees of freedom, heavier than normal and a little away from it.
START_LOG_EXTRA_DF = 2.08


def fit_many(
    datas: Sequence[SelectionData],
    loss: Loss = JOINT,
    *,
    seeds: Sequence[int],
    config: NetworkConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[SelectionEnsemble]:
    """Ensembles for many datasets with the same columns, trained as one batch.

    loss : has a linear selection head, which ends in log sigma and, where there is one, atanh rho
    """
    return best_of(
        config or NetworkConfig(), partial(_fit_many, datas, loss, seeds, device), progress
    )


def _fit_many(datas, loss, seeds, device, config, progress):
    if loss is JOINT and config.errors == "t":
        loss = JOINT_STUDENT
    if config.selection != "linear":
        raise DataError('the joint likelihood has a linear index; take the two-step for "network"')
    scalings = [data_scale_of(data, config.standardise) for data in datas]
    batches = [
        with_folds(joint_rows(data, scaling), data, config.folds, seed)
        for data, scaling, seed in zip(datas, scalings, seeds, strict=True)
    ]
    train = partial(
        train_datasets,
        batches,
        seeds=seeds,
        units=max(data.n for data in datas),
        device=device,
        progress=progress,
    )
    if config.folds is None:
        trained = train(loss=loss, config=config, starts=starts_of(loss, config))
        return [two_headed(loss, *parts) for parts in zip(trained, batches, scalings, strict=True)]
    strong = [instruments_are_strong(data) for data in datas]
    fits = []
    for noise in config.noises if loss is JOINT else ("constant",):
        own = JOINT_VARYING if noise == "varying" else loss
        heads = [
            classic_head(batch, own, each) for batch, each in zip(batches, strong, strict=True)
        ]
        # Heads start at classic estimates; a warm-up would only be something to end in.
        trained = train(loss=own, config=replace(config, warm_up=0), heads=heads)
        fits.append(
            [
                calibrated(own, *parts, config.folds, config.tails)
                for parts in zip(trained, batches, scalings, strict=True)
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


def classic_head(batch: Batch, loss: Loss, strong: bool) -> np.ndarray:
    """(h,) where the heads start: gamma of a probit, log sigma and, where the loss has it, atanh
    rho of the linear model on the same rows; strong : whether instruments move selection."""
    gamma, linear = linear_start_of_both(batch, strong)
    start = {
        "log_sigma": np.log(linear.sigma),
        "log_extra_df": START_LOG_EXTRA_DF,
        "atanh_rho": np.arctanh(linear.rho),
    }
    return np.concatenate([gamma, [start[name] for name in loss.scalars]])


def calibrated(
    loss: Loss, members: Members, batch: Batch, scaling: DataScale, folds: int, tails: str
) -> SelectionEnsemble:
    """The ensemble with the level of sigma, and the tails, calibrated by the joint likelihood of
    held-out rows."""
    fitted = two_headed(loss, members, batch, scaling)
    rho = np.array(fitted.info["rho"])
    gamma = members.head.astype(float)[:, : batch.w.shape[1]]
    outputs = members.outputs(batch.x[:, :-1])
    noise_factor = (
        noise_factor_of(outputs[..., 1]) if loss.outputs == 2 else np.ones(outputs.shape[:2])
    )
    out = held_out(batch.fold, len(outputs), folds)
    pairs = pairs_of(outputs[..., 0], noise_factor, batch.weight, out)
    index = (batch.w[pairs.row] * gamma[pairs.member]).sum(axis=1)
    y, rho_of = batch.y[pairs.row], rho[pairs.member]
    if fitted.df is None:
        found = calibrated_shape(
            lambda level, df: joint_loss(y, level, rho_of, index, pairs, df), pairs, tails
        )
        fitted = replace(fitted, tail_df=found.df, info=fitted.info | found.info)
    else:
        level, common, value = calibrated_tails(
            lambda level, df: student_loss(y, level, rho_of, index, df, pairs), pairs.weight
        )
        found, df = Calibration(level, common, value), np.full(len(rho), common)
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
    loss: Loss, members: Members | ModuleMembers, batch: Batch, scaling: DataScale
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
    in_units_of_y = batch.weight.sum() * np.log(scaling.y_scale)
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
