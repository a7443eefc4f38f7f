"""Deep joint likelihood: outcome network, linear selection head, sigma and rho fitted at once."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from heckesel.classical.probit import instruments_are_strong
from heckesel.errors import DataError
from heckesel.fit_info import SelectionInfo
from heckesel.math.student_torch import degrees_of_freedom
from heckesel.methods.heckman_two_step import linear_start_of_both, preferred_noise
from heckesel.methods.parts.joint_form import ensemble_of
from heckesel.networks.ensembles.form_ensemble import FormEnsemble
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
from heckesel.networks.losses.student import JOINT_STUDENT
from heckesel.networks.rho.form_profile import ErrorModel
from heckesel.networks.training.batches import Batch, DataScale, held_out, joint_rows
from heckesel.networks.training.config import SHAPE, NetworkConfig
from heckesel.networks.training.ensemble_training import (
    FitRequest,
    Members,
    best_of,
    train_datasets,
)
from heckesel.networks.training.own_modules import ModuleMembers
from heckesel.networks.training.streamed import RowsOnDisk, train_streamed

# log 8: ten degrees of freedom, heavier than normal and a little away from it.
START_LOG_EXTRA_DF = 2.08


def fit_many(
    datas, loss: Loss = JOINT, *, seeds, config=None, device=None, progress=None
) -> list[SelectionEnsemble] | list[FormEnsemble]:
    """Ensembles for many datasets with the same columns, trained as one batch.

    loss : has a linear selection head, which ends in log sigma and, where there is one, atanh rho
    """
    tried = FitRequest(datas, seeds, config or NetworkConfig(), device, progress).candidates()
    return best_of(tried, [_fit(request, loss) for request in tried])


def _fit(request: FitRequest, loss: Loss) -> list[SelectionEnsemble] | list[FormEnsemble]:
    config, datas, batches = request.config, request.datas, request.batches()
    if loss is JOINT and config.has_form:
        return _fit_form(request, batches)
    if loss is JOINT and config.errors == "t":
        loss = JOINT_STUDENT
    if config.selection != "linear":
        raise DataError(f'selection="{config.selection}" needs method="two-step"')
    if config.folds is None:
        trained = train_datasets(
            batches, loss=loss, starts=starts_of(loss, config), **request.training
        )
        parts = zip(trained, batches, request.scalings, strict=True)
        return [two_headed(loss, *each) for each in parts]
    strong = [instruments_are_strong(data) for data in datas]
    fits = []
    for noise in config.noises if loss is JOINT else ("constant",):
        own = JOINT_VARYING if noise == "varying" else loss
        heads = [
            classic_head(batch, own, each) for batch, each in zip(batches, strong, strict=True)
        ]
        # Heads start at classic estimates. A warm-up is not needed, and members could stop
        # early during one.
        options = request.training | {"config": replace(config, warm_up=0)}
        trained = train_datasets(batches, loss=own, heads=heads, **options)
        parts = zip(trained, batches, request.scalings, strict=True)
        fits.append([calibrated(own, *each, config.folds, config.tails) for each in parts])
    return [
        preferred_noise(each).reporting_sigma_of(data.x, data.weight)
        for *each, data in zip(*fits, datas, strict=True)
    ]


def _fit_form(request: FitRequest, batches) -> list[FormEnsemble]:
    """The same with sinh-arcsinh errors, or a sigma that depends on x."""
    config, datas = request.config, request.datas
    errors, heads = ErrorModel(config.errors == SHAPE, config.scale), None
    if config.folds is not None:  # as in `_fit`
        config = replace(config, warm_up=0)
        heads = [
            classic_head(batch, errors.loss, instruments_are_strong(data))
            for batch, data in zip(batches, datas, strict=True)
        ]
    trained = train_datasets(
        batches, loss=errors.loss, heads=heads, **request.training | {"config": config}
    )
    parts = zip(trained, batches, request.scalings, datas, strict=True)
    return [ensemble_of(errors, *each, config.folds) for each in parts]


def starts_of(loss: Loss, config: NetworkConfig) -> dict[str, list[float]]:
    """Initial values of scalars of the loss that do not start at zero, one for each member."""
    if "log_extra_df" not in loss.scalars:
        return {}
    return {"log_extra_df": [START_LOG_EXTRA_DF] * config.n_members}


def classic_head(batch: Batch, loss: Loss, strong: bool) -> np.ndarray:
    """(h,) where the heads start: gamma of a probit, log sigma and, where the loss has it, atanh
    rho of the linear model on the same rows; strong : whether the instruments are strong."""
    gamma, linear = linear_start_of_both(batch, strong)
    start = {
        "log_sigma": np.log(linear.sigma),
        "log_extra_df": START_LOG_EXTRA_DF,
        "atanh_rho": np.arctanh(linear.rho),
    }
    return np.concatenate([gamma, [start.get(name, 0.0) for name in loss.scalars]])


def calibrated(
    loss: Loss, members: Members, batch: Batch, scaling: DataScale, folds: int, tails: str
) -> SelectionEnsemble:
    """The ensemble with the level of sigma and the tails that maximise the joint likelihood of
    held-out rows."""
    fitted = two_headed(loss, members, batch, scaling)
    rho = np.array(fitted.info.rho)
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
        fitted = replace(fitted, tail_df=found.df)
    else:
        level, common, value = calibrated_tails(
            lambda level, df: student_loss(y, level, rho_of, index, df, pairs), pairs.weight
        )
        found, df = Calibration(level, common, value), np.full(len(rho), common)
        fitted = replace(fitted, df=df)
    sigma = np.full(len(rho), scaling.y_scale * found.level)
    info = replace(
        fitted.info,
        sigma=sigma.tolist(),
        df=None if fitted.df is None else fitted.df.tolist(),
        tail_df=fitted.tail_df,
        held_out_loss=found.loss + float(np.log(scaling.y_scale)),
        best_epoch=np.asarray(members.best_epoch).tolist(),
        noise="varying" if loss.outputs == 2 else "constant",
    )
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
    # The density of y is that of the scaled y divided by its scale, for the selected units.
    in_units_of_y = batch.weight.sum() * np.log(scaling.y_scale)
    return SelectionEnsemble(
        members=members,
        scaling=scaling,
        sigma=sigma,
        covariance=rho * sigma,
        gamma=scaling.unscale_gamma(head[:, :split]),
        info=SelectionInfo(
            rho=rho.tolist(),
            sigma=sigma.tolist(),
            training_loss=(members.loss + in_units_of_y).tolist(),
            df=None if df is None else df.tolist(),
        ),
        df=df,
    )


def fit_files(config: NetworkConfig) -> Callable[..., SelectionEnsemble]:
    """The fit to rows that are read again for every epoch, once `config` is checked."""
    if config.warm_up >= config.epochs:
        raise DataError(
            f"warm_up={config.warm_up} holds rho at 0 in all {config.epochs} epochs; an epoch of a "
            "long table has many steps, so set warm_up=1"
        )
    return partial(_fit_files, config=config)


def _fit_files(
    table: RowsOnDisk, scaling, gamma, mass, *, seed, config, run=map, progress=None
) -> SelectionEnsemble:
    """Both equations at once, with normal or t errors; gamma, run : not used."""
    loss = JOINT_STUDENT if config.errors == "t" else JOINT
    (members,) = train_streamed(
        table,
        partial(joint_rows, scaling=scaling, total=sum(mass)),
        loss=loss,
        seed=seed,
        config=config,
        starts=starts_of(loss, config),
        progress=progress,
    )
    share = Batch(x=None, y=None, weight=np.array([mass[0] / sum(mass)]))
    return two_headed(loss, members, share, scaling)
