"""Deep ensemble: networks with a mean and a variance output, on the selected units alone."""

from dataclasses import replace

import numpy as np

from heckesel.fit_info import EnsembleInfo
from heckesel.networks.ensembles.noise_calibration import calibrated_shape, pairs_of, tailed_loss
from heckesel.networks.ensembles.selection_ensemble import GaussianEnsemble, output_variance
from heckesel.networks.losses.normal import GAUSSIAN
from heckesel.networks.training.batches import Batch, DataScale, held_out, outcome_rows
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.ensemble_training import (
    FitRequest,
    Members,
    best_of,
    train_datasets,
)


def fit_many(
    datas, *, seeds, config=None, device=None, progress=None, factors=None
) -> list[GaussianEnsemble]:
    """The ensemble for many datasets with the same columns, trained as one batch.

    factors : for each dataset (n,) numbers that multiply its weights
    """
    tried = FitRequest(datas, seeds, config or NetworkConfig(), device, progress).candidates()
    return best_of(tried, [_fit(request, factors or [1.0] * len(datas)) for request in tried])


def _fit(request: FitRequest, factors) -> list[GaussianEnsemble]:
    batches = request.batches(outcome_rows, factors)
    trained = train_datasets(batches, loss=GAUSSIAN, **request.training)
    parts = zip(trained, request.scalings, batches, strict=True)
    return [_ensemble(*each, request.config) for each in parts]


def _ensemble(
    members: Members, scaling: DataScale, batch: Batch, config: NetworkConfig
) -> GaussianEnsemble:
    """The ensemble; on folds, with the level of its sigma(x), and its tails, calibrated on held-out
    rows."""
    unit = np.log(scaling.y_scale)
    fitted = GaussianEnsemble(members, scaling, EnsembleInfo((members.loss + unit).tolist()))
    if config.folds is None:
        return fitted
    outputs = members.outputs(batch.x[:, :-1])
    out = held_out(batch.fold, len(outputs), config.folds)
    pairs = pairs_of(outputs[..., 0], np.sqrt(output_variance(outputs)), batch.weight, out)
    residual = batch.y[pairs.row] - pairs.mean

    def loss(level, df):
        return tailed_loss(residual, (level * pairs.noise_factor) ** 2 + pairs.doubt, df)

    found = calibrated_shape(loss, pairs, config.tails)
    info = replace(
        fitted.info,
        held_out_loss=found.loss + float(unit),
        sigma_level=found.level,
        best_epoch=np.asarray(members.best_epoch).tolist(),
        tail_df=found.df,
    )
    return replace(fitted, info=info, level=found.level, tail_df=found.df)
