"""A cross-fitted selection index of networks. The inverse Mills ratio of a unit comes from members
that were trained without it, so that it does not reveal whether the unit was selected.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from heckesel.classical.probit import fit_probit
from heckesel.data import SelectionData
from heckesel.networks.losses.normal import PROBIT
from heckesel.networks.training.batches import Batch, DataScale, held_out, with_constant
from heckesel.networks.training.config import AUTO
from heckesel.networks.training.ensemble_training import FitRequest, Members, train_datasets


@dataclass(frozen=True)
class CrossFitted:
    """members : networks on the scaled w, or None if a probit was preferred
    index : (n,) of each unit, by members that held it out, or by that probit

    losses : minus the mean log-likelihood of the selection of held-out units, for networks
    ("network") and for a probit fitted without each fold ("linear")
    """

    members: Members | None
    index: np.ndarray
    losses: dict[str, float]


def fit_indices(request: FitRequest) -> list[CrossFitted]:
    """Indices for many datasets, trained as one batch on the folds of the outcome networks. With
    selection "auto" the index is that of a probit if its held-out loss is smaller."""
    folds, batches = request.config.folds, request.batches(selection_rows)
    assert folds is not None  # checked by NetworkConfig
    trained = train_datasets(batches, loss=PROBIT, **request.training | {"progress": None})
    found = [_crossed(*pair, folds) for pair in zip(trained, batches, strict=True)]
    if request.config.selection != AUTO:
        return found
    return [_preferred(*pair) for pair in zip(found, batches, strict=True)]


def selection_rows(data: SelectionData, scaling: DataScale) -> Batch:
    """All units, with y = 1 if a unit was selected and -1 if not."""
    return Batch(
        x=with_constant(scaling.w(data.w)),
        y=np.where(data.s, 1.0, -1.0),
        weight=data.weight / data.weight.sum(),
    )


def _preferred(networks: CrossFitted, batch: Batch) -> CrossFitted:
    if networks.losses["network"] < networks.losses["linear"]:
        return networks
    gamma = fit_probit(batch.x, batch.y > 0, batch.weight * len(batch.y)).gamma
    return replace(networks, members=None, index=batch.x @ gamma)


def _crossed(members: Members, batch: Batch, folds: int) -> CrossFitted:
    outputs = members.outputs(batch.x[:, :-1])[..., 0]  # (k, n)
    out = held_out(batch.fold, len(outputs), folds)
    index = np.where(out, outputs, 0.0).sum(axis=0) / out.sum(axis=0)
    linear = np.empty_like(index)
    for j in range(folds):
        own = batch.fold == j
        kept = fit_probit(batch.x[~own], batch.y[~own] > 0, batch.weight[~own] * len(own))
        linear[own] = batch.x[own] @ kept.gamma
    losses = {
        name: float(-(batch.weight @ log_ndtr(batch.y * values)))
        for name, values in (("linear", linear), ("network", index))
    }
    return CrossFitted(members, index, losses)
