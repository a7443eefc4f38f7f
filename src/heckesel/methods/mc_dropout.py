"""MC dropout: one network with random dropout in training and in prediction."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from heckesel.fit_info import EnsembleInfo
from heckesel.networks.ensembles.selection_ensemble import predict_two_outputs
from heckesel.networks.losses.normal import GAUSSIAN
from heckesel.networks.training.batches import DataScale, outcome_rows, with_constant
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.dropout import dropout_masks, dropout_seeds
from heckesel.networks.training.ensemble_training import FitRequest, Members, train_datasets
from heckesel.networks.training.steps import forward, layer_views
from heckesel.predictive import Predictive, check_target

RATE = 0.1
PASSES = 64
# Rows predicted at once: 64 passes over 256 rows hold 4 MB of activations, which stay in the
# cache of a CPU; a GPU needs larger ones.
PREDICTED_AT_ONCE = {"cpu": 256, "gpu": 8192}


@dataclass(frozen=True)
class DropoutNetwork:
    """One trained network, whose predictions average over PASSES random dropout masks.

    seed : of the masks, which are the same in every call
    """

    members: Members
    scaling: DataScale
    seed: int
    info: EnsembleInfo

    def predict(self, x, w=None, target: str = "population") -> Predictive:
        """Moments over the passes; missing at random is assumed, so all targets are the same."""
        check_target(target)
        outputs = self._outputs(self.scaling.x(x))
        return predict_two_outputs(outputs, self.scaling)

    def _outputs(self, x):
        """(PASSES, m, 2). A pass uses one mask for all rows, so that the prediction at a point
        does not depend on the other points."""
        members, hidden = self.members, self.members.sizes[1:-1]
        block = torch.as_tensor(members.parameters, device=members.device).expand(PASSES, -1)
        layers = layer_views(block, members.sizes)
        thin = dropout_masks(dropout_seeds([self.seed], PASSES), 1, hidden, RATE, like=block)()
        x, parts = with_constant(x), []
        at_once = PREDICTED_AT_ONCE["cpu" if block.device.type == "cpu" else "gpu"]
        for first in range(0, max(len(x), 1), at_once):
            part = torch.as_tensor(x[first : first + at_once]).to(block)
            masks = [mask.expand(-1, len(part), -1) for mask in thin]
            parts.append(forward(part.expand(PASSES, -1, -1), layers, masks=masks).cpu().numpy())
        return np.concatenate(parts, axis=1).astype(float)


def fit_many(datas, *, seeds, config=None, device=None, progress=None) -> list[DropoutNetwork]:
    """One dropout network per dataset, trained as one batch; `config.n_members` is not used."""
    config = replace(config or NetworkConfig(), n_members=1)
    request = FitRequest(datas, seeds, config, device, progress)
    batches = list(map(outcome_rows, datas, request.scalings))  # without folds
    trained = train_datasets(batches, loss=GAUSSIAN, dropout=RATE, **request.training)
    infos = [
        EnsembleInfo((members.loss + np.log(scaling.y_scale)).tolist())
        for members, scaling in zip(trained, request.scalings, strict=True)
    ]
    seeds = map(int, seeds)
    return list(map(DropoutNetwork, trained, request.scalings, seeds, infos))
