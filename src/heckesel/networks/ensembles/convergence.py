"""Whether training converged: divergence is an error, too few epochs a warning."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import numpy as np

from heckesel.data import SelectionData
from heckesel.errors import DataError, HeckeselError
from heckesel.networks.training.config import WAY_OUT

# Predictions on the rows of the fit may lie this many times as far from the median outcome as the
# farthest outcome. Trained networks interpolate: a factor of two or three is large, and networks
# that diverged are off by a factor of thousands.
FARTHEST = 10.0
LOOKED_AT = 10_000  # rows; a diverged network shows it everywhere
# Decrease of the held-out loss in the last quarter of the schedule, which has a fortieth of the sum
# of learning rates. At this rate, twice as many epochs would gain .08, eight percent of a residual
# sd. Fits with enough epochs stay below .0015.
LATE_GAIN = 0.002
# Adam moves a weight by at most the learning rate per step, on average half of the initial one.
# Weights start within 1/8 of zero (64 units per layer), so a shorter path hardly leaves the start.
SHORTEST_PATH = 0.25
DEFAULT_RATE = 1e-2  # the larger of the two defaults


def check_outcome(data: SelectionData) -> None:
    """Refuse an outcome that does not vary, since it has no scale."""
    seen = data.y[data.s & (data.weight > 0)]
    if seen.min() == seen.max():
        raise DataError(
            f"the outcome {data.y_name!r} is {seen[0]:g} in all {len(seen)} selected rows, so "
            "there is nothing to learn"
        )


def check_training(fitted, network, data: SelectionData, *, rows: int | None = None) -> None:
    """Raise if `fitted` diverged; warn if `network` has too few epochs.

    rows : number of rows of the whole table, if `data` is a sample of it
    """
    check_finite(fitted)
    members = list(trained_networks(fitted))
    if data.s.any():
        _check_range(fitted, data)
    steps = 1 if network.batch_size is None else math.ceil((rows or data.n) / network.batch_size)
    path = 0.5 * (network.learning_rate or DEFAULT_RATE) * network.epochs * steps
    if path < SHORTEST_PATH:
        _warn(f"{network.epochs} epochs at this learning rate hardly change the weights")
    elif any(map(still_falling, members)):
        _warn(f"the held-out loss was still falling after {network.epochs} epochs")


def check_finite(fitted) -> None:
    """Raise if a network of `fitted` ended without a finite loss."""
    if any(own.diverged for own in trained_networks(fitted)):
        raise HeckeselError(f"training diverged: the loss is not a finite number; {WAY_OUT}")


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
    for field in fields(fitted):
        value = getattr(fitted, field.name)
        if hasattr(value, "late_gain"):
            yield value
        elif is_dataclass(value):
            yield from trained_networks(value)


def still_falling(members) -> bool:
    """Whether the mean held-out loss decreased late by more than `LATE_GAIN`."""
    return members.late_gain is not None and float(np.mean(members.late_gain)) > LATE_GAIN


def _warn(what: str) -> None:
    from sklearn.exceptions import ConvergenceWarning  # training itself does not need scikit-learn

    warnings.warn(
        f"training did not converge: {what}; raise epochs or learning_rate",
        ConvergenceWarning,
        stacklevel=5,
    )
