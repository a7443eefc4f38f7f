"""Corrected ensembles of user-defined networks, for example for images, text or graphs."""

from dataclasses import replace

import torch

from heckesel.data import SelectionData
from heckesel.errors import DataError, is_one_of
from heckesel.methods.heckman_joint import two_headed
from heckesel.methods.heckman_two_step import corrected, first_step
from heckesel.networks.ensembles.selection_ensemble import SelectionEnsemble
from heckesel.networks.losses.normal import BLIND, JOINT, TWO_STEP
from heckesel.networks.training.batches import data_scale_of, joint_rows
from heckesel.networks.training.config import NetworkConfig
from heckesel.networks.training.loop import Progress
from heckesel.networks.training.own_modules import MakeNet, train_modules

LOSSES = {"two-step": TWO_STEP, "joint": JOINT, "blind": BLIND}


def fit(
    make_net: MakeNet,
    inputs,
    data: SelectionData,
    *,
    seed: int,
    method: str = "two-step",
    config: NetworkConfig | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> SelectionEnsemble:
    """An ensemble of user-defined modules instead of perceptrons; `predict` then takes inputs like
    these.

    make_net : seed -> module from a batch (b, ...) to (b, 1); inputs : (n, ...), one for each
    unit of `data`, whose x is not used. Inputs are not standardised; y and w are.
    """
    if not is_one_of(method, LOSSES):
        raise DataError(f"method must be one of {', '.join(LOSSES)}, got {method!r}")
    inputs = torch.as_tensor(inputs)
    if len(inputs) != data.n:
        raise DataError(f"inputs have {len(inputs)} rows but there are {data.n} units")
    config, loss = config or NetworkConfig(), LOSSES[method]
    scaling = replace(data_scale_of(data, config.standardise), x_centre=None, x_scale=None)
    first = first_step(data, scaling) if method == "two-step" else None
    batch = joint_rows(data, scaling) if first is None else first.batch
    seen = inputs[torch.as_tensor(data.s)]
    options: dict = {"config": config, "units": data.n, "device": device, "progress": progress}
    members = train_modules(make_net, seen, batch, loss=loss, seed=seed, **options)
    if first is None:
        return two_headed(loss, members, batch, scaling)
    return corrected(members, members.outputs(seen)[..., 0], first)
