"""What all saved networks have: members and the scaling of their columns."""

from __future__ import annotations

from heckesel.networks.training.ensemble_training import Members
from heckesel.networks.training.layers import parameter_count
from heckesel.networks.training.scaling import DataScale
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_fields import Fields


def members_state(members) -> dict:
    return {"sizes": members.sizes, "theta": members.parameters, "loss": members.loss}


def members_from(state: Fields, inputs: int, outputs: tuple[int, ...] = (1,)) -> Members:
    sizes = state.items("sizes")
    if len(sizes) < 2 or not all(type(size) is int and size > 0 for size in sizes):
        raise Damage(f"has networks with layers {sizes!r:.40}")
    if sizes[0] != inputs or sizes[-1] not in outputs:
        raise Damage(f"has networks from {sizes[0]} to {sizes[-1]} numbers for {inputs} columns")
    parameters = state.array("theta", (None, None))
    if not len(parameters) or parameters.shape[1] < parameter_count(sizes):
        raise Damage(f"has {parameters.shape} weights for networks with layers {sizes!r:.40}")
    return Members(tuple(sizes), parameters, state.array("loss", (len(parameters),)))


def scaling_state(scaling: DataScale) -> dict:
    return {name: getattr(scaling, name) for name in DataScale.__dataclass_fields__}


def scaling_from(state: Fields, p: int, q: int) -> DataScale:
    return DataScale(
        x_centre=state.array("x_centre", (p,)),
        x_scale=state.array("x_scale", (p,), positive=True),
        w_centre=state.array("w_centre", (q,)),
        w_scale=state.array("w_scale", (q,), positive=True),
        y_centre=state.number("y_centre"),
        y_scale=state.number("y_scale", positive=True),
    )
