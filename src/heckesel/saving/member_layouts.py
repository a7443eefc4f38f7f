"""The layouts that all fitted networks share: members, and the scaling of their columns."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from heckesel.saving.codec import Layout, Reader, Sizes, array, number
from heckesel.saving.model_file import Damage
from heckesel.saving.saved_fields import Fields

TRAINING = "heckesel.networks.training"


def part(layout: Layout) -> Reader:
    """An object inside another."""
    return lambda state, name, sizes: layout.read(
        state.inside(name), {each: sizes[each] for each in "pq"}
    )


def networks(inputs: str, *outputs: int) -> Reader:
    """Members from so many columns to so many numbers, by default one."""

    def read(state: Fields, name: str, sizes: Sizes):
        found = part(MEMBERS)(state, name, sizes)
        first, last = found.sizes[0], found.sizes[-1]
        if first != sizes[inputs] or last not in (outputs or (1,)):
            raise Damage(f"has networks from {first} to {last} numbers for {sizes[inputs]} columns")
        return found

    return read


def _layers(state: Fields, name: str, sizes: Sizes) -> tuple[int, ...]:
    found = state.items(name)
    if len(found) < 2 or not all(type(size) is int and size > 0 for size in found):
        raise Damage(f"has networks with layers {found!r:.40}")
    sizes["least weights"] = sum((low + 1) * high for low, high in pairwise(found))
    return tuple(found)


def _weights(state: Fields, name: str, sizes: Sizes) -> np.ndarray:
    found = array("k", "weights")(state, name, sizes)
    if not len(found) or found.shape[1] < sizes["least weights"]:
        raise Damage(f"has {found.shape} weights for networks with more")
    return found


MEMBERS = Layout(
    f"{TRAINING}.ensemble_training",
    "Members",
    {"sizes": _layers, "theta": _weights, "loss": array("k")},
    attributes={"theta": "parameters"},
)
SCALING = Layout(
    f"{TRAINING}.scaling",
    "DataScale",
    {
        "x_centre": array("p"),
        "x_scale": array("p", positive=True),
        "w_centre": array("q"),
        "w_scale": array("q", positive=True),
        "y_centre": number(),
        "y_scale": number(positive=True),
    },
)
