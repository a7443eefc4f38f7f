"""The joint model with rho held at zero: what the second head does without the correlation."""

from __future__ import annotations

from collections.abc import Sequence

from heckesel.data import SelectionData
from heckesel.methods.heckman_joint import fit_two_heads
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble
from heckesel.networks.losses.normal import BLIND
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.loop import Progress


def fit_many(
    datas: Sequence[SelectionData],
    *,
    seeds: Sequence[int],
    config: NetworkConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[SelectionEnsemble]:
    """The blind model for many cells with the same columns, trained as one batch."""
    return fit_two_heads(datas, BLIND, seeds=seeds, config=config, device=device, progress=progress)
