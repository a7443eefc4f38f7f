"""Deep ensemble: networks with a mean and a variance output, on the selected units alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heckesel.data import SelectionData
from heckesel.deep.cells import selected_rows, train_cells
from heckesel.deep.config import NetworkConfig
from heckesel.deep.ensemble import GaussianEnsemble
from heckesel.deep.losses import GAUSSIAN
from heckesel.deep.scaling import scaling_of
from heckesel.deep.train import Progress


def fit(
    data: SelectionData,
    *,
    seed: int,
    config: NetworkConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> GaussianEnsemble:
    """The ensemble for one cell."""
    return fit_many([data], seeds=[seed], config=config, device=device, progress=progress)[0]


def fit_many(
    datas: Sequence[SelectionData],
    *,
    seeds: Sequence[int],
    config: NetworkConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[GaussianEnsemble]:
    """The ensemble for many cells with the same columns, trained as one batch."""
    return fit_gaussian(datas, seeds=seeds, config=config, device=device, progress=progress)


def fit_gaussian(
    datas, *, seeds, config=None, factors=None, device=None, progress=None
) -> list[GaussianEnsemble]:
    """Two-output ensembles; factors : for each cell (n,) numbers that multiply its weights."""
    config = config or NetworkConfig()
    factors = [1.0] * len(datas) if factors is None else factors
    scalings = [scaling_of(data, config.standardise) for data in datas]
    cells = [selected_rows(*parts) for parts in zip(datas, scalings, factors, strict=True)]
    trained = train_cells(
        cells,
        loss=GAUSSIAN,
        seeds=seeds,
        config=config,
        units=max(data.n for data in datas),
        device=device,
        progress=progress,
    )
    return [
        GaussianEnsemble(
            members, scaling, {"training_loss": (members.loss + np.log(scaling.y_scale)).tolist()}
        )
        for members, scaling in zip(trained, scalings, strict=True)
    ]
