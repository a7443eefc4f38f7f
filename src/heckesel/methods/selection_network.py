"""A selection index of networks, cross-fitted: the Mills term of a unit comes from members that did
not see whether it was selected, so the outcome network cannot read that off it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from heckesel.data import SelectionData
from heckesel.linear.probit import fit_probit
from heckesel.networks.losses.normal import PROBIT
from heckesel.networks.training.batches import Batch
from heckesel.networks.training.config import AUTO, NetworkConfig
from heckesel.networks.training.ensemble_training import Members, train_datasets
from heckesel.networks.training.folds import assign_folds, held_out
from heckesel.networks.training.layers import with_constant
from heckesel.networks.training.scaling import DataScale


@dataclass(frozen=True)
class CrossFitted:
    """members : networks on the scaled w, None where a probit is the index after all
    index : (n,) of each unit, by members without it, or by that probit

    losses : mean -log-likelihood of selection on held-out units, of networks ("network") and of
    a probit fitted without each fold ("linear"): the smaller one describes selection better
    """

    members: Members | None
    index: np.ndarray
    losses: dict[str, float]


def fit_indices(
    datas: Sequence[SelectionData],
    scalings: Sequence[DataScale],
    *,
    seeds: Sequence[int],
    config: NetworkConfig,
    device: str | None = None,
) -> list[CrossFitted]:
    """Indices for many datasets, trained as one batch on the folds that the outcome will have; of
    networks, or with selection "auto" of a probit where its loss is the smaller one."""
    folds = config.folds or config.n_members
    batches = [
        Batch(
            x=with_constant(scaling.w(data.w)),
            y=np.where(data.s, 1.0, -1.0),
            weight=data.weight / data.weight.sum(),
            fold=assign_folds(data, folds, seed),
        )
        for data, scaling, seed in zip(datas, scalings, seeds, strict=True)
    ]
    units = max(data.n for data in datas)
    trained = train_datasets(
        batches, loss=PROBIT, seeds=seeds, config=config, units=units, device=device
    )
    found = [_crossed(*pair, folds) for pair in zip(trained, batches, strict=True)]
    if config.selection != AUTO:
        return found
    return [_preferred(*pair) for pair in zip(found, batches, strict=True)]


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
