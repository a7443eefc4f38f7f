"""Deep two-step: a classic probit, then an ensemble for f(x) + c lambda on the selected units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from heckesel.data import SelectionData
from heckesel.errors import DataError
from heckesel.linear.probit import selection_probit
from heckesel.linear.wald import instruments_are_strong
from heckesel.methods.selection_network import CrossFitted, fit_indices
from heckesel.methods.two_step_on_folds import fit_on_folds
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble
from heckesel.networks.losses.normal import TWO_STEP
from heckesel.networks.training.batches import Batch, with_mills
from heckesel.networks.training.choices import best_of
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import Members, outcome_rows, train_datasets
from heckesel.networks.training.folds import with_folds
from heckesel.networks.training.layers import with_constant
from heckesel.networks.training.loop import Progress
from heckesel.networks.training.own_modules import ModuleMembers
from heckesel.networks.training.scaling import DataScale, data_scale_of


def fit_many(
    datas: Sequence[SelectionData],
    *,
    seeds: Sequence[int],
    config: NetworkConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[SelectionEnsemble]:
    """The deep two-step for many datasets with the same columns, trained as one batch; with
    `config.folds` as `two_step_on_folds` has it."""
    config = config or NetworkConfig()
    if config.errors != "normal":
        raise DataError('the two-step has normal errors; take the joint likelihood for errors="t"')
    return best_of(config, partial(_fit_many, datas, seeds, device), progress)


def _fit_many(datas, seeds, device, config, progress):
    scalings = [data_scale_of(data, config.standardise) for data in datas]
    indices: Sequence[CrossFitted | None] = [None] * len(datas)
    if config.selection != "linear":
        indices = fit_indices(datas, scalings, seeds=seeds, config=config, device=device)
    prepared = [
        first_step(data, scaling, folds=config.folds, seed=seed, index=index)
        for data, scaling, seed, index in zip(datas, scalings, seeds, indices, strict=True)
    ]
    train = partial(
        train_datasets,
        seeds=seeds,
        units=max(data.n for data in datas),
        device=device,
        progress=progress,
    )
    if config.folds is None:
        trained = train([each.batch for each in prepared], loss=TWO_STEP, config=config)
        place = device or config.device
        return [
            corrected(members, members.on(place).outputs(each.batch.x[:, :-1])[..., 0], each)
            for members, each in zip(trained, prepared, strict=True)
        ]
    fits = fit_on_folds(prepared, train, config, config.folds)
    return [
        fit.reporting_sigma_of(data.x, data.weight) for fit, data in zip(fits, datas, strict=True)
    ]


@dataclass(frozen=True)
class FirstStep:
    """What the second step needs: its rows with the Mills term, and the probit behind it.

    gamma : (q + 1,) for w as given, the constant last
    strong : whether instruments move selection, which is asked with folds only
    """

    batch: Batch
    scaling: DataScale
    gamma: np.ndarray
    strong: bool
    networks: CrossFitted | None = None


def first_step(
    data: SelectionData,
    scaling: DataScale,
    *,
    folds: int | None = None,
    seed: int = 0,
    index: CrossFitted | None = None,
) -> FirstStep:
    """A classic probit of s on w and a constant, in float64, or `index` in its place; with `folds`,
    the folds of the units."""
    gamma = selection_probit(data).gamma
    at = with_constant(data.w[data.s]) @ gamma if index is None else index.index[data.s]
    batch = with_mills(outcome_rows(data, scaling), at)
    strong = folds is not None and instruments_are_strong(data)
    return FirstStep(with_folds(batch, data, folds, seed), scaling, gamma, strong, index)


def corrected(members: Members | ModuleMembers, f, first: FirstStep) -> SelectionEnsemble:
    """The ensemble in units of y; f : (k, n) its outputs at the selected rows."""
    c = members.head[:, 0].astype(float)
    sigma = corrected_sigma(f, c, first.batch)
    return in_units_of_y(members, sigma, first.scaling, first.gamma)


def in_units_of_y(members, sigma, scaling: DataScale, gamma) -> SelectionEnsemble:
    """The ensemble; sigma : (k,) for the scaled y; gamma : (q + 1,) for w as given."""
    unit = scaling.y_scale
    c = members.head[:, 0].astype(float)
    return SelectionEnsemble(
        members=members,
        scaling=scaling,
        sigma=unit * sigma,
        covariance=unit * c,
        gamma=gamma[None],
        info={
            "rho": (c / sigma).tolist(),
            "sigma": (unit * sigma).tolist(),
            "training_loss": (members.loss + np.log(unit)).tolist(),
        },
    )


def corrected_sigma(f, c, batch: Batch) -> np.ndarray:
    r"""(k,) sd of the population error: selection takes :math:`c^2\delta` off the variance of y,

    .. math:: \sigma^2 = \mathrm{mean}\,(y - f - c\lambda)^2 + c^2\,\mathrm{mean}\,\delta .

    f : (k, n) at the selected rows; c : (k,). Means are weighted as the rows are.
    """
    residual = batch.y - f - c[:, None] * batch.mills
    return np.sqrt((residual**2) @ batch.weight + c**2 * (batch.delta @ batch.weight))
