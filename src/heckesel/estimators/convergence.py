"""Whether a training of networks ended well: diverged is an error, cut short a warning."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from heckesel.data import SelectionData
from heckesel.errors import DataError, HeckeselError
from heckesel.networks.training.config import WAY_OUT

# Predictions on the rows of the fit, measured from the middle of the outcomes, may be this many
# times as far out as the farthest outcome. Networks that were trained interpolate: two or three
# is much, and one that diverged is thousands of times beyond.
FARTHEST = 10.0
LOOKED_AT = 10_000  # rows; a diverged network shows it everywhere
# Fall of the held-out loss in the last quarter of the schedule, which has a fortieth of the
# learning rates: at this pace as many epochs again would gain .08, eight percent of a residual sd.
# Trainings that were long enough stay below .0015.
LATE_GAIN = 0.002
# Adam moves a weight by at most the learning rate a step, on average half of the first one. Weights
# start within 1/8 of zero (64 units a layer), so that a shorter way hardly leaves the start.
SHORTEST_PATH = 0.25
DEFAULT_RATE = 1e-2  # the larger of the two that `NetworkConfig` takes


def check_outcome(data: SelectionData) -> None:
    """Refuse an outcome that does not vary: no network has a scale for it."""
    seen = data.y[data.s & (data.weight > 0)]
    if seen.min() == seen.max():
        raise DataError(
            f"the outcome {data.y_name!r} is {seen[0]:g} in all {len(seen)} selected rows, so "
            "there is nothing to learn"
        )


def check_training(fitted, network, data: SelectionData, *, rows: int | None = None) -> None:
    """Raise if `fitted` diverged; warn if its training, of `network`, was cut short.

    rows : of the whole table, where `data` is a sample of it
    """
    members = list(trained_networks(fitted))
    if any(own.diverged for own in members):
        raise HeckeselError(f"training diverged: the loss is not a finite number; {WAY_OUT}")
    if data.s.any():
        _check_range(fitted, data)
    steps = 1 if network.batch_size is None else math.ceil((rows or data.n) / network.batch_size)
    path = 0.5 * (network.learning_rate or DEFAULT_RATE) * network.epochs * steps
    if path < SHORTEST_PATH:
        _warn(f"{network.epochs} epochs at this learning rate hardly move the weights")
    elif any(map(still_falling, members)):
        _warn(f"the held-out loss was still falling after {network.epochs} epochs")


def _check_range(fitted, data: SelectionData) -> None:
    selected = np.flatnonzero(data.s)
    looked_at = selected[:: math.ceil(len(selected) / LOOKED_AT)]
    centre = np.median(data.y[selected])
    reach = np.abs(data.y[selected] - centre).max()
    apart = np.abs(fitted.predict(data.x[looked_at]).mean - centre).max()
    if not apart <= FARTHEST * max(reach, np.finfo(float).tiny):
        raise HeckeselError(
            f"training diverged: predictions lie {apart:.3g} from the median outcome, and no "
            f"outcome is farther from it than {reach:.3g}; {WAY_OUT}"
        )


def trained_networks(fitted) -> Iterator:
    """Every set of networks that `fitted` predicts with."""
    for name in ("members", "spread", "selection"):
        own = getattr(fitted, name, None)
        if hasattr(own, "theta"):
            yield own
    for name in ("two_step", "likelihood", "outcome", "basis"):
        if (part := getattr(fitted, name, None)) is not None:
            yield from trained_networks(part)


def still_falling(members) -> bool:
    """Whether the held-out loss of an average member fell late by more than `LATE_GAIN`."""
    return members.late_gain is not None and float(np.mean(members.late_gain)) > LATE_GAIN


def _warn(what: str) -> None:
    warnings.warn(
        f"training did not converge: {what}; raise epochs or learning_rate",
        ConvergenceWarning,
        stacklevel=5,
    )
