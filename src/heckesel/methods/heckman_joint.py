"""Deep joint likelihood: outcome network, linear selection head, sigma and rho fitted at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heckesel.data import SelectionData
from heckesel.deep.cells import Members, all_rows, train_cells
from heckesel.deep.config import NetworkConfig
from heckesel.deep.custom import ModuleMembers
from heckesel.deep.ensemble import SelectionEnsemble
from heckesel.deep.losses import JOINT, Loss
from heckesel.deep.rows import Rows
from heckesel.deep.scaling import Scaling, scaling_of
from heckesel.deep.train import Progress


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
    datas, loss: Loss, *, seeds, config=None, starts=None, device=None, progress=None
) -> list[SelectionEnsemble]:
    """Ensembles for a loss with a linear selection head; the head ends in log sigma and, where
    the loss has it, atanh rho."""
    config = config or NetworkConfig()
    scalings = [scaling_of(data, config.standardise) for data in datas]
    cells = [all_rows(data, scaling) for data, scaling in zip(datas, scalings, strict=True)]
    trained = train_cells(
        cells,
        loss=loss,
        seeds=seeds,
        config=config,
        units=max(data.n for data in datas),
        starts=starts,
        device=device,
        progress=progress,
    )
    return [two_headed(loss, *parts) for parts in zip(trained, cells, scalings, strict=True)]


def two_headed(
    loss: Loss, members: Members | ModuleMembers, cell: Rows, scaling: Scaling
) -> SelectionEnsemble:
    """The ensemble in units of y and w."""
    head = members.head.astype(float)
    split = head.shape[1] - len(loss.scalars)
    scalars = dict(zip(loss.scalars, head[:, split:].T, strict=True))
    sigma = scaling.y_scale * np.exp(scalars["log_sigma"])
    rho = np.tanh(scalars.get("atanh_rho", np.zeros(len(head))))
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
        },
    )
