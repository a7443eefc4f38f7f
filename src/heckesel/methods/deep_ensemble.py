"""Deep ensemble: networks with a mean and a variance output, on the selected units alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from heckesel.data import SelectionData
from heckesel.networks.ensembles.noise_calibration import calibrated_shape, pairs_of, tailed_loss
from heckesel.networks.ensembles.selection_ensemble import GaussianEnsemble, output_variance
from heckesel.networks.losses.normal import GAUSSIAN
from heckesel.networks.training.batches import Batch
from heckesel.networks.training.choices import best_of
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import Members, outcome_rows, train_datasets
from heckesel.networks.training.folds import held_out, with_folds
from heckesel.networks.training.loop import Progress
from heckesel.networks.training.scaling import DataScale, data_scale_of


def fit_many(
    datas: Sequence[SelectionData],
    *,
    seeds: Sequence[int],
    config: NetworkConfig | None = None,
    factors: Sequence | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[GaussianEnsemble]:
    """The ensemble for many datasets with the same columns, trained as one batch.

    factors : for each dataset (n,) numbers that multiply its weights
    """
    factors = [1.0] * len(datas) if factors is None else factors
    fit = partial(_fit_gaussian, datas, seeds, factors, device)
    return best_of(config or NetworkConfig(), fit, progress)


def _fit_gaussian(datas, seeds, factors, device, config, progress):
    scalings = [data_scale_of(data, config.standardise) for data in datas]
    batches = [
        with_folds(outcome_rows(data, scaling, factor), data, config.folds, seed)
        for data, scaling, factor, seed in zip(datas, scalings, factors, seeds, strict=True)
    ]
    trained = train_datasets(
        batches,
        loss=GAUSSIAN,
        seeds=seeds,
        config=config,
        units=max(data.n for data in datas),
        device=device,
        progress=progress,
    )
    calibrate = _as_trained
    if config.folds is not None:
        calibrate = partial(_calibrated, folds=config.folds, tails=config.tails)
    return [calibrate(*parts) for parts in zip(trained, scalings, batches, strict=True)]


def _as_trained(members: Members, scaling: DataScale, batch: Batch) -> GaussianEnsemble:
    unit = np.log(scaling.y_scale)
    return GaussianEnsemble(members, scaling, {"training_loss": (members.loss + unit).tolist()})


def _calibrated(
    members: Members, scaling: DataScale, batch: Batch, folds: int, tails: str
) -> GaussianEnsemble:
    """The ensemble with the level of its sigma(x), and its tails, calibrated on held-out rows."""
    fitted = _as_trained(members, scaling, batch)
    outputs = members.outputs(batch.x[:, :-1])
    out = held_out(batch.fold, len(outputs), folds)
    pairs = pairs_of(outputs[..., 0], np.sqrt(output_variance(outputs)), batch.weight, out)
    residual = batch.y[pairs.row] - pairs.mean
    found = calibrated_shape(
        lambda level, df: tailed_loss(
            residual, (level * pairs.noise_factor) ** 2 + pairs.doubt, df
        ),
        pairs,
        tails,
    )
    calibrated = {
        "held_out_loss": found.loss + float(np.log(scaling.y_scale)),
        "sigma_level": found.level,
        "best_epoch": np.asarray(members.best_epoch).tolist(),
    }
    info = fitted.info | calibrated | found.info
    return replace(fitted, info=info, level=found.level, tail_df=found.df)
