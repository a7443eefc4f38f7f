"""The deep two-step and the joint likelihood on rows that are read again for every epoch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from heckesel.data import SelectionData
from heckesel.linear.sample.blocks import add_up
from heckesel.methods.heckman_joint import starts_of, two_headed
from heckesel.methods.heckman_two_step import in_units_of_y
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble
from heckesel.networks.losses.normal import JOINT, TWO_STEP
from heckesel.networks.losses.student import JOINT_STUDENT
from heckesel.networks.training.batches import Batch, with_mills
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import Members, joint_rows, outcome_rows
from heckesel.networks.training.layers import with_constant
from heckesel.networks.training.loop import Progress
from heckesel.networks.training.scaling import DataScale
from heckesel.networks.training.streamed import RowsOnDisk, train_streamed


def fit_two_step(
    table: RowsOnDisk,
    scaling: DataScale,
    gamma: np.ndarray,
    mass: tuple[float, float],
    *,
    seed: int,
    config: NetworkConfig,
    run: Callable = map,
    progress: Progress | None = None,
) -> SelectionEnsemble:
    """The second step after a probit with coefficients gamma (q + 1,), the constant last.

    mass : weights of the selected and of the unselected units, added up; run : a `map` for the
    last pass, which sums what sigma needs.
    """
    rows_of = partial(mills_rows, scaling=scaling, gamma=gamma, total=mass[0])
    members = train_streamed(
        table, rows_of, loss=TWO_STEP, seed=seed, config=config, progress=progress
    )
    c = members.head[:, 0].astype(float)
    task = partial(_residual_sums, read=table.read, rows_of=rows_of, members=members, c=c)
    squares, delta = add_up(run(task, table.items))
    return in_units_of_y(members, np.sqrt(squares + c**2 * delta), scaling, gamma)


def mills_rows(data: SelectionData, *, scaling: DataScale, gamma, total: float) -> Batch:
    """The selected units with the Mills term; weights are divided by `total`."""
    index = with_constant(data.w[data.s]) @ gamma
    return with_mills(outcome_rows(data, scaling, total=total), index)


def _residual_sums(item, *, read, rows_of, members: Members, c) -> list:
    """Weighted squares of residuals, (k,), and the weighted sum of delta: `corrected_sigma` of
    a whole table, one buffer after the other."""

    def sums(batch: Batch) -> tuple:
        f = members.outputs(batch.x[:, :-1])[..., 0]
        residual = batch.y - f - c[:, None] * batch.mills
        return residual**2 @ batch.weight, batch.delta @ batch.weight

    return add_up(sums(rows_of(data)) for data in read(item))


def fit_joint(
    table: RowsOnDisk,
    scaling: DataScale,
    mass: tuple[float, float],
    *,
    seed: int,
    config: NetworkConfig,
    progress: Progress | None = None,
) -> SelectionEnsemble:
    """Both equations at once, with normal or t errors."""
    loss = JOINT_STUDENT if config.errors == "t" else JOINT
    members = train_streamed(
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
